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
from pto_wsp.verify.affine.rows import Form, Rows, Solved, insert, interval, project, put, refutes, replace, tighten

# A projection with more pairs than this is worth a look at the bounds of variables first.
_MANY_PAIRS = 6
# What a search costs that has nothing to project: so many small ones end as well.
_START = 8
# More places than this are not tried one by one: the range of a variable is cut in two instead.
_MOST_PLACES = 24
# So many cuts inside of each other: deeper ones mean that the search walks along a thin set step by step.
_MOST_DEPTH = 40


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
        shift = self._rewrite(terms)
        if not self.empty and not insert(self.rows, terms, None if low is None else low - shift, None if high is None else high - shift):
            self.empty = True

    def refutes(self, terms: dict[int, int], low: int | None, high: int | None) -> bool:
        """Tell whether low <= terms <= high is seen to be impossible without a search; `terms` is used up."""
        shift = self._rewrite(terms)
        return refutes(self.rows, terms, None if low is None else low - shift, None if high is None else high - shift)

    def tighten(self) -> None:
        """Make the bounds of variables as tight as rows make them one by one."""
        rows = tighten(self.rows)
        self.empty = self.empty or rows is None
        self.rows = rows or {}

    def _rewrite(self, terms: dict[int, int]) -> int:
        """Replace what was solved for, and return the constant that this adds."""
        shift = 0
        for step in self.trail:
            assert isinstance(step, tuple), "nothing was projected"
            if step[0] in terms:
                shift += put(terms, step)
        return shift

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

    def drop(self, free: dict[int, int]) -> None:
        """Drop variables that are bounded on one side at most, in the order of their numbers in `free`, with the rows that hold them."""
        kept: Rows = {}
        dropped: dict[int, Rows] = {var: {} for var in free}
        for form, bounds in self.rows.items():
            first = min([var for var, _ in form if var in free], key=free.__getitem__, default=-1)
            if first < 0:
                kept[form] = bounds
            else:
                dropped[first][form] = bounds
        self.rows = kept
        self.trail.extend([Projected(var, rows) for var, rows in dropped.items()])

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
    """A search for a point, with a budget: how many rows it may look at. `depth` counts the cuts that it is in."""

    __slots__ = ("depth", "steps")

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.depth = 0

    def find(self, tableau: Tableau) -> Found:
        """Return an integer point of a tableau (a variable that it does not name is 0), or why there is none. Uses it up."""
        self.steps -= _START
        is_tight = False
        while True:
            tableau.settle()
            if tableau.empty:
                return Nothing.EMPTY
            if not tableau.rows:
                return tableau.unwind({})
            columns = _columns(tableau.rows)
            free = {var: at for at, (var, column) in enumerate(columns.items()) if not (column.n_low and column.n_high)}
            if free:
                tableau.drop(free)
                continue
            var, exact = _next(columns)
            n_pairs = columns[var].n_low * columns[var].n_high
            if not is_tight and (n_pairs > _MANY_PAIRS or not exact):
                rows = tighten(tableau.rows)
                if rows is None:
                    return Nothing.EMPTY
                tableau.rows, is_tight = rows, True
                continue
            is_tight = False
            self.steps -= len(tableau.rows) + n_pairs
            if self.steps < 0:
                return Nothing.UNKNOWN
            if exact:
                tableau.project(var)
                continue
            if self.depth == _MOST_DEPTH:
                return Nothing.UNKNOWN
            self.depth += 1
            found = self._split(tableau, var)
            self.depth -= 1
            return found if isinstance(found, Nothing) else tableau.unwind(found)

    def _split(self, tableau: Tableau, var: int) -> Found:
        """Return a point of the rows when projecting `var` away is not exact, and no other variable would be better."""
        rows, n_vars = tableau.rows, tableau.n_vars
        columns = _columns(rows)
        self.steps -= columns[var].n_low * columns[var].n_high   # for the second shadow
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
        places = _places(rows, real[1], var)
        if places is None:
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


def _places(rows: Rows, mine: Rows, var: int) -> list[_Place] | None:
    """Return equalities of which one holds at every integer point that is not over the dark shadow; None: too many to say.

    The values of the narrowest row, or the places just above each lower bound, or just below each upper one: what is fewest.
    Source: Pugh, The Omega test, 1991 (splinters).
    """
    thin: Form | None = None
    least = _MOST_PLACES
    for form, (low, high) in rows.items():
        if low is not None and high is not None and high - low < least:
            thin, least = form, high - low
    chosen = _splinters(mine, var, least)
    if chosen is not None:
        return chosen
    if thin is None:
        return None
    first, last = rows[thin]
    assert first is not None and last is not None
    return [(dict(thin), value, value) for value in sorted(range(first, last + 1), key=abs)]


def _splinters(rows: Rows, var: int, most: int) -> list[_Place] | None:
    """Return the places between the shadows of one variable, by the rows that hold it; None where there are more than `most`."""
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
        widest = max([factor for factor, _, _ in others])
        counts = [(widest * factor - widest - factor) // widest + 1 for factor, _, _ in side]
        choices.append((sum(counts), [(count, terms, low) for count, (_, terms, low) in zip(counts, side, strict=True)]))
    n_places, chosen = min(choices, key=lambda choice: choice[0])
    return [(terms, low + step, low + step) for count, terms, low in chosen for step in range(count)] if n_places <= most else None


class _Column:
    """What the rows say about one variable: how many bounds from below and above, and those with a coefficient above 1."""

    __slots__ = ("big_high", "big_low", "is_narrow", "n_big", "n_high", "n_low", "size")

    def __init__(self) -> None:
        self.n_low = self.n_high = self.big_low = self.big_high = self.n_big = 0
        self.size = 1
        self.is_narrow = False   # some row with a coefficient above 1 does not surely hold an integer

    def is_exact(self) -> bool:
        """Tell whether projecting the variable away is exact.

        So it is where of each lower and upper bound one has coefficient 1, or both are of one row that is wide enough to hold an integer.
        """
        return not self.big_low or not self.big_high or (self.n_big == 1 and not self.is_narrow)


def _columns(rows: Rows) -> dict[int, _Column]:
    """Return what some rows say about each of their variables."""
    columns: dict[int, _Column] = {}
    for form, (low, high) in rows.items():
        for var, c in form:
            column = columns.get(var)
            if column is None:
                column = columns[var] = _Column()
            if c > 0:
                n_low, n_high = low is not None, high is not None
            else:
                n_low, n_high, c = high is not None, low is not None, -c
            column.n_low += n_low
            column.n_high += n_high
            if c > 1:
                column.n_big += 1
                column.big_low += n_low
                column.big_high += n_high
                column.size = max(column.size, c)
                if low is not None and high is not None and high - low < c - 1:
                    column.is_narrow = True
    return columns


def _next(columns: dict[int, _Column]) -> tuple[int, bool]:
    """Return the variable to project away next, and whether that is exact: those first, by how many rows they add."""
    best: tuple[bool, int, int] | None = None
    chosen = -1
    for var, column in columns.items():
        exact = column.is_exact()
        growth = column.n_low * column.n_high - column.n_low - column.n_high
        cost = (not exact, 0 if exact else column.size, growth)
        if best is None or cost < best:
            best, chosen = cost, var
    assert best is not None, "rows have variables"
    return chosen, not best[0]
