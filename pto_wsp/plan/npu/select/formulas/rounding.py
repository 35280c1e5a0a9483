"""Rounding of f32 to whole numbers: to even, down, up, towards zero, half away from zero.

Rounding to even is adding and taking away 2^23, which is exact below it; above, every f32 is whole. The vector units' own conversions
are not asked, so that no mode of theirs matters.
"""

from __future__ import annotations

from pto_wsp.plan.npu.select.formulas.lanes import Lane, Lanes

_WHOLE = float(1 << 23)


def rounded(work: Lanes, x: Lane) -> Lane:
    """Return an f32 rounded to the nearest whole number, half to even; infinities and NaN as they are."""
    size = work.abs(x)
    near = work.sub(work.add(size, _WHOLE), _WHOLE)
    signed = work.select(work.compare(x, "LT", 0.0), work.neg(near), near)
    return work.select(work.compare(size, "LT", _WHOLE), signed, x)


def down(work: Lanes, x: Lane) -> Lane:
    """Return an f32 rounded down."""
    near = rounded(work, x)
    return work.select(work.compare(near, "GT", x), work.sub(near, 1.0), near)


def up(work: Lanes, x: Lane) -> Lane:
    """Return an f32 rounded up."""
    near = rounded(work, x)
    return work.select(work.compare(near, "LT", x), work.add(near, 1.0), near)


def to_zero(work: Lanes, x: Lane) -> Lane:
    """Return an f32 rounded towards zero."""
    size = work.abs(x)
    low = down(work, size)
    return work.select(work.compare(x, "LT", 0.0), work.neg(low), low)


def half_away(work: Lanes, x: Lane) -> Lane:
    """Return an f32 rounded to the nearest whole number, half away from zero."""
    size = work.abs(x)
    low = down(work, size)
    near = work.select(work.compare(work.sub(size, low), "GE", 0.5), work.add(low, 1.0), low)
    return work.select(work.compare(x, "LT", 0.0), work.neg(near), near)
