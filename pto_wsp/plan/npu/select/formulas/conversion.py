"""Conversions between dtypes as the language has them: by a rounding mode, saturating or wrapping, rounded once.

Floats are given and taken in f32, integers in what they lie in on chip. The device's own conversions round to even or cut, and are asked
only for numbers that fit: its other modes, and what it makes of the rest, differ between cores.
"""

from __future__ import annotations

from pto_wsp.plan.npu.select.formulas.bits import wrapped
from pto_wsp.plan.npu.select.formulas.lanes import Lane, Lanes
from pto_wsp.plan.npu.select.formulas.rounding import down, half_away, rounded, to_zero, up
from pto_wsp.types.dtype import DType, Family

_LARGEST = {DType.F16: 65504.0, DType.BF16: float.fromhex("0x1.fep127")}


def range_of(dtype: DType) -> tuple[int, int]:
    """Return the smallest and the largest number of an integer dtype."""
    bits = 8 * dtype.nbytes
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if dtype.family is Family.INT else (0, (1 << bits) - 1)


# ---- from floats ----

def float_to_integer(work: Lanes, x: Lane, dtype: DType, kept: DType, mode: str, saturate: bool) -> Lane:
    """Return f32 as `dtype`, which lies in `kept`: NaN becomes 0."""
    whole = work.select(work.compare(x, "EQ", x), _whole(work, x, mode), 0.0)
    low, high = range_of(dtype)
    if not saturate:
        size = work.abs(whole)
        rest = work.sub(size, work.mul(down(work, work.mul(size, 2.0 ** -32)), 2.0 ** 32))
        bits = _unsigned(work, work.select(work.compare(size, "LT", float("inf")), rest, 0.0))
        return narrow(work, wrapped(work, work.select(work.compare(whole, "LT", 0.0), work.mul(bits, -1), bits), dtype), kept)
    if dtype is DType.U32:
        return _unsigned(work, work.max(whole, 0.0))
    if dtype is DType.I32:
        near = work.convert(work.min(work.max(whole, float(low)), 2147483520.0), DType.I32, "TRUNC")
        return work.select(work.compare(whole, "GE", 2.0 ** 31), high, near)
    return work.convert(work.min(work.max(whole, float(low)), float(high)), kept, "RINT")


def _whole(work: Lanes, x: Lane, mode: str) -> Lane:
    match mode:
        case "rint":
            return rounded(work, x)
        case "round":
            return half_away(work, x)
        case "floor":
            return down(work, x)
        case "ceil":
            return up(work, x)
        case "trunc":
            return to_zero(work, x)
        case _:
            low = down(work, x)
            half = work.mul(low, 0.5)
            exact = work.select(work.compare(low, "EQ", x), low, work.add(low, 1.0))
            return work.select(work.compare(down(work, half), "EQ", half), exact, low)


def _unsigned(work: Lanes, whole: Lane) -> Lane:
    """Return the bits of a u32, of f32 in [0, 2^32], or beyond."""
    high = work.compare(whole, "GE", 2.0 ** 31)
    near = work.convert(work.min(work.max(work.select(high, work.add(whole, -(2.0 ** 31)), whole), 0.0), 2147483520.0), DType.I32, "TRUNC")
    near = work.select(high, work.add(near, -(1 << 31)), near)
    return work.select(work.compare(whole, "GE", 2.0 ** 32), -1, near)


def bounded(work: Lanes, x: Lane) -> Lane:
    """Return f32 with the largest finite numbers in place of infinities."""
    most = float.fromhex("0x1.fffffep127")
    return work.select(work.compare(x, "EQ", x), work.min(work.max(x, -most), most), x)


def float_to_half(work: Lanes, x: Lane, dtype: DType, mode: str, saturate: bool) -> Lane:
    """Return f32 as f16 or bf16: rounded to even, then a step towards or away from zero where the mode asks for it."""
    near = work.convert(x, dtype, "RINT")
    if mode != "rint":
        near = _stepped(work, x, near, dtype, mode)
    if not saturate:
        return near
    most = _LARGEST[dtype]
    size = work.abs(work.convert(near, DType.F32))
    bounded = work.convert(work.select(work.compare(x, "LT", 0.0), work.full(-most, DType.F32), work.full(most, DType.F32)), dtype, "RINT")
    over = _at_width(work, work.compare(size, "GT", most), dtype)
    return work.select(over, bounded, near)


