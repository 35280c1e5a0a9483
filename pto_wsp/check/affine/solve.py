"""Decide systems of linear constraints over the integers: empty, with a point, or undecided within the budget.

`Unsat` is returned only if proved, and `Sat` only with a point at which every constraint was evaluated; everything else is `Unknown`.
Clauses are lazy: the constraints outside clauses are solved first, then one clause that the point violates is split into its alternatives.

>>> i, n = LinExpr.of("i"), LinExpr.of("n")
>>> solve(System().within(i, 3, n))
Sat(point={'i': 3, 'n': 4})
"""

from __future__ import annotations

from typing import TypeAlias

from pto_wsp.check.affine.eliminate import Nothing, Search, Tableau
from pto_wsp.check.affine.linear import Key, LinExpr, Point, System, Variable, VarKind, closed
from pto_wsp.check.verdict import Verdict
from pto_wsp.values import dataclass

BUDGET = 5_000   # rows read and made, a few µs each; typical questions take 10 to 1000
_MOST_REPAIRS = 20
_MOST_CLAUSES = 120   # limit of nested clause splits


@dataclass(frozen=True, slots=True)
class Unsat:
    """Proved: no integers satisfy the system."""


@dataclass(frozen=True, slots=True)
class Sat:
    """An integer solution: a value for each variable of the system."""

    point: Point


@dataclass(frozen=True, slots=True)
class Unknown:
    """The budget was exhausted first."""


Answer: TypeAlias = Unsat | Sat | Unknown


def solve(system: System, budget: int = BUDGET) -> Answer:
    """Return whether a system has an integer point."""
    return _SystemInSearch(system, budget).answer()


def reach(system: System, budget: int = BUDGET) -> Answer:
    """Return whether a system has a point that a run can reach: as `solve`, but opaque variables have their exact values.

    A point with a wrong value is repaired by fixing operands at its numbers, then at small numbers. An opaque variable without a meaning
    (the number of a task) makes the answer `Unknown`. Table elements stay free: a point says what a table would contain.
    """
    answer = solve(system, budget)
    return _mend(system, answer.point, budget, [_MOST_REPAIRS]) if isinstance(answer, Sat) else answer


def _mend(system: System, point: Point, budget: int, left: list[int]) -> Answer:
    opaque = [key for key in point if isinstance(key, Variable) and key.kind is VarKind.OPAQUE]
    if any(key.meaning is None for key in opaque):
        return Unknown()
    wrong = next((key.meaning for key in opaque if key.meaning is not None and key.meaning.value(point) != point[key]), None)
    if wrong is None:
        return Sat(point)
    for case in wrong.cases(point):
        if left[0] == 0:
            break
        left[0] -= 1
        whole = system.branch().include(case)
        answer = solve(whole, budget)
        mended = _mend(whole, answer.point, budget, left) if isinstance(answer, Sat) else answer
        if isinstance(mended, Sat):
            return mended
    return Unknown()


def counterexample(system: System, expr: LinExpr, budget: int = BUDGET) -> Answer:
    """Return a point of a system at which `expr` is negative, if any."""
    return solve(system.branch().below(expr, 0), budget)


def implies(system: System, expr: LinExpr, budget: int = BUDGET) -> Verdict:
    """Return whether a system implies expr >= 0."""
    match counterexample(system, expr, budget):
        case Unsat():
            return Verdict.PROVED
        case Sat():
            return Verdict.COUNTEREXAMPLE
        case Unknown():
            return Verdict.NOT_PROVED


class _SystemInSearch:
    """A system with the facts of its variables while it is solved: numbers of its keys, and the remaining budget."""

    def __init__(self, system: System, budget: int) -> None:
        self.system = system = closed(system)
        self.search = Search(budget)
        self.numbers: dict[Key, int] = {key: number for number, key in enumerate(system.variables())}

    def answer(self) -> Answer:
        tableau = Tableau({}, len(self.numbers))
        self._add(tableau, self.system)
        match self._find(tableau, self.system.clauses):
            case Nothing.EMPTY:
                return Unsat()
            case Nothing.UNKNOWN:
                return Unknown()
            case point:
                # A wrong point would be an internal mistake, and must not become a wrong answer.
                return Sat(point) if self.system.holds(point) else Unknown()

    def _add(self, tableau: Tableau, system: System) -> None:
        numbers = self.numbers
        for expr in system.equalities:
            tableau.add({numbers[key]: c for key, c in expr.terms.items()}, -expr.constant, -expr.constant)
        for expr in system.inequalities:
            tableau.add({numbers[key]: c for key, c in expr.terms.items()}, -expr.constant, None)

    def _find(self, tableau: Tableau, clauses: list[tuple[System, ...]], depth: int = 0) -> dict[Key, int] | Nothing:
        """Return a point of the tableau and the clauses, or why there is none.

        Invariant: `clauses` are those not yet added to the tableau. Each round adds the alternatives of the violated clause with the
        fewest.
        """
        while True:
            tableau.settle()
            found = self.search.find(tableau.branch())
            if found is Nothing.EMPTY:
                return found
            broken = clauses
            if isinstance(found, dict):
                point = {key: found.get(number, 0) for key, number in self.numbers.items()}
                broken = [clause for clause in clauses if not any([one.holds(point) for one in clause])]
                if not broken:
                    return point
            if not broken or self.search.steps < 0 or depth == _MOST_CLAUSES:
                return Nothing.UNKNOWN
            tableau.tighten()
            clause, ways = self._tightest(tableau, broken)
            clauses = [other for other in clauses if other is not clause]
            if not ways:
                return Nothing.EMPTY
            if len(ways) > 1:
                return self._try_all(tableau, ways, clauses, depth)
            self._add(tableau, ways[0])
            clauses += ways[0].clauses

    def _try_all(self, tableau: Tableau, ways: list[System], clauses: list[tuple[System, ...]], depth: int) -> dict[Key, int] | Nothing:
        answer = Nothing.EMPTY
        for system in ways:
            branch = tableau.branch()
            self._add(branch, system)
            result = self._find(branch, [*clauses, *system.clauses], depth + 1)
            if isinstance(result, dict):
                return result
            if result is Nothing.UNKNOWN:
                answer = result
        return answer

    def _tightest(self, tableau: Tableau, clauses: list[tuple[System, ...]]) -> tuple[tuple[System, ...], list[System]]:
        """Return the clause with the fewest alternatives that are not refuted at once, and these alternatives."""
        best: tuple[tuple[System, ...], list[System]] | None = None
        for clause in clauses:
            ways = [system for system in clause if not self._is_refuted(tableau, system)]
            if best is None or len(ways) < len(best[1]):
                best = clause, ways
                if len(ways) < 2:
                    break
        assert best is not None
        return best

    def _is_refuted(self, tableau: Tableau, system: System) -> bool:
        numbers = self.numbers
        for expr in system.equalities:
            if tableau.refutes({numbers[key]: c for key, c in expr.terms.items()}, -expr.constant, -expr.constant):
                return True
        for expr in system.inequalities:
            if tableau.refutes({numbers[key]: c for key, c in expr.terms.items()}, -expr.constant, None):
                return True
        return False
