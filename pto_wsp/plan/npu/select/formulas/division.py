"""Division of whole numbers and remainders: rounded down, the remainder with the divisor's sign; an integer divided by 0 gives 0."""

from __future__ import annotations

from pto_wsp.plan.npu.select.formulas.lanes import Lane, Lanes
from pto_wsp.plan.npu.select.formulas.rounding import down, rounded
from pto_wsp.types.dtype import DType


def float_divided(work: Lanes, x: Lane, y: Lane) -> tuple[Lane, Lane]:
    """Return x // y and x mod y of f32, as NumPy has them."""
    zero = work.compare(y, "EQ", 0.0)
    rest = work.op("TFMOD", x, work.select(zero, 1.0, y), in_place=False)      # a divisor of 0 ends the core with an assertion
    quotient = work.div(work.sub(x, rest), y)
    opposed = work.select(work.compare(y, "LT", 0.0), work.neg(rest), rest)         # below 0 where the signs differ
    turns = work.compare(opposed, "LT", 0.0)
    remainder = work.select(turns, work.add(rest, y), rest)
    quotient = rounded(work, work.select(turns, work.sub(quotient, 1.0), quotient))
    return work.select(zero, work.div(x, y), quotient), work.select(zero, float("nan"), remainder)


def small_divided(work: Lanes, x: Lane, y: Lane) -> tuple[Lane, Lane]:
    """Return x // y and x mod y of whole numbers of at most 16 bits, given and returned in f32, where their quotient rounds rightly."""
    zero = work.compare(y, "EQ", 0.0)
    safe = work.select(zero, 1.0, y)
    quotient = down(work, work.div(x, safe))
    rest = work.sub(x, work.mul(quotient, safe))
    return work.select(zero, 0.0, quotient), work.select(zero, 0.0, rest)


def wide_divided(work: Lanes, x: Lane, y: Lane) -> tuple[Lane, Lane]:
    """Return x // y and x mod y of i32: quotients in f32 of what is left, then a step down where the signs differ."""
    zero = work.compare(y, "EQ", 0)
    safe = work.select(zero, 1, y)
    divisor = _float(work, safe)
    quotient, rest = work.full(0, DType.I32), x
    for _ in range(3):
        near = _whole(work, work.div(_float(work, rest), divisor))
        quotient, rest = work.add(quotient, near), work.sub(rest, work.mul(near, safe))
    opposed = work.compare(work.mul(_sign(work, rest), _sign(work, safe)), "LT", 0.0)     # now |rest| < |y|
    quotient = work.select(opposed, work.add(quotient, -1), quotient)
    rest = work.select(opposed, work.add(rest, safe), rest)
    return work.select(zero, 0, quotient), work.select(zero, 0, rest)


def _float(work: Lanes, x: Lane) -> Lane:
    return work.convert(x, DType.F32, "RINT")


def _whole(work: Lanes, x: Lane) -> Lane:
    return work.convert(work.min(work.max(x, -2147483648.0), 2147483520.0), DType.I32, "TRUNC")


def _sign(work: Lanes, x: Lane) -> Lane:
    """Return the sign of an i32 as an f32, exact for every number."""
    return work.min(work.max(_float(work, x), -1.0), 1.0)