def _at_width(work: Lanes, mask: Lane, dtype: DType) -> Lane:
    """Return a packed mask of f32 as one of two bytes."""
    flags = work.convert(work.select(mask, 1.0, 0.0), DType.F16, "RINT")
    return work.compare(flags, "NE", 0.0)


def _stepped(work: Lanes, x: Lane, near: Lane, dtype: DType, mode: str) -> Lane:
    """Return the neighbour of x that a mode chooses: by magnitude the next below is the bits less one, and above one more."""
    size = work.abs(x)
    bits = work.seen_as(near, DType.I16)
    beyond = _at_width(work, work.compare(work.abs(work.convert(near, DType.F32)), "GT", size), dtype)
    inner_bits = work.select(beyond, work.add(bits, -1), bits)
    inner = work.abs(work.convert(work.seen_as(inner_bits, dtype), DType.F32))
    inexact = work.select(work.compare(inner, "LT", size), 1.0, 0.0)
    outer_bits = work.add(inner_bits, 1)
    match mode:
        case "trunc":
            wanted = work.full(0.0, DType.F32)
        case "floor":
            wanted = work.select(work.compare(x, "LT", 0.0), inexact, 0.0)
        case "ceil":
            wanted = work.select(work.compare(x, "LT", 0.0), 0.0, inexact)
        case "round":
            outer = work.abs(work.convert(work.seen_as(outer_bits, dtype), DType.F32))
            wanted = work.select(work.compare(work.sub(size, inner), "GE", work.sub(outer, size)), inexact, 0.0)
            endless = work.compare(work.abs(work.convert(near, DType.F32)), "EQ", float("inf"))
            wanted = work.select(endless, inexact, wanted)
        case _:
            odd = work.op("TAND", inner_bits, work.full(1, DType.I16))
            is_even = work.select(work.compare(work.convert(odd, DType.F32), "EQ", 0.0), 1.0, 0.0)
            wanted = work.mul(inexact, is_even)
    away = _at_width(work, work.compare(wanted, "NE", 0.0), dtype)
    return work.seen_as(work.select(away, outer_bits, inner_bits), dtype)


# ---- from integers ----

def integer_to_float(work: Lanes, x: Lane, source: DType, target: DType) -> Lane:
    """Return integers as f32 that round to `target` once."""
    if source is DType.U32:
        upper = work.bitwise("TAND", work.shift(x, -16), work.full(0xffff, DType.I32))
        lower = work.bitwise("TAND", x, work.full(0xffff, DType.I32))
        upper, lower = (work.convert(part, DType.F32, "RINT") for part in (upper, lower))
        if target is DType.BF16:     # of a large number, only whether the lower half is 0 counts: its digits would round it twice
            lower = work.select(work.compare(upper, "LT", 256.0), lower, work.mul(work.min(lower, 1.0), 256.0))
        return work.add(work.mul(upper, 65536.0), lower)
    if source is DType.I32 and target is DType.BF16:
        low = work.bitwise("TAND", x, work.full(0xff, DType.I32))
        odd = work.select(work.compare(low, "EQ", 0), 0, 256, DType.I32)
        few = work.convert(work.bitwise("TOR", work.sub(x, low), odd), DType.F32, "RINT")
        near = work.convert(x, DType.F32, "RINT")
        return work.select(work.compare(work.abs(near), "LT", 2.0 ** 24), near, few)
    return work.convert(x, DType.F32, "RINT")


def integer_to_integer(work: Lanes, x: Lane, source: DType, target: DType, kept: DType, saturate: bool) -> Lane:
    """Return integers as `target`, which lies in `kept`: wrapped, or the nearest that fits."""
    low, high = range_of(target)
    if saturate:
        if source is DType.U32 and target is not DType.U32:     # what looks negative is large
            x = work.select(work.compare(work.max(x, 0), "EQ", x), x, (1 << 31) - 1)
        first, last = range_of(x.dtype)
        x = work.max(x, low) if low > first and source is not DType.U32 else x
        x = work.min(x, high) if high < last else x
    if x.dtype is kept:
        return wrapped(work, x, target)
    if kept is DType.I32:
        wide = work.convert(work.convert(x, DType.F32), DType.I32, "RINT")
        return wrapped(work, wide, target)
    return narrow(work, wrapped(work, x, target), kept)


def narrow(work: Lanes, x: Lane, kept: DType) -> Lane:
    """Return i32 that fit in what they are to lie in, i16 or i32."""
    return x if kept is x.dtype else work.convert(work.convert(x, DType.F32, "RINT"), kept, "RINT")
