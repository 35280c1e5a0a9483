"""Elimination: decide whether some rows have an integer point, and find one.

Equalities go first: a variable with coefficient 1 gives way to its value; where there is none, variables change places as in Euclid's
algorithm until there is. Then variables are projected away one at a time, exact projections first. Where a projection is not exact, the
real shadow may refute, a point of either shadow may be lifted, and otherwise the few places between the shadows are tried one by one.
A point is found by going back through what was eliminated and taking the integer nearest to 0 each time.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from pto_wsp.values import dataclass
from pto_wsp.verify.affine.rows import Form, Rows, Solved, insert, interval, project, put, replace

# More places than this between the shadows are not tried one by one: the range is cut in two at a point instead.
_MOST_PLACES = 24


class Nothing(Enum):
    """Why there is no point: there is none, or the search was given up."""

    EMPTY = "empty"
    UNKNOWN = "unknown"


Found: TypeAlias = dict[int, int] | Nothing


@dataclass(frozen=True, slots=True)
class Projected:
    """A variable that was projected away, and the rows that held it."""

    var: int
    rows: Rows


class Tableau:
    """Rows, and what was eliminated from them so far, in order."""

    __slots__ = ("empty", "n_vars", "rows", "trail")

    def __init__(self, rows: Rows, n_vars: int) -> None:
        self.rows = rows
        self.trail: list[Solved | Projected] = []
        self.n_vars = n_vars
        self.empty = False

    def branch(self) -> Tableau:
        """Return a copy that grows on its own."""
        copy = Tableau(self.rows.copy(), self.n_vars)
        copy.trail, copy.empty = self.trail.copy(), self.empty
        return copy

    def add(self, terms: dict[int, int], low: int | None, high: int | None) -> None:
        """Demand low <= terms <= high; `terms` is used up. Only while nothing was projected."""
        for step in self.trail:
            assert isinstance(step, tuple)
            if step[0] in terms:
                shift = put(terms, step)
                low = None if low is None else low - shift
                high = None if high is None else high - shift
        if not self.empty and not insert(self.rows, terms, low, high):
            self.empty = True

    def settle(self) -> None:
        """Solve equalities until none is left, hidden ones that appear on the way as well."""
        while not self.empty:
            form = _equality(self.rows)
            if form is None:
                return
            value = self.rows[form][0]
            assert value is not None
            solved = self._solve(form, value)
            self.trail.append(solved)
            rows = replace(self.rows, solved)
            self.empty = rows is None
            self.rows = rows or {}

    def _solve(self, form: Form, value: int) -> Solved:
        """Return a value for one variable by form == value."""
        var, factor = min(form, key=lambda term: abs(term[1]))
        if abs(factor) == 1:
            del self.rows[form]
            return var, tuple([(v, -c * factor) for v, c in form if v != var]), value * factor
        # var = new - Σ round(c / factor) · v leaves remainders as coefficients: after a few rounds one is 1.
        new = self.n_vars
        self.n_vars += 1
        quotients = [(v, -_nearest(c, factor)) for v, c in form if v != var]
        return var, (*[term for term in quotients if term[1]], (new, 1)), 0

    def project(self, var: int) -> None:
        """Take the real shadow without one variable."""
        parts = project(self.rows, var, False)
        if parts is None:
            self.empty = True
        else:
            self.rows = parts[0]
            self.trail.append(Projected(var, parts[1]))

    def unwind(self, point: dict[int, int]) -> dict[int, int]:
        """Add values of the variables that were eliminated to a point of what is left. All projections were exact."""
        for step in reversed(self.trail):
            if isinstance(step, tuple):
                var, value, constant = step
                point[var] = constant + sum([c * point.setdefault(v, 0) for v, c in value])
            else:
                lift(step.rows, step.var, point)   # there is an integer over each point of an exact projection
        return point


def lift(rows: Rows, var: int, point: dict[int, int]) -> bool:
    """Give a variable the value nearest to 0 that some rows leave to it; False where they leave none."""
    least, most = interval(rows, var, point)
    if least is not None and most is not None and least > most:
        return False
    point[var] = least if least is not None and least > 0 else most if most is not None and most < 0 else 0
    return True


def _nearest(numerator: int, denominator: int) -> int:
    """Return the quotient that leaves the remainder nearest to 0."""
    size = abs(denominator)
    return (2 * numerator + size) // (2 * size) * (1 if denominator > 0 else -1)


def _equality(rows: Rows) -> Form | None:
    """Return the form of an equality: of those with a coefficient 1 the shortest, else the shortest."""
    best: Form | None = None
    least = 1 << 30
    for form, (low, high) in rows.items():
        if low == high and low is not None:
            cost = len(form)
            if all([c != 1 and c != -1 for _, c in form]):
                cost += 1 << 20
            if cost < least:
                best, least = form, cost
    return best


class Search:
    """A search for a point, with a budget: how many rows it may look at."""

    __slots__ = ("steps",)

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def find(self, tableau: Tableau) -> Found:
        """Return an integer point of a tableau (a variable that it does not name is 0), or why there is none. Uses it up."""
        while True:
            tableau.settle()
            if tableau.empty:
                return Nothing.EMPTY
            if not tableau.rows:
                return tableau.unwind({})
            self.steps -= len(tableau.rows)
            if self.steps < 0:
                return Nothing.UNKNOWN
            var, exact = _next(tableau.rows)
            if exact:
                tableau.project(var)
                continue
            found = self._split(tableau, var)
            return found if isinstance(found, Nothing) else tableau.unwind(found)

    def _split(self, tableau: Tableau, var: int) -> Found:
        """Return a point of the rows when projecting `var` away is not exact, and no other variable would be better."""
        rows, n_vars = tableau.rows, tableau.n_vars
        real = project(rows, var, False)
        if real is None:
            return Nothing.EMPTY
        found = self.find(Tableau(real[0], n_vars))
        if found is Nothing.EMPTY:
            return found
        hole: int | None = None   # the greatest integer below the gap into which `var` would have to fall
        if isinstance(found, dict):
            if lift(real[1], var, found):
                return found
            hole = interval(real[1], var, found)[1]
        dark = project(rows, var, True)
        if dark is not None:
            found = self.find(Tableau(dark[0], n_vars))
            if isinstance(found, dict) and lift(dark[1], var, found):
                return found
        places = _places(real[1], var)
        if places is None or len(places) > _MOST_PLACES:
            if hole is None:
                return Nothing.UNKNOWN
            places = [({var: 1}, None, hole), ({var: 1}, hole + 1, None)]
        answer = Nothing.EMPTY
        for terms, low, high in places:
            cut = Tableau(rows.copy(), n_vars)
            cut.add(dict(terms), low, high)
            found = self.find(cut)
            if isinstance(found, dict):
                return found
            if found is Nothing.UNKNOWN:
                answer = found
                if self.steps < 0:
                    break
        return answer


_Place: TypeAlias = tuple[dict[int, int], int | None, int | None]


def _places(rows: Rows, var: int) -> list[_Place] | None:
    """Return equalities of which one holds at every integer point that is not over the dark shadow; None: too many to say.

    Source: Pugh, The Omega test, 1991 (splinters). Where the variable has few values by constant bounds, those.
    """
    bounds = rows.get(((var, 1),))
    if bounds is not None and bounds[0] is not None and bounds[1] is not None and bounds[1] - bounds[0] <= _MOST_PLACES // 2:
        return [({var: 1}, value, value) for value in sorted(range(bounds[0], bounds[1] + 1), key=abs)]
    below: list[tuple[int, dict[int, int], int]] = []
    above: list[tuple[int, dict[int, int], int]] = []
    for form, (low, high) in rows.items():
        terms = dict(form)
        factor = terms[var]
        if factor < 0:
            factor, terms = -factor, {v: -c for v, c in form}
            low, high = None if high is None else -high, None if low is None else -low
        if low is not None:
            below.append((factor, terms, low))
        if high is not None:
            above.append((factor, {v: -c for v, c in terms.items()}, -high))
    choices = []
    for side, others in ((below, above), (above, below)):
        most = max([other[0] for other in others])
        counts = [(most * factor - most - factor) // most + 1 for factor, _, _ in side]
        choices.append((sum(counts), [(counts[at], terms, low) for at, (_, terms, low) in enumerate(side)]))
    n_places, chosen = min(choices, key=lambda choice: choice[0])
    if n_places > _MOST_PLACES:
        return None
    return [(terms, low + step, low + step) for n, terms, low in chosen for step in range(n)]


def _next(rows: Rows) -> tuple[int, bool]:
    """Return the variable to eliminate next, and whether projecting it away is exact.

    Exact where of each lower and upper bound one has coefficient 1, or both are of one row that is wide enough to hold an integer.
    """
    lower: dict[int, int] = {}
    upper: dict[int, int] = {}
    big_lower: dict[int, int] = {}
    big_upper: dict[int, int] = {}
    narrow: dict[int, int] = {}     # rows with a coefficient above 1 that do not surely hold an integer
    big: dict[int, int] = {}
    size: dict[int, int] = {}
    for form, (low, high) in rows.items():
        for var, c in form:
            if c < 0:
                n_low, n_high, c = high is not None, low is not None, -c
            else:
                n_low, n_high = low is not None, high is not None
            lower[var] = lower.get(var, 0) + n_low
            upper[var] = upper.get(var, 0) + n_high
            if c > 1:
                big[var] = big.get(var, 0) + 1
                big_lower[var] = big_lower.get(var, 0) + n_low
                big_upper[var] = big_upper.get(var, 0) + n_high
                size[var] = max(size.get(var, 0), c)
                if low is not None and high is not None and high - low < c - 1:
                    narrow[var] = 1
    best = (1 << 60, -1)
    worst = (1 << 60, 1 << 60, -1)
    for var, n_lower in lower.items():
        n_upper = upper[var]
        growth = n_lower * n_upper - n_lower - n_upper
        if not big_lower.get(var) or not big_upper.get(var) or (big[var] == 1 and var not in narrow):
            if growth < best[0]:
                best = (growth, var)
        elif (size[var], growth) < worst[:2]:
            worst = (size[var], growth, var)
    return (best[1], True) if best[1] >= 0 else (worst[2], False)
