"""Formulas on lanes for shifts, rounding, division and conversions, exact as in the language.

- Rounding to even adds and subtracts 2^23: exact below it, and every larger f32 is whole. The other modes follow from that one, so no
  rounding mode of the vector unit matters.
- Quotients of integers round down, and remainders have the divisor's sign; an integer divided by 0 gives 0.
- Conversions take floats in f32, and integers in the dtype in which the chip stores them. The device's own conversion is used only to round
  to even or truncate numbers that fit: cores differ in other modes, and in numbers out of range.
"""

from __future__ import annotations

from pto_wsp.ir.dtype import DType, Family
from pto_wsp.npu.rules.lanes import Lane, Lanes


def shift_bits(work: Lanes, x: Lane, y: Lane, left: bool, dtype: DType) -> Lane:
    """Return i32 values of `dtype` shifted by y places; 0 if y is negative or at least the width.

    Conditional steps of 1, 2, 4, 8 and 16 places avoid the devices' shifts by a tile of numbers.
    """
    width = 8 * dtype.nbytes
    places = work.convert(y, DType.F32, "RINT")
    inside = work.compare(work.min(work.max(places, 0.0), width - 1.0), "EQ", places)
    left_over = work.select(inside, places, 0.0)
    value = x
    if dtype is DType.U32 and not left:        # the first step clears the sign bit
        taken = work.compare(left_over, "GE", 1.0)
        value = work.select(taken, work.bitwise("TAND", work.shift(x, -1), work.full(0x7fffffff, DType.I32)), x)
        left_over = work.max(work.add(left_over, -1.0), 0.0)
    for places_here in (16, 8, 4, 2, 1):
        if places_here < width:
            taken = work.compare(left_over, "GE", float(places_here))
            value = work.select(taken, work.shift(value, places_here if left else -places_here), value)
            left_over = work.select(taken, work.add(left_over, -float(places_here)), left_over)
    return work.select(inside, value, 0)


def shift_by(work: Lanes, x: Lane, places: int, left: bool, dtype: DType) -> Lane:
    """Return i32 values of `dtype` shifted by a number of places known now; 0 if it is negative or at least the width."""
    if not 0 <= places < 8 * dtype.nbytes:
        return work.full(0, DType.I32)
    if places == 0:
        return x
    if left or dtype is not DType.U32:
        return work.shift(x, places if left else -places)
    return work.bitwise("TAND", work.shift(x, -places), work.full((1 << 32 - places) - 1, DType.I32))


def wrap_integer(work: Lanes, x: Lane, dtype: DType) -> Lane:
    """Return i32 or i16 numbers wrapped to `dtype`: the lowest bits, sign-extended if it is signed."""
    spare = 8 * (x.dtype.nbytes - dtype.nbytes)
    if spare == 0:
        return x
    if dtype.family is Family.UINT:
        return work.bitwise("TAND", x, work.full((1 << 8 * dtype.nbytes) - 1, x.dtype))
    return work.shift(work.shift(x, spare), -spare)


# -- rounding --------------------------------------------------------------------------------------


_WHOLE = float(1 << 23)


def round_to_even(work: Lanes, x: Lane) -> Lane:
    """Return f32 rounded to the nearest whole number, half to even; infinities and NaN are kept."""
    size = work.abs(x)
    near = work.sub(work.add(size, _WHOLE), _WHOLE)
    signed = work.select(work.compare(x, "LT", 0.0), work.neg(near), near)
    return work.select(work.compare(size, "LT", _WHOLE), signed, x)


def round_down(work: Lanes, x: Lane) -> Lane:
    """Return f32 rounded down."""
    near = round_to_even(work, x)
    return work.select(work.compare(near, "GT", x), work.sub(near, 1.0), near)


def round_up(work: Lanes, x: Lane) -> Lane:
    """Return f32 rounded up."""
    near = round_to_even(work, x)
    return work.select(work.compare(near, "LT", x), work.add(near, 1.0), near)


def round_to_zero(work: Lanes, x: Lane) -> Lane:
    """Return f32 rounded towards zero."""
    size = work.abs(x)
    low = round_down(work, size)
    return work.select(work.compare(x, "LT", 0.0), work.neg(low), low)


def round_half_away(work: Lanes, x: Lane) -> Lane:
    """Return f32 rounded to the nearest whole number, half away from zero."""
    size = work.abs(x)
    low = round_down(work, size)
    near = work.select(work.compare(work.sub(size, low), "GE", 0.5), work.add(low, 1.0), low)
    return work.select(work.compare(x, "LT", 0.0), work.neg(near), near)


