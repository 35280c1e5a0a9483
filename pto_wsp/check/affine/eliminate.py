"""Decide whether a set of rows has an integer point, and return one: the Omega test with a budget.

Equalities are eliminated first: a variable with coefficient 1 is substituted; without one, a substitution as in Euclid's algorithm reduces
the coefficients until one is 1. Then variables are projected away one at a time, exact projections first. Where a projection is not exact,
an empty real shadow refutes, a point of the real or the dark shadow may be lifted, and otherwise the splinters between the two shadows are
tried one by one. A point is rebuilt by undoing the eliminations in reverse, taking the integer nearest to 0 each time.
Source: Pugh, The Omega test, 1991.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from pto_wsp.check.affine.rows import Form, Rows, Solved, insert, interval, project, put, refutes, replace, tighten
from pto_wsp.values import dataclass

# A projection with more pairs than this tightens the bounds of variables first.
_MANY_PAIRS = 6
# Cost of a search without a projection, so that many small searches also end.
_START = 8
# More splinters than this are not tried one by one: the range of a variable is bisected instead.
_MOST_PLACES = 24
# Limit of nested bisections: deeper ones mean that the search moves along a thin set step by step.
_MOST_DEPTH = 40


class Nothing(Enum):
    """Why a search has no point: none exists, or the search was given up."""

    EMPTY = "empty"
    UNKNOWN = "unknown"


Found: TypeAlias = dict[int, int] | Nothing


@dataclass(frozen=True, slots=True)
class Projected:
    """A variable that was projected away, and the rows that contained the variable."""

    var: int
    rows: Rows


class Tableau:
    """Rows, and the trail of eliminations made so far, in order."""

    __slots__ = ("empty", "n_vars", "rows", "trail")

    def __init__(self, rows: Rows, n_vars: int) -> None:
        self.rows = rows
        self.trail: list[Solved | Projected] = []
        self.n_vars = n_vars
        self.empty = False

    def branch(self) -> Tableau:
        """Return an independent copy."""
        copy = Tableau(self.rows.copy(), self.n_vars)
        copy.trail, copy.empty = self.trail.copy(), self.empty
        return copy

    def add(self, terms: dict[int, int], low: int | None, high: int | None) -> None:
        """Demand low <= terms <= high; consumes `terms`. Allowed only before the first projection."""
        shift = self._rewrite(terms)
        if not self.empty and not insert(self.rows, terms, None if low is None else low - shift, None if high is None else high - shift):
            self.empty = True

    def refutes(self, terms: dict[int, int], low: int | None, high: int | None) -> bool:
        """Tell whether low <= terms <= high is refuted without a search; consumes `terms`."""
        shift = self._rewrite(terms)
        return refutes(self.rows, terms, None if low is None else low - shift, None if high is None else high - shift)

    def tighten(self) -> None:
        """Tighten the bounds of variables by single rows."""
        rows = tighten(self.rows)
        self.empty = self.empty or rows is None
        self.rows = rows or {}

    def _rewrite(self, terms: dict[int, int]) -> int:
        """Substitute the solved variables in `terms`; return the constant that this adds."""
        shift = 0
        for step in self.trail:
            assert isinstance(step, tuple), "nothing was projected"
            if step[0] in terms:
                shift += put(terms, step)
        return shift

    def settle(self) -> None:
        """Solve equalities until none is left, including implicit ones that appear on the way."""
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
        """Return a substitution for one variable of form == value."""
        var, factor = min(form, key=lambda term: abs(term[1]))
        if abs(factor) == 1:
            del self.rows[form]
            return var, tuple([(v, -c * factor) for v, c in form if v != var]), value * factor
        # var = new - Σ round(c / factor) · v leaves remainders as coefficients: after a few rounds one coefficient is 1.
        new = self.n_vars
        self.n_vars += 1
        quotients = [(v, -_nearest(c, factor)) for v, c in form if v != var]
        return var, (*[term for term in quotients if term[1]], (new, 1)), 0

    def project(self, var: int) -> None:
        """Replace the rows by their real shadow without one variable."""
        parts = project(self.rows, var, False)
        if parts is None:
            self.empty = True
        else:
            self.rows = parts[0]
            self.trail.append(Projected(var, parts[1]))

    def drop(self, free: dict[int, int]) -> None:
        """Drop variables that are bounded on one side at most, with their rows, in the order of their numbers in `free`."""
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
        """Extend a point of the remaining rows to the eliminated variables. All projections must have been exact."""
        for step in reversed(self.trail):
            if isinstance(step, tuple):
                var, value, constant = step
                point[var] = constant + sum([c * point.setdefault(v, 0) for v, c in value])
            else:
                lift(step.rows, step.var, point)   # an exact projection has an integer over each point
        return point


def lift(rows: Rows, var: int, point: dict[int, int]) -> bool:
    """Set a variable in `point` to the value nearest to 0 that some rows allow; return False if the rows allow none."""
    least, most = interval(rows, var, point)
    if least is not None and most is not None and least > most:
        return False
    point[var] = least if least is not None and least > 0 else most if most is not None and most < 0 else 0
    return True


def _nearest(numerator: int, denominator: int) -> int:
    """Return the quotient with the remainder nearest to 0."""
    size = abs(denominator)
    return (2 * numerator + size) // (2 * size) * (1 if denominator > 0 else -1)


def _equality(rows: Rows) -> Form | None:
    """Return the form of an equality: the shortest with a coefficient ±1, otherwise the shortest; None if there is none."""
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
    """A search for a point with a budget: the number of rows it may look at. `depth` counts nested bisections."""

    __slots__ = ("depth", "steps")

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.depth = 0

    def find(self, tableau: Tableau) -> Found:
        """Return an integer point of a tableau (variables not in the point are 0), or why there is none. Consumes the tableau."""
        self.steps -= _START
        is_tight = False
        while True:
            tableau.settle()
            if tableau.empty:
                return Nothing.EMPTY
            if not tableau.rows:
                return tableau.unwind({})
            columns = columns_of(tableau.rows)
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
        """Return a point of the rows where the best projection, of `var`, is not exact."""
        rows, n_vars = tableau.rows, tableau.n_vars
        columns = columns_of(rows)
        self.steps -= columns[var].n_low * columns[var].n_high   # for the second shadow
        real = project(rows, var, False)
        if real is None:
            return Nothing.EMPTY
        found = self.find(Tableau(real[0], n_vars))
        if found is Nothing.EMPTY:
            return found
        below_gap: int | None = None   # the greatest integer below the gap into which `var` would have to fall
        if isinstance(found, dict):
            if lift(real[1], var, found):
                return found
            below_gap = interval(real[1], var, found)[1]
        dark = project(rows, var, True)
        if dark is not None:
            found = self.find(Tableau(dark[0], n_vars))
            if isinstance(found, dict) and lift(dark[1], var, found):
                return found
        places = places_of(rows, real[1], var)
        if places is None:
            if below_gap is None:
                return Nothing.UNKNOWN
            places = [({var: 1}, None, below_gap), ({var: 1}, below_gap + 1, None)]
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


def places_of(rows: Rows, mine: Rows, var: int) -> list[_Place] | None:
    """Return equalities of which one holds at every integer point that is not over the dark shadow; None: too many to say.

    Chooses the smallest set: the values of the narrowest row, or the splinters of the lower bounds, or of the upper bounds.
    Source: Pugh, The Omega test, 1991 (splinters).
    """
    thin: Form | None = None
    least = _MOST_PLACES
    for form, (low, high) in rows.items():
        if low is not None and high is not None and high - low < least:
            thin, least = form, high - low
    chosen = splinters_of(mine, var, least)
    if chosen is not None:
        return chosen
    if thin is None:
        return None
    first, last = rows[thin]
    assert first is not None and last is not None
    return [(dict(thin), value, value) for value in sorted(range(first, last + 1), key=abs)]


def splinters_of(rows: Rows, var: int, most: int) -> list[_Place] | None:
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


class _BoundCounts:
    """Statistics of one variable over all rows: numbers of lower and upper bounds, and of bounds with a coefficient above 1."""

    __slots__ = ("big_high", "big_low", "is_narrow", "n_big", "n_high", "n_low", "size")

    def __init__(self) -> None:
        self.n_low = self.n_high = self.big_low = self.big_high = self.n_big = 0
        self.size = 1
        self.is_narrow = False   # some row with a coefficient above 1 may contain no integer

    def is_exact(self) -> bool:
        """Tell whether projecting the variable away is exact.

        A projection is exact if one bound of each lower/upper pair has coefficient 1, or if both are of one row wide enough for an integer.
        """
        return not self.big_low or not self.big_high or (self.n_big == 1 and not self.is_narrow)


def columns_of(rows: Rows) -> dict[int, _BoundCounts]:
    """Return what some rows say about each of their variables."""
    columns: dict[int, _BoundCounts] = {}
    for form, (low, high) in rows.items():
        for var, c in form:
            column = columns.get(var)
            if column is None:
                column = columns[var] = _BoundCounts()
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


def _next(columns: dict[int, _BoundCounts]) -> tuple[int, bool]:
    """Return the variable to project next, and whether its projection is exact; prefers exact projections, then few added rows."""
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
