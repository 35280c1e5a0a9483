"""Define linear expressions over integer variables, and systems of constraints on them.

A variable is any hashable key: a string, or a `Variable`, which has facts that hold wherever the variable occurs. All variables are
unbounded integers; loop variables, symbolic sizes and existential variables are treated alike.

>>> i, n = LinExpr.of("i"), LinExpr.of("n")
>>> str(2 * i - n + 3)
'2*i - n + 3'
>>> system = System().at_least(i).below(i, n)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from enum import Enum
from typing import Protocol, TypeAlias

from pto_wsp.values import dataclass

Key: TypeAlias = Hashable
Point: TypeAlias = Mapping[Key, int]


@dataclass(frozen=True, slots=True)
class LinExpr:
    """constant + Σ coefficient · variable. Zero coefficients are dropped, so equal expressions compare equal."""

    terms: Mapping[Key, int]
    constant: int = 0

    @staticmethod
    def of(key: Key, factor: int = 1) -> LinExpr:
        """Return factor · `key`."""
        return LinExpr({key: factor} if factor else {}, 0)

    @staticmethod
    def known(value: int) -> LinExpr:
        """Return a constant expression."""
        return LinExpr({}, value)

    @property
    def is_known(self) -> bool:
        """True if the expression is constant."""
        return not self.terms

    def value(self, point: Point) -> int:
        """Return the value at a point; variables that the point does not name are 0."""
        total = self.constant
        for key, factor in self.terms.items():
            total += factor * point.get(key, 0)
        return total

    def __add__(self, other: LinExpr | int) -> LinExpr:
        if isinstance(other, int):
            return LinExpr(self.terms, self.constant + other)
        return LinExpr(_sum(self.terms, other.terms, 1), self.constant + other.constant)

    def __sub__(self, other: LinExpr | int) -> LinExpr:
        if isinstance(other, int):
            return LinExpr(self.terms, self.constant - other)
        return LinExpr(_sum(self.terms, other.terms, -1), self.constant - other.constant)

    def __mul__(self, factor: int) -> LinExpr:
        if factor == 1:
            return self
        return LinExpr({key: c * factor for key, c in self.terms.items()} if factor else {}, self.constant * factor)

    def __neg__(self) -> LinExpr:
        return self * -1

    def __rsub__(self, other: int) -> LinExpr:
        return self * -1 + other

    __radd__ = __add__
    __rmul__ = __mul__

    def __hash__(self) -> int:
        return hash((frozenset(self.terms.items()), self.constant))

    def __str__(self) -> str:
        parts = [(factor, f"{key}" if abs(factor) == 1 else f"{abs(factor)}*{key}") for key, factor in self.terms.items()]
        if self.constant or not parts:
            parts.append((self.constant, str(abs(self.constant))))
        text = " ".join(f"{'-' if sign < 0 else '+'} {part}" for sign, part in parts)
        return text.removeprefix("+ ") if parts[0][0] >= 0 else "-" + text.removeprefix("- ")


def _sum(left: Mapping[Key, int], right: Mapping[Key, int], sign: int) -> Mapping[Key, int]:
    if not right:
        return left
    total = dict(left)
    for key, factor in right.items():
        value = total.get(key, 0) + sign * factor
        if value:
            total[key] = value
        else:
            del total[key]
    return total


class System:
    """A conjunction of constraints: expressions equal to 0, nonnegative expressions, and clauses.

    A clause is a tuple of systems of which at least one holds. Methods add to the system and return it; `branch` returns an independent
    copy.
    """

    __slots__ = ("clauses", "equalities", "inequalities")

    def __init__(self) -> None:
        self.equalities: list[LinExpr] = []
        self.inequalities: list[LinExpr] = []
        self.clauses: list[tuple[System, ...]] = []

    def equal(self, lhs: LinExpr, rhs: LinExpr | int = 0) -> System:
        """Demand lhs == rhs."""
        self.equalities.append(lhs - rhs)
        return self

    def at_least(self, lhs: LinExpr, rhs: LinExpr | int = 0) -> System:
        """Demand lhs >= rhs."""
        self.inequalities.append(lhs - rhs)
        return self

    def below(self, lhs: LinExpr, rhs: LinExpr | int) -> System:
        """Demand lhs < rhs."""
        self.inequalities.append(rhs - lhs - 1)
        return self

    def within(self, expr: LinExpr, start: LinExpr | int, stop: LinExpr | int) -> System:
        """Demand start <= expr < stop."""
        return self.at_least(expr, start).below(expr, stop)

    def either(self, *alternatives: System) -> System:
        """Demand at least one of some systems; without any, the system is contradictory."""
        self.clauses.append(alternatives)
        return self

    def differ(self, lhs: LinExpr, rhs: LinExpr | int) -> System:
        """Demand lhs != rhs."""
        apart = lhs - rhs
        return self.either(System().at_least(apart, 1), System().at_least(-apart, 1))

    def include(self, other: System) -> System:
        """Demand all that another system demands."""
        self.equalities.extend(other.equalities)
        self.inequalities.extend(other.inequalities)
        self.clauses.extend(other.clauses)
        return self

    def branch(self) -> System:
        """Return an independent copy."""
        copy = System.__new__(System)
        copy.equalities = self.equalities.copy()
        copy.inequalities = self.inequalities.copy()
        copy.clauses = self.clauses.copy()
        return copy

    def holds(self, point: Point) -> bool:
        """Tell whether a point satisfies the system."""
        return (all(expr.value(point) == 0 for expr in self.equalities) and all(expr.value(point) >= 0 for expr in self.inequalities)
                and all(any(system.holds(point) for system in clause) for clause in self.clauses))

    def variables(self) -> dict[Key, None]:
        """Return the variables of the system, each once, in order of first occurrence."""
        names: dict[Key, None] = {}
        for expr in (*self.equalities, *self.inequalities):
            names.update(dict.fromkeys(expr.terms))
        for clause in self.clauses:
            for system in clause:
                names.update(dict.fromkeys(system.variables()))
        return names

    def __str__(self) -> str:
        lines = [f"{expr} == 0" for expr in self.equalities] + [f"{expr} >= 0" for expr in self.inequalities]
        lines += [" or ".join(f"({str(one).replace(chr(10), ' and ')})" for one in clause) or "never" for clause in self.clauses]
        return "\n".join(lines) or "always"


class VarKind(Enum):
    """The freedom that a point has in choosing a variable's value."""

    FREE = "free"          # any integer that its facts allow: loop variables, symbols, sizes
    ELEMENT = "element"    # a table element: any content that its facts allow
    DEFINED = "defined"    # its facts determine one integer
    OPAQUE = "opaque"      # its facts are weaker than its meaning: a point may be unreachable


