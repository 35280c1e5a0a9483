"""Elementwise functions of several instructions in f32: tanh, sigmoid, silu, erf, gelu, sin, cos, pow, exp2, log2.

Formulas and coefficients are those of the C runtime (`csrc/include/math/pto_functions.h`), where their errors are measured. Here every
product is rounded before an addition, and there is no f64. Small arguments keep their relative accuracy.
"""

from __future__ import annotations

from pto_wsp.ir.dtype import DType
from pto_wsp.npu.rules.formulas import round_to_even, round_to_zero
from pto_wsp.npu.rules.lanes import Lane, Lanes

_hex = float.fromhex

# -- tanh, sigmoid, silu, erf, gelu

TANH = tuple(map(_hex, ("-0x1.75e1bap-8", "0x1.522722p-6", "-0x1.b83c56p-5", "0x1.11073ap-3", "-0x1.55553ep-2")))
ERF_NEAR = tuple(map(_hex, ("-0x1.38ep-11", "0x1.471a58p-8", "-0x1.b691b2p-6", "0x1.ce1c44p-4", "-0x1.8127p-2", "0x1.06eba8p-3")))
ERF_FAR = tuple(map(_hex, ("-0x1.22p-16", "0x1.91cfb2p-12", "-0x1.fd1438p-9", "0x1.8d6342p-6", "-0x1.b55cb8p-4", "-0x1.450aap-1",
                            "-0x1.079d0cp-3")))
NORMAL_TAIL = tuple(map(_hex, ("-0x1.950f04p-9", "-0x1.2012f2p-6", "0x1.23605cp-4", "-0x1.8f63c8p-5", "-0x1.836d42p-6", "-0x1.fba2bcp-5",
                                "0x1.a2ecfcp-4", "0x1.0b575p-2", "-0x1.47983p-1", "0x1p-1")))


def tanh(work: Lanes, x: Lane) -> Lane:
    """Return tanh x: an odd polynomial for |x| < 0.625, 1 - 2 / (e^2|x| + 1) above."""
    size, square = work.abs(x), work.mul(x, x)
    near = work.add(work.mul(work.mul(work.polynomial(square, *TANH), square), x), x)
    far = work.sub(1.0, work.div(2.0, work.add(work.exp(work.add(size, size)), 1.0)))
    return work.select(work.compare(size, "LT", 0.625), near, _signed(work, far, x))


def sigmoid(work: Lanes, x: Lane) -> Lane:
    """Return 1 / (1 + e^-x)."""
    return work.div(1.0, _one_and_exp(work, work.neg(x)))


def silu(work: Lanes, x: Lane) -> Lane:
    """Return x / (1 + e^-x)."""
    return work.div(x, _one_and_exp(work, work.neg(x)))


def erf(work: Lanes, x: Lane) -> Lane:
    """Return erf x: an odd polynomial for |x| up to 0.9277, 1 - e^polynomial above."""
    size, square = work.abs(x), work.mul(x, x)
    near = work.add(work.mul(work.polynomial(square, *ERF_NEAR), x), x)
    power = work.max(work.sub(work.mul(work.polynomial(work.min(size, 10.0), *ERF_FAR), size), size), -128.0)
    far = _signed(work, work.sub(1.0, work.exp(power)), x)
    return work.select(work.compare(size, "GT", 0.927734375), far, work.select(work.compare(x, "EQ", x), near, x))


def gelu(work: Lanes, x: Lane) -> Lane:
    """Return x Phi(x), where Phi(-a) = e^(-a^2 / 2) t P(1 - t) with t = 1 / (1 + 0.35 a): no cancellation on either side."""
    size = work.abs(x)
    t = work.div(1.0, work.add(work.mul(size, 0.35), 1.0))
    tail = work.mul(work.polynomial(work.sub(1.0, t), *NORMAL_TAIL), t)
    tail = work.mul(work.exp(work.mul(work.mul(size, size), -0.5)), tail)
    return work.mul(work.select(work.compare(x, "LT", 0.0), tail, work.sub(1.0, tail)), x)


def gelu_tanh(work: Lanes, x: Lane) -> Lane:
    """Return x / (1 + e^-2u), which equals x (1 + tanh u) / 2, with 2u = x (1.5957... + 0.0713... x^2)."""
    factor = work.add(work.mul(work.mul(x, x), 0.07135481627260025), 1.5957691216057308)
    return work.div(x, _one_and_exp(work, work.neg(work.mul(factor, x))))


