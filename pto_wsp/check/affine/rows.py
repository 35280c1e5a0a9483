"""Store constraints as rows low <= form <= high over numbered variables, and project variables away.

A form is a tuple of (variable, coefficient), sorted by variable, without a common factor, the first coefficient positive. So both sides of
a range, and equal forms from different sources, are one row: contradictions and implicit equalities show at insertion.
"""

from __future__ import annotations

from math import gcd
from typing import TypeAlias

Form: TypeAlias = tuple[tuple[int, int], ...]
Bounds: TypeAlias = tuple[int | None, int | None]
Rows: TypeAlias = dict[Form, Bounds]
# (variable, its value as a form, constant of the value)
Solved: TypeAlias = tuple[int, tuple[tuple[int, int], ...], int]


_OPEN: Bounds = (None, None)


def insert(rows: Rows, terms: dict[int, int], low: int | None, high: int | None) -> bool:
    """Add low <= terms <= high, rounded to integers; return False if the row is empty. Coefficients must not be 0."""
    if not terms:
        return (low is None or low <= 0) and (high is None or high >= 0)
    form, low, high = _met(rows, terms, low, high)
    rows[form] = (low, high)
    return low is None or high is None or low <= high


def refutes(rows: Rows, terms: dict[int, int], low: int | None, high: int | None) -> bool:
    """Tell whether one row, or the bounds of the variables, contradict low <= terms <= high."""
    least: int | None = 0
    most: int | None = 0
    for var, c in terms.items():
        first, last = rows.get(((var, 1),), _OPEN)
        if c < 0:
            first, last = last, first
        least = None if least is None or first is None else least + c * first
        most = None if most is None or last is None else most + c * last
    if (low is not None and most is not None and most < low) or (high is not None and least is not None and least > high):
        return True
    if not terms:
        return False
    _, low, high = _met(rows, terms, low, high)
    return low is not None and high is not None and low > high


