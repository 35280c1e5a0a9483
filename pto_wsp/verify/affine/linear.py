"""Linear expressions over integer variables, and systems: what must hold of them at the same time.

A variable is any hashable key: a string, or a `Variable`, of which something may be known wherever it occurs. All are integers of any
size; loop variables, symbolic sizes and those that only need to exist are treated alike.

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
    """constant + Σ coefficient · variable. No coefficient is 0, so equal expressions compare equal."""

    terms: Mapping[Key, int]
    constant: int = 0

    @staticmethod
    def of(key: Key, factor: int = 1) -> LinExpr:
        """Return factor · the variable `key`."""
        return LinExpr({key: factor} if factor else {}, 0)

    @staticmethod
    def known(value: int) -> LinExpr:
        """Return a constant."""
        return LinExpr({}, value)

    @property
    def is_known(self) -> bool:
        """True where no variable occurs."""
        return not self.terms

    def value(self, point: Point) -> int:
        """Return what it is at a point; a variable that the point does not name is 0."""
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
    """What must hold together: expressions that are 0, expressions that are not negative, and clauses.

    A clause is a list of systems of which at least one holds. Methods add to the system and return it; `branch` gives a copy that
    grows on its own.
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
        """Demand at least one of some systems; of none is a contradiction."""
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
        """Return a copy."""
        copy = System.__new__(System)
        copy.equalities = self.equalities.copy()
        copy.inequalities = self.inequalities.copy()
        copy.clauses = self.clauses.copy()
        return copy

    def holds(self, point: Point) -> bool:
        """Tell whether all of it is so at a point."""
        return (all(expr.value(point) == 0 for expr in self.equalities) and all(expr.value(point) >= 0 for expr in self.inequalities)
                and all(any(one.holds(point) for one in clause) for clause in self.clauses))

    def variables(self) -> dict[Key, None]:
        """Return the variables named, each once, in the order in which they first occur."""
        found: dict[Key, None] = {}
        for expr in (*self.equalities, *self.inequalities):
            found.update(dict.fromkeys(expr.terms))
        for clause in self.clauses:
            for one in clause:
                found.update(dict.fromkeys(one.variables()))
        return found

    def __str__(self) -> str:
        lines = [f"{expr} == 0" for expr in self.equalities] + [f"{expr} >= 0" for expr in self.inequalities]
        lines += [" or ".join(f"({str(one).replace(chr(10), ' and ')})" for one in clause) or "never" for clause in self.clauses]
        return "\n".join(lines) or "always"


class Kind(Enum):
    """What a point may choose for a variable."""

    FREE = "free"          # any integer that its facts allow: loop variables, symbols, sizes
    ELEMENT = "element"    # what a table holds: any content that its facts allow
    DEFINED = "defined"    # its facts leave one integer
    OPAQUE = "opaque"      # its real value is known less well than it could be: a point may be impossible


class Meaning(Protocol):
    """What an opaque variable really is."""

    def value(self, point: Point) -> int:
        """Return the value that a run gives it where the others are as in a point."""

    def cases(self, point: Point) -> Iterable[System]:
        """Return systems in each of which it has no other value than a run gives it, the ones near a point first."""


class Variable:
    """A variable of which `facts` hold wherever it occurs, and what stands in `together` where another one occurs as well.

    An opaque one may have a `meaning`, by which a point can be judged and mended.
    """

    __slots__ = ("facts", "kind", "meaning", "name", "together")

    def __init__(self, name: str, kind: Kind = Kind.FREE) -> None:
        self.name = name
        self.kind = kind
        self.facts = System()
        self.together: list[tuple[Variable, System]] = []
        self.meaning: Meaning | None = None

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Variable({self.name!r})"


def fresh(name: str, kind: Kind = Kind.FREE) -> LinExpr:
    """Return a variable that nothing else names."""
    return LinExpr.of(Variable(name, kind))


def closed(system: System) -> System:
    """Return a system together with the facts of all variables that it names, and of those that the facts name."""
    whole = system.branch()
    known = system.variables()
    new = list(known)
    pairs: list[tuple[Variable, System]] = []
    while True:
        added: list[System] = []
        for key in new:
            if isinstance(key, Variable):
                added.append(key.facts)
                pairs.extend(key.together)
        added.extend([facts for other, facts in pairs if other in known])
        if not added:
            return whole
        pairs = [pair for pair in pairs if pair[0] not in known]
        new = []
        for facts in added:
            whole.include(facts)
            for key in facts.variables():
                if key not in known:
                    known[key] = None
                    new.append(key)