def _one_and_exp(work: Lanes, x: Lane) -> Lane:
    return work.add(work.exp(x), 1.0)


def _signed(work: Lanes, size: Lane, x: Lane) -> Lane:
    return work.select(work.compare(x, "LT", 0.0), work.neg(size), size)


# -- sin, cos

SIN = tuple(map(_hex, ("0x1.71d7264e6b5b4p-19", "-0x1.a0186079d97a7p-13", "0x1.11110f2e25c02p-7", "-0x1.555555540f6e2p-3")))
COS = tuple(map(_hex, ("0x1.99343027bf8c3p-16", "-0x1.6c087e89a359dp-10", "0x1.55553e1068f19p-5", "-0x1.ffffffd0c621cp-2")))
# pi / 2 in pieces of at most 12 bits: the product of a piece and a whole number below 2^12 is exact.
_HALF_PI = tuple(map(_hex, ("0x1.92p0", "0x1.fb4p-12", "0x1.444p-24", "0x1.68c234c4c6628p-39")))
LARGEST_ANGLE = 6.0e6


def sin(work: Lanes, x: Lane) -> Lane:
    """Return the sine of an angle up to LARGEST_ANGLE; 0 for larger angles."""
    return _sincos(work, x, 0.0)


def cos(work: Lanes, x: Lane) -> Lane:
    """Return the cosine of an angle up to LARGEST_ANGLE; 1 for larger angles."""
    return _sincos(work, x, 1.0)


def _sincos(work: Lanes, x: Lane, quarter: float) -> Lane:
    """Return sin(x + quarter * pi / 2): subtract k quarter turns in exact pieces, then evaluate a polynomial in the rest."""
    near = work.select(work.compare(work.abs(x), "LT", LARGEST_ANGLE), x, work.mul(x, 0.0))
    turns = round_to_even(work, work.mul(near, 0.6366197723675814))
    coarse = work.mul(round_to_even(work, work.mul(turns, 1 / 2048)), 2048.0)
    fine = work.sub(turns, coarse)
    rest = near
    for piece in _HALF_PI[:-1]:
        rest = work.sub(work.sub(rest, work.mul(coarse, piece)), work.mul(fine, piece))
    rest = work.sub(rest, work.mul(turns, _HALF_PI[-1]))
    square = work.mul(rest, rest)
    sine = work.add(work.mul(work.mul(work.polynomial(square, *SIN), square), rest), rest)
    cosine = work.add(work.mul(work.polynomial(square, *COS), square), 1.0)
    turns = work.add(turns, quarter) if quarter else turns
    rounds = round_to_even(work, work.sub(work.mul(turns, 0.25), 0.375))          # whole turns, rounded down
    quadrant = work.sub(turns, work.mul(rounds, 4.0))
    odd = work.compare(work.abs(work.sub(quadrant, 2.0)), "EQ", 1.0)
    value = work.select(odd, cosine, sine)
    return work.select(work.compare(quadrant, "GE", 2.0), work.neg(value), value)


# -- pow, exp2, log2

_LOG2_E = 1.4426950408889634
_LN_2 = 0.6931471805599453


def power(work: Lanes, x: Lane, y: Lane) -> Lane:
    """Return 2^(y log2 |x|), with the edge cases of pow.

    Exponent and mantissa of x are separate, and y is split in two halves, so that the product with the exponent is exact.
    """
    size = work.abs(x)
    exponent, mantissa = _parts(work, size)
    log2 = work.mul(work.log(mantissa), _LOG2_E)
    y_given, y = y, work.min(work.max(y, -1e30), 1e30)
    high = work.sub(work.mul(y, 4097.0), work.sub(work.mul(y, 4097.0), y))
    low = work.sub(y, high)
    coarse = work.mul(high, exponent)
    fine = work.add(work.mul(low, exponent), work.mul(y, log2))
    bounded = work.min(work.max(work.add(coarse, fine), -250.0), 250.0)
    shift = round_to_even(work, bounded)
    fraction = work.min(work.max(work.add(work.sub(coarse, shift), fine), -1.0), 1.0)
    value = _scaled(work, work.exp(work.mul(fraction, _LN_2)), shift)
    return _pow_edges(work, x, size, y_given, value)