def _met(rows: Rows, terms: dict[int, int], low: int | None, high: int | None) -> tuple[Form, int | None, int | None]:
    """Return low <= terms <= high in normal form, intersected with the existing row of the same form."""
    factor = gcd(*terms.values())
    items = sorted(terms.items())
    if items[0][1] < 0:
        low, high = None if high is None else -high, None if low is None else -low
        items = [(var, -c // factor) for var, c in items]
    elif factor != 1:
        items = [(var, c // factor) for var, c in items]
    if factor != 1:
        if low is not None:
            low = -(-low // factor)
        if high is not None:
            high //= factor
    form = tuple(items)
    old = rows.get(form)
    if old is not None:
        if low is None or (old[0] is not None and old[0] > low):
            low = old[0]
        if high is None or (old[1] is not None and old[1] < high):
            high = old[1]
    return form, low, high


def replace(rows: Rows, solved: Solved) -> Rows | None:
    """Return the rows with a variable substituted by its value; None if they contradict each other."""
    var = solved[0]
    kept: Rows = {}
    changed: list[tuple[Form, Bounds]] = []
    for form, bounds in rows.items():
        for other, _ in form:
            if other == var:
                changed.append((form, bounds))
                break
        else:
            kept[form] = bounds
    for form, (low, high) in changed:
        terms = dict(form)
        shift = put(terms, solved)
        if not insert(kept, terms, None if low is None else low - shift, None if high is None else high - shift):
            return None
    return kept


def put(terms: dict[int, int], solved: Solved) -> int:
    """Substitute a variable in `terms` by its value; return the constant that this adds."""
    var, value, constant = solved
    factor = terms.pop(var, 0)
    if not factor:
        return 0
    for other, c in value:
        total = terms.get(other, 0) + factor * c
        if total:
            terms[other] = total
        else:
            del terms[other]
    return factor * constant


def project(rows: Rows, var: int, dark: bool) -> tuple[Rows, Rows] | None:
    """Return the shadow of some rows without one variable, and the rows that contained it; None if the shadow is empty.

    Each lower bound of the variable is paired with each upper bound. The real shadow (dark=False) has every point over which a real value
    exists, the dark shadow only points over which an integer surely exists; both agree if one of the two coefficients is 1.
    Source: Pugh, The Omega test, 1991.
    """
    shadow: Rows = {}
    mine: Rows = {}
    pairs: list[tuple[int, Form, int | None, int | None]] = []
    for form, bounds in rows.items():
        for other, c in form:
            if other == var:
                mine[form] = bounds
                low, high = bounds
                if c < 0:
                    form = tuple([(v, -k) for v, k in form])
                    low, high = None if high is None else -high, None if low is None else -low
                pairs.append((abs(c), form, low, high))
                break
        else:
            shadow[form] = bounds
    for at, (a, first, low, high) in enumerate(pairs):
        if dark and a > 1 and low is not None and high is not None and high - low < a - 1:
            return None
        for b, second, other_low, other_high in pairs[:at]:
            if (low is None or other_high is None) and (high is None or other_low is None):
                continue
            common = gcd(a, b)
            p, q = b // common, a // common
            gap = -(-(a - 1) * (b - 1) // common) if dark else 0
            terms = {v: p * k for v, k in first}
            for v, k in second:
                total = terms.get(v, 0) - q * k
                if total:
                    terms[v] = total
                else:
                    del terms[v]
            if not insert(shadow, terms, None if low is None or other_high is None else p * low - q * other_high + gap,
                          None if high is None or other_low is None else p * high - q * other_low - gap):
                return None
    return shadow, mine


def interval(rows: Rows, var: int, point: dict[int, int]) -> Bounds:
    """Return the least and the greatest integer that some rows allow for a variable at `point`; the least may exceed the greatest.

    Other variables not in `point` are set to 0 there.
    """
    least: int | None = None
    most: int | None = None
    for form, (low, high) in rows.items():
        factor, rest = 0, 0
        for other, c in form:
            if other == var:
                factor = c
            else:
                rest += c * point.setdefault(other, 0)
        if factor < 0:
            factor, rest = -factor, -rest
            low, high = None if high is None else -high, None if low is None else -low
        if low is not None:
            bound = -((rest - low) // factor)
            least = bound if least is None or bound > least else least
        if high is not None:
            bound = (high - rest) // factor
            most = bound if most is None or bound < most else most
    return least, most


_ROUNDS = 3      # limit: on some rows two bounds tighten each other without end


def tighten(rows: Rows) -> Rows | None:
    """Return the same set with variable bounds tightened by single rows, without rows that the bounds imply; None if empty."""
    low: dict[int, int] = {}
    high: dict[int, int] = {}
    wide: list[tuple[Form, int | None, int | None]] = []
    for form, (least, most) in rows.items():
        if len(form) == 1:
            var = form[0][0]
            if least is not None:
                low[var] = least
            if most is not None:
                high[var] = most
        else:
            wide.append((form, least, most))
    for _ in range(_ROUNDS):
        changed = False
        kept: list[tuple[Form, int | None, int | None]] = []
        for form, least, most in wide:
            # Least and greatest value of the form, and the number of variables that leave each side open.
            bottom = top = open_bottom = open_top = 0
            for var, c in form:
                at_bottom, at_top = (low.get(var), high.get(var)) if c > 0 else (high.get(var), low.get(var))
                if at_bottom is None:
                    open_bottom += 1
                else:
                    bottom += c * at_bottom
                if at_top is None:
                    open_top += 1
                else:
                    top += c * at_top
            if least is not None:
                if not open_top and top < least:
                    return None
                if not open_bottom and bottom >= least:
                    least = None
            if most is not None:
                if not open_bottom and bottom > most:
                    return None
                if not open_top and top <= most:
                    most = None
            if least is None and most is None:
                continue
            kept.append((form, least, most))
            if open_top > 1:
                least = None   # implies no bound of a single variable
            if open_bottom > 1:
                most = None
            if least is None and most is None:
                continue
            for var, c in form:
                at_bottom, at_top = (low.get(var), high.get(var)) if c > 0 else (high.get(var), low.get(var))
                new_low = new_high = None
                if least is not None and (not open_top or (open_top == 1 and at_top is None)):
                    rest = least - (top if at_top is None else top - c * at_top)          # c · var >= rest
                    new_low, new_high = (-(-rest // c), None) if c > 0 else (None, rest // c)
                if most is not None and (not open_bottom or (open_bottom == 1 and at_bottom is None)):
                    rest = most - (bottom if at_bottom is None else bottom - c * at_bottom)   # c · var <= rest
                    if c > 0:
                        new_high = rest // c
                    else:
                        new_low = -(-rest // c)
                if new_low is not None and (var not in low or low[var] < new_low):
                    low[var] = new_low
                    changed = True
                if new_high is not None and (var not in high or high[var] > new_high):
                    high[var] = new_high
                    changed = True
                if var in low and var in high and low[var] > high[var]:
                    return None
        wide = kept
        if not changed:
            break
    tight: Rows = {((var, 1),): (low.get(var), high.get(var)) for var in {**low, **high}}
    tight.update({form: (least, most) for form, least, most in wide})
    return tight