class Meaning(Protocol):
    """The exact definition of an opaque variable."""

    def value(self, point: Point) -> int:
        """Return the exact value at a point of the other variables."""

    def cases(self, point: Point) -> Iterable[System]:
        """Return systems in each of which the variable is exact; those near `point` come first."""


class Variable:
    """A variable with `facts`, which hold wherever it occurs, and with `together`: facts that hold if the other variable occurs too.

    An opaque variable may have a `meaning`, by which a point is judged and repaired.
    """

    __slots__ = ("facts", "kind", "meaning", "name", "together")

    def __init__(self, name: str, kind: VarKind = VarKind.FREE) -> None:
        self.name = name
        self.kind = kind
        self.facts = System()
        self.together: list[tuple[Variable, System]] = []
        self.meaning: Meaning | None = None

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Variable({self.name!r})"


def fresh_variable(name: str, kind: VarKind = VarKind.FREE) -> LinExpr:
    """Return a new variable as an expression."""
    return LinExpr.of(Variable(name, kind))


def closed(system: System) -> System:
    """Return a system with the facts of all its variables, transitively."""
    whole = system.branch()
    names = system.variables()
    new = list(names)
    pairs: list[tuple[Variable, System]] = []
    while True:
        added: list[System] = []
        for key in new:
            if isinstance(key, Variable):
                added.append(key.facts)
                pairs.extend(key.together)
        added.extend([facts for other, facts in pairs if other in names])
        if not added:
            return whole
        pairs = [pair for pair in pairs if pair[0] not in names]
        new = []
        for facts in added:
            whole.include(facts)
            for key in facts.variables():
                if key not in names:
                    names[key] = None
                    new.append(key)