# -- division --------------------------------------------------------------------------------------


def divide_floats(work: Lanes, x: Lane, y: Lane) -> tuple[Lane, Lane]:
    """Return x // y and x mod y of f32, as NumPy defines them."""
    zero = work.compare(y, "EQ", 0.0)
    rest = work.op("TFMOD", x, work.select(zero, 1.0, y), in_place=False)      # a divisor of 0 aborts the core
    quotient = work.div(work.sub(x, rest), y)
    opposed = work.select(work.compare(y, "LT", 0.0), work.neg(rest), rest)         # negative if the signs differ
    turns = work.compare(opposed, "LT", 0.0)
    remainder = work.select(turns, work.add(rest, y), rest)
    quotient = round_to_even(work, work.select(turns, work.sub(quotient, 1.0), quotient))
    return work.select(zero, work.div(x, y), quotient), work.select(zero, float("nan"), remainder)


def divide_small_integers(work: Lanes, x: Lane, y: Lane) -> tuple[Lane, Lane]:
    """Return x // y and x mod y of whole numbers of at most 16 bits, in f32, whose quotient rounds correctly."""
    zero = work.compare(y, "EQ", 0.0)
    safe = work.select(zero, 1.0, y)
    quotient = round_down(work, work.div(x, safe))
    rest = work.sub(x, work.mul(quotient, safe))
    return work.select(zero, 0.0, quotient), work.select(zero, 0.0, rest)


def divide_i32(work: Lanes, x: Lane, y: Lane) -> tuple[Lane, Lane]:
    """Return x // y and x mod y of i32.

    Sums three f32 quotients of the successive remainders, then steps down if the signs differ.
    """
    zero = work.compare(y, "EQ", 0)
    safe = work.select(zero, 1, y)
    divisor = _float(work, safe)
    quotient, rest = work.full(0, DType.I32), x
    for _ in range(3):
        near = _whole_quotient(work, work.div(_float(work, rest), divisor))
        quotient, rest = work.add(quotient, near), work.sub(rest, work.mul(near, safe))
    opposed = work.compare(work.mul(_sign(work, rest), _sign(work, safe)), "LT", 0.0)     # here |rest| < |y|
    quotient = work.select(opposed, work.add(quotient, -1), quotient)
    rest = work.select(opposed, work.add(rest, safe), rest)
    return work.select(zero, 0, quotient), work.select(zero, 0, rest)


def _float(work: Lanes, x: Lane) -> Lane:
    return work.convert(x, DType.F32, "RINT")


def _whole_quotient(work: Lanes, x: Lane) -> Lane:
    return work.convert(work.min(work.max(x, -2147483648.0), 2147483520.0), DType.I32, "TRUNC")


def _sign(work: Lanes, x: Lane) -> Lane:
    """Return the sign of an i32 as f32, exact for every number."""
    return work.min(work.max(_float(work, x), -1.0), 1.0)


# -- conversions -----------------------------------------------------------------------------------


_LARGEST = {DType.F16: 65504.0, DType.BF16: float.fromhex("0x1.fep127")}


def range_of(dtype: DType) -> tuple[int, int]:
    """Return the smallest and the largest number of an integer dtype."""
    bits = 8 * dtype.nbytes
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if dtype.family is Family.INT else (0, (1 << bits) - 1)


# -- from floats

def float_to_integer(work: Lanes, x: Lane, dtype: DType, kept: DType, mode: str, saturate: bool) -> Lane:
    """Return f32 converted to `dtype`, stored as `kept`; NaN becomes 0."""
    whole = work.select(work.compare(x, "EQ", x), _whole(work, x, mode), 0.0)
    low, high = range_of(dtype)
    if not saturate:
        size = work.abs(whole)
        rest = work.sub(size, work.mul(round_down(work, work.mul(size, 2.0 ** -32)), 2.0 ** 32))
        bits = _float_to_u32(work, work.select(work.compare(size, "LT", float("inf")), rest, 0.0))
        return narrow(work, wrap_integer(work, work.select(work.compare(whole, "LT", 0.0), work.mul(bits, -1), bits), dtype), kept)
    if dtype is DType.U32:
        return _float_to_u32(work, work.max(whole, 0.0))
    if dtype is DType.I32:
        near = work.convert(work.min(work.max(whole, float(low)), 2147483520.0), DType.I32, "TRUNC")
        return work.select(work.compare(whole, "GE", 2.0 ** 31), high, near)
    return work.convert(work.min(work.max(whole, float(low)), float(high)), kept, "RINT")