def _parts(work: Lanes, size: Lane) -> tuple[Lane, Lane]:
    """Return the exponent and the mantissa in [sqrt 1/2, sqrt 2) of a positive f32."""
    small = work.compare(size, "LT", _hex("0x1p-126"))
    normal = work.select(small, work.mul(size, _hex("0x1p23")), size)
    bits = work.seen_as(normal, DType.I32)
    above = work.shift(work.add(bits, -0x3f3504f3), -23)                   # exponent of the power of two nearest by ratio
    mantissa = work.seen_as(work.sub(bits, work.shift(above, 23)), DType.F32)
    exponent = work.convert(above, DType.F32, "RINT")
    return work.select(small, work.sub(exponent, 23.0), exponent), mantissa


def _scaled(work: Lanes, value: Lane, shift: Lane) -> Lane:
    """Return value * 2^shift in two steps; the second one rounds subnormal results."""
    first = round_to_even(work, work.mul(shift, 0.5))
    for part in (first, work.sub(shift, first)):
        exponent = work.convert(work.add(part, 127.0), DType.I32, "RINT")
        value = work.mul(value, work.seen_as(work.shift(exponent, 23), DType.F32))
    return value


def exp2(work: Lanes, x: Lane) -> Lane:
    """Return 2^x: the nearest whole number is the exponent, the rest goes through e^x."""
    bounded = work.min(work.max(x, -250.0), 250.0)
    shift = round_to_even(work, bounded)
    value = _scaled(work, work.exp(work.mul(work.sub(bounded, shift), _LN_2)), shift)
    return work.select(work.compare(x, "EQ", x), value, x)


def log2(work: Lanes, x: Lane) -> Lane:
    """Return log2 x: the exponent of x, plus the logarithm of its mantissa."""
    exponent, mantissa = _parts(work, x)
    value = work.add(work.mul(work.log(mantissa), _LOG2_E), exponent)
    value = work.select(work.compare(x, "EQ", 0.0), -float("inf"), value)
    value = work.select(work.compare(x, "EQ", float("inf")), x, value)
    value = work.select(work.compare(x, "LT", 0.0), float("nan"), value)
    return work.select(work.compare(x, "EQ", x), value, x)


def _pow_edges(work: Lanes, x: Lane, size: Lane, y: Lane, value: Lane) -> Lane:
    """Replace the values that the formula does not give: signs, zeros, infinities, NaN."""
    infinity = float("inf")
    # For 0, infinity and |x| = 1, the signs of y and of log |x| determine |x|^y.
    falls = work.select(work.compare(y, "LT", 0.0), infinity, 0.0)
    grows = work.select(work.compare(y, "LT", 0.0), 0.0, infinity)
    value = work.select(work.compare(size, "EQ", 0.0), falls, value)
    value = work.select(work.compare(size, "EQ", infinity), grows, value)
    endless = work.compare(work.abs(y), "EQ", infinity)
    towards = work.select(work.compare(size, "LT", 1.0), falls, grows)
    value = work.select(endless, towards, value)
    whole = round_to_zero(work, y)
    half = work.mul(y, 0.5)
    odd = work.select(work.compare(round_to_zero(work, half), "EQ", half), 0.0, 1.0)
    odd = work.select(work.compare(whole, "EQ", y), odd, 0.0)
    # The sign of a zero counts too: 1 / x reveals it.
    negative = work.select(work.compare(work.div(1.0, x), "LT", 0.0), 1.0, work.select(work.compare(x, "LT", 0.0), 1.0, 0.0))
    value = work.select(work.compare(work.mul(odd, negative), "EQ", 1.0), work.neg(value), value)
    undefined = work.select(work.compare(whole, "EQ", y), 0.0, negative)
    undefined = work.select(work.compare(size, "EQ", 0.0), 0.0, undefined)
    undefined = work.select(work.compare(size, "EQ", infinity), 0.0, undefined)
    value = work.select(work.compare(undefined, "EQ", 1.0), float("nan"), value)
    value = work.select(work.compare(x, "EQ", x), work.select(work.compare(y, "EQ", y), value, y), x)
    value = work.select(work.compare(size, "EQ", 1.0), work.select(endless, 1.0, value), value)
    return work.select(work.compare(y, "EQ", 0.0), 1.0, work.select(work.compare(x, "EQ", 1.0), 1.0, value))
