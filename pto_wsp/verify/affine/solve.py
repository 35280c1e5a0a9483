"""Questions to the solver: is a system empty, does it imply something, is one of several not empty?

`Unsat` is said only where it was proved, and `Sat` only with a point at which every constraint was evaluated; the rest is `Unknown`.
Clauses are looked at only when a point breaks one: first the constraints outside of clauses are solved, then one broken clause is gone
through, alternative by alternative.

>>> i, n = LinExpr.of("i"), LinExpr.of("n")
>>> solve(System().within(i, 3, n))
Sat(point={'i': 3, 'n': 4})
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from pto_wsp.values import dataclass
from pto_wsp.verify.affine.eliminate import Nothing, Search, Tableau
from pto_wsp.verify.affine.linear import Key, Kind, LinExpr, Point, System, Variable, closed
from pto_wsp.verify.verdict import Verdict

BUDGET = 5_000   # rows looked at and made, some microseconds each: what programs ask takes some tens to some hundreds
_MOST_REPAIRS = 20
_MOST_CLAUSES = 120   # decided one inside of the other


@dataclass(frozen=True, slots=True)
class Unsat:
    """Proved: no integers satisfy the system."""


@dataclass(frozen=True, slots=True)
class Sat:
    """Integers that satisfy the system, one for each of its variables."""

    point: Point


@dataclass(frozen=True, slots=True)
class Unknown:
    """The budget was used up first."""


Answer: TypeAlias = Unsat | Sat | Unknown


def solve(system: System, budget: int = BUDGET) -> Answer:
    """Return whether a system has an integer point."""
    return _Question(system, budget).answer()


def reach(system: System, budget: int = BUDGET) -> Answer:
    """Return whether a system has a point that a run can come to: `solve` whose points give opaque variables their real values.

    A point that does not is mended by fixing operands at its numbers, then at small ones. What has no known meaning, as the number of a
    task, makes the answer `Unknown`. Elements of tables are as free as before: a point says what the table would hold.
    """
    answer = solve(system, budget)
    return _mend(system, answer.point, budget, [_MOST_REPAIRS]) if isinstance(answer, Sat) else answer


def _mend(system: System, point: Point, budget: int, left: list[int]) -> Answer:
    opaque = [key for key in point if isinstance(key, Variable) and key.kind is Kind.OPAQUE]
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


def any_of(systems: Iterable[System], budget: int = BUDGET) -> Answer:
    """Return whether one of several systems has an integer point; each has its own budget."""
    answer: Answer = Unsat()
    for system in systems:
        match solve(system, budget):
            case Sat() as found:
                return found
            case Unknown() as unknown:
                answer = unknown
            case Unsat():
                pass
    return answer


def counterexample(system: System, expr: LinExpr, budget: int = BUDGET) -> Answer:
    """Return whether a system has a point at which `expr` is negative."""
    return solve(system.branch().below(expr, 0), budget)


def implies(system: System, expr: LinExpr, budget: int = BUDGET) -> Verdict:
    """Return whether expr >= 0 wherever a system holds."""
    match counterexample(system, expr, budget):
        case Unsat():
            return Verdict.PROVED
        case Sat():
            return Verdict.COUNTEREXAMPLE
        case Unknown():
            return Verdict.NOT_PROVED


class _Question:
    """One system, with the facts of its variables, while it is solved: its keys as numbers, and what is left of the budget."""

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
                # What is wrong here is our mistake, but must not become a wrong answer.
                return Sat(point) if self.system.holds(point) else Unknown()

    def _add(self, tableau: Tableau, system: System) -> None:
        numbers = self.numbers
        for expr in system.equalities:
            tableau.add({numbers[key]: c for key, c in expr.terms.items()}, -expr.constant, -expr.constant)
        for expr in system.inequalities:
            tableau.add({numbers[key]: c for key, c in expr.terms.items()}, -expr.constant, None)

    def _find(self, tableau: Tableau, clauses: list[tuple[System, ...]], depth: int = 0) -> dict[Key, int] | Nothing:
        """Return a point of the tableau and the clauses."""
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
        for one in ways:
            branch = tableau.branch()
            self._add(branch, one)
            found = self._find(branch, [*clauses, *one.clauses], depth + 1)
            if isinstance(found, dict):
                return found
            if found is Nothing.UNKNOWN:
                answer = found
        return answer

    def _tightest(self, tableau: Tableau, clauses: list[tuple[System, ...]]) -> tuple[tuple[System, ...], list[System]]:
        """Return the clause with the fewest alternatives that are not seen to be impossible, and these."""
        best: tuple[tuple[System, ...], list[System]] | None = None
        for clause in clauses:
            ways = [one for one in clause if not self._is_refuted(tableau, one)]
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