def _whole(work: Lanes, x: Lane, mode: str) -> Lane:
    match mode:
        case "rint":
            return round_to_even(work, x)
        case "round":
            return round_half_away(work, x)
        case "floor":
            return round_down(work, x)
        case "ceil":
            return round_up(work, x)
        case "trunc":
            return round_to_zero(work, x)
        case _:
            low = round_down(work, x)
            half = work.mul(low, 0.5)
            exact = work.select(work.compare(low, "EQ", x), low, work.add(low, 1.0))
            return work.select(work.compare(round_down(work, half), "EQ", half), exact, low)


def _float_to_u32(work: Lanes, whole: Lane) -> Lane:
    """Return the bits of a u32 from f32, clamped to its range."""
    high = work.compare(whole, "GE", 2.0 ** 31)
    near = work.convert(work.min(work.max(work.select(high, work.add(whole, -(2.0 ** 31)), whole), 0.0), 2147483520.0), DType.I32, "TRUNC")
    near = work.select(high, work.add(near, -(1 << 31)), near)
    return work.select(work.compare(whole, "GE", 2.0 ** 32), -1, near)


def clamp_infinities(work: Lanes, x: Lane) -> Lane:
    """Return f32 with infinities replaced by the largest finite numbers."""
    most = float.fromhex("0x1.fffffep127")
    return work.select(work.compare(x, "EQ", x), work.min(work.max(x, -most), most), x)


def float_to_half(work: Lanes, x: Lane, dtype: DType, mode: str, saturate: bool) -> Lane:
    """Return f32 as f16 or bf16: rounded to even, then moved to the neighbour that the mode asks for."""
    near = work.convert(x, dtype, "RINT")
    if mode != "rint":
        near = _neighbour(work, x, near, dtype, mode)
    if not saturate:
        return near
    most = _LARGEST[dtype]
    size = work.abs(work.convert(near, DType.F32))
    bounded = work.convert(work.select(work.compare(x, "LT", 0.0), work.full(-most, DType.F32), work.full(most, DType.F32)), dtype, "RINT")
    over = _at_width(work, work.compare(size, "GT", most), dtype)
    return work.select(over, bounded, near)


def _at_width(work: Lanes, mask: Lane, dtype: DType) -> Lane:
    """Return a packed mask of f32 elements as a packed mask of two-byte elements."""
    flags = work.convert(work.select(mask, 1.0, 0.0), DType.F16, "RINT")
    return work.compare(flags, "NE", 0.0)


def _neighbour(work: Lanes, x: Lane, near: Lane, dtype: DType, mode: str) -> Lane:
    """Return the neighbour of x that a rounding mode chooses. By magnitude, the bits less one are the next number below, plus one above."""
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


# -- from integers

def integer_to_float(work: Lanes, x: Lane, source: DType, target: DType) -> Lane:
    """Return integers as f32 from which one rounding gives `target`."""
    if source is DType.U32:
        upper = work.bitwise("TAND", work.shift(x, -16), work.full(0xffff, DType.I32))
        lower = work.bitwise("TAND", x, work.full(0xffff, DType.I32))
        upper, lower = (work.convert(part, DType.F32, "RINT") for part in (upper, lower))
        if target is DType.BF16:     # of a large number only a nonzero lower half counts: its digits would round twice
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
    """Return integers as `target`, stored as `kept`: wrapped, or clamped to its range."""
    low, high = range_of(target)
    if saturate:
        if source is DType.U32 and target is not DType.U32:     # a negative i32 represents a large u32
            x = work.select(work.compare(work.max(x, 0), "EQ", x), x, (1 << 31) - 1)
        first, last = range_of(x.dtype)
        x = work.max(x, low) if low > first and source is not DType.U32 else x
        x = work.min(x, high) if high < last else x
    if x.dtype is kept:
        return wrap_integer(work, x, target)
    if kept is DType.I32:
        wide = work.convert(work.convert(x, DType.F32), DType.I32, "RINT")
        return wrap_integer(work, wide, target)
    return narrow(work, wrap_integer(work, x, target), kept)


def narrow(work: Lanes, x: Lane, kept: DType) -> Lane:
    """Return i32 values that fit in `kept`, i16 or i32, in that dtype."""
    return x if kept is x.dtype else work.convert(work.convert(x, DType.F32, "RINT"), kept, "RINT")
