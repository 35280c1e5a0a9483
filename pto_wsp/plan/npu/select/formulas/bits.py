"""Shifts by a tile of numbers, and integers wrapped to a narrower width."""

from __future__ import annotations

from pto_wsp.plan.npu.select.formulas.lanes import Lane, Lanes
from pto_wsp.types.dtype import DType, Family


def shifted(work: Lanes, x: Lane, y: Lane, left: bool, dtype: DType) -> Lane:
    """Return i32 that stand for `dtype` shifted by as many places as y says, 0 where that is negative or at least the width.

    Conditional steps of 1, 2, 4, 8, 16 places: a shift by a tile of numbers is not relied on.
    """
    width = 8 * dtype.nbytes
    places = work.convert(y, DType.F32, "RINT")
    inside = work.compare(work.min(work.max(places, 0.0), width - 1.0), "EQ", places)
    left_over = work.select(inside, places, 0.0)
    value = x
    if dtype is DType.U32 and not left:        # the first step takes the sign away
        taken = work.compare(left_over, "GE", 1.0)
        value = work.select(taken, work.bitwise("TAND", work.shift(x, -1), work.full(0x7fffffff, DType.I32)), x)
        left_over = work.max(work.add(left_over, -1.0), 0.0)
    for places_here in (16, 8, 4, 2, 1):
        if places_here < width:
            taken = work.compare(left_over, "GE", float(places_here))
            value = work.select(taken, work.shift(value, places_here if left else -places_here), value)
            left_over = work.select(taken, work.add(left_over, -float(places_here)), left_over)
    return work.select(inside, value, 0)


def wrapped(work: Lanes, x: Lane, dtype: DType) -> Lane:
    """Return i32 or i16 numbers as `dtype` wraps them: its lowest bits, with their sign where it has one."""
    spare = 8 * (x.dtype.nbytes - dtype.nbytes)
    if spare == 0:
        return x
    if dtype.family is Family.UINT:
        return work.bitwise("TAND", x, work.full((1 << 8 * dtype.nbytes) - 1, x.dtype))
    return work.shift(work.shift(x, spare), -spare)
