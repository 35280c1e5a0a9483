"""Arithmetic of single elements.

What C must match beyond the obvious: integers wrap; `//` and `%` floor, and give 0 for an integer divisor of 0; maximum,
minimum and relu propagate NaN; round is half-even; sign of -0.0 is 0.0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pto_wsp.ops.entry import CFunction, Operator
from pto_wsp.ops.rounding import BITS, FLOATS, FOLDED_FLOATS, FOLDED_INTEGERS, INTEGERS, NUMBERS, UNSIGNED, Array
from pto_wsp.ops.spec import Elementwise
from pto_wsp.ops.traits import EITHER, Neutral, Side

_XY = ("x", "y")
_RIGHT = (Side.RIGHT,)
_FOLDED = (*FOLDED_FLOATS, *FOLDED_INTEGERS)
_USE_FLOORDIV = "integers divide with // (pto.floordiv); or convert both: pto.cast(x, DType.F32)"

add = Elementwise(name="add", doc="Return x + y; integers wrap.", params=_XY, ref=np.add, c=Operator("+"), npu="TADD",
                  numpy="{0} + {1}", neutral=(Neutral(0, EITHER, INTEGERS),), folds=_FOLDED, exact_in_f16=True)
sub = Elementwise(name="sub", doc="Return x - y; integers wrap.", aliases=("subtract",),
                  params=_XY, ref=np.subtract, c=Operator("-"), npu="TSUB",
                  numpy="{0} - {1}", neutral=(Neutral(0, _RIGHT, NUMBERS),), folds=_FOLDED, exact_in_f16=True)
mul = Elementwise(name="mul", doc="Return x * y; integers wrap.", aliases=("multiply",),
                  params=_XY, ref=np.multiply, c=Operator("*"), npu="TMUL",
                  numpy="{0} * {1}", neutral=(Neutral(1, EITHER, NUMBERS),), folds=_FOLDED, scales=FLOATS, exact_in_f16=True,
                  non_negative_of_equals=FLOATS)
div = Elementwise(name="div", doc="Return x / y; floats only.", aliases=("divide", "true_divide"),
                  params=_XY, ref=np.divide, c=Operator("/"), npu="TDIV",
                  dtypes=FLOATS, hint=_USE_FLOORDIV, numpy="{0} / {1}", neutral=(Neutral(1, _RIGHT, FLOATS),), folds=FOLDED_FLOATS,
                  scales=FLOATS, exact_in_f16=True)
maximum = Elementwise(name="maximum", doc="Return the larger of x and y; NaN if either is NaN.", params=_XY, ref=np.maximum,
                      c=CFunction("pto_maximum_{t}", simple=True), npu="TMAX", rounds=False,
                      numpy="np.maximum({0}, {1})", idempotent=NUMBERS, folds=FOLDED_INTEGERS, scales=FLOATS, keeps_range=INTEGERS,
                      exact_in_f16=True)
minimum = Elementwise(name="minimum", doc="Return the smaller of x and y; NaN if either is NaN.", params=_XY, ref=np.minimum,
                      c=CFunction("pto_minimum_{t}", simple=True), npu="TMIN", rounds=False,
                      numpy="np.minimum({0}, {1})", idempotent=NUMBERS, folds=FOLDED_INTEGERS, scales=FLOATS, keeps_range=INTEGERS,
                      exact_in_f16=True)
floordiv = Elementwise(name="floordiv", doc="Return x / y rounded down; an integer divided by 0 gives 0.", aliases=("floor_divide",),
                       params=_XY, ref=np.floor_divide, c=CFunction("pto_floordiv_{t}"), numpy="{0} // {1}",
                       neutral=(Neutral(1, _RIGHT, INTEGERS),))
mod = Elementwise(name="mod", doc="Return x - y * (x // y), with the sign of y; 0 for an integer y of 0.",
                  aliases=("remainder",), synonyms=("fmod",), params=_XY,
                  ref=np.mod, c=CFunction("pto_mod_{t}"), npu="TREM", numpy="{0} % {1}", keeps_range=INTEGERS)
and_ = Elementwise(name="and_", doc="Return x & y, bit by bit.", aliases=("bitwise_and",),
                   params=_XY, ref=np.bitwise_and, c=Operator("&"), npu="TAND",
                   dtypes=BITS, numpy="{0} & {1}", idempotent=BITS, keeps_range=INTEGERS)
or_ = Elementwise(name="or_", doc="Return x | y, bit by bit.", aliases=("bitwise_or",),
                  params=_XY, ref=np.bitwise_or, c=Operator("|"), npu="TOR",
                  dtypes=BITS, numpy="{0} | {1}", idempotent=BITS, neutral=(Neutral(0, EITHER, INTEGERS),), keeps_range=INTEGERS)
xor = Elementwise(name="xor", doc="Return x ^ y, bit by bit.", aliases=("bitwise_xor",),
                  params=_XY, ref=np.bitwise_xor, c=Operator("^"), npu="TXOR",
                  dtypes=BITS, numpy="{0} ^ {1}", neutral=(Neutral(0, EITHER, INTEGERS),), keeps_range=INTEGERS)
not_ = Elementwise(name="not_", doc="Return ~x, bit by bit; for a mask the opposite.", aliases=("bitwise_not", "invert"),
                   params=("x",), ref=np.invert,
                   c=CFunction("pto_not_{t}", simple=True), npu="TNOT", dtypes=BITS, numpy="~{0}", undoes_itself=BITS)


def _shift(x: Array, y: Array, shift: Callable[[Array, Array], Array]) -> Array:
    width = 8 * y.dtype.itemsize
    inside = (y >= 0) & (y < width)
    result: Array = np.where(inside, shift(x, np.where(inside, y, y.dtype.type(0))), x.dtype.type(0))
    return result


shl = Elementwise(name="shl", doc="Return x << y; 0 where y is negative or at least the width of the dtype.", aliases=("left_shift",),
                  params=_XY, ref=lambda x, y: _shift(x, y, np.left_shift), c=CFunction("pto_shl_{t}", simple=True), npu="TSHL",
                  dtypes=INTEGERS,
                  numpy="_shl({0}, {1})", neutral=(Neutral(0, _RIGHT, INTEGERS),))
shr = Elementwise(name="shr", doc="Return x >> y, a signed x with its sign; 0 where y is negative or at least the width of the dtype.",
                  aliases=("right_shift",), params=_XY, ref=lambda x, y: _shift(x, y, np.right_shift),
                  c=CFunction("pto_shr_{t}", simple=True), npu="TSHR",
                  dtypes=INTEGERS, numpy="_shr({0}, {1})", neutral=(Neutral(0, _RIGHT, INTEGERS),), keeps_range=INTEGERS)

neg = Elementwise(name="neg", doc="Return -x; integers wrap.", aliases=("negative",),
                  params=("x",), ref=np.negative, c=Operator("-"), npu="TNEG",
                  rounds=False, numpy="-{0}", undoes_itself=NUMBERS, folds=_FOLDED, scales=FLOATS, exact_in_f16=True)
abs = Elementwise(name="abs", doc="Return |x|; the smallest integer wraps to itself.", aliases=("absolute",),
                  params=("x",), ref=np.absolute,
                  c=CFunction("pto_abs_{t}", simple=True), npu="TABS", rounds=False, numpy="np.abs({0})", idempotent=NUMBERS, folds=_FOLDED,
                  scales=FLOATS, exact_in_f16=True, non_negative=(*FLOATS, *UNSIGNED))
sign = Elementwise(name="sign", doc="Return -1, 0 or 1; NaN for NaN.", params=("x",), ref=np.sign, c=CFunction("pto_sign_{t}", simple=True),
                   rounds=False, numpy="np.sign({0})", idempotent=NUMBERS, scales=FLOATS, keeps_range=INTEGERS)


def _relu(x: Array) -> Array:
    result: Array = np.maximum(x, x.dtype.type(0))
    return result


relu = Elementwise(name="relu", doc="Return the larger of x and 0; NaN for NaN.", params=("x",), ref=_relu,
                   c=CFunction("pto_relu_{t}", simple=True), npu="TRELU", rounds=False, numpy="np.maximum({0}, 0)", idempotent=NUMBERS,
                   scales=FLOATS, keeps_range=INTEGERS, exact_in_f16=True, non_negative=NUMBERS)


floor = Elementwise(name="floor", doc="Return x rounded down.", params=("x",), ref=np.floor, c=CFunction("pto_floor_{t}", simple=True),
                    dtypes=FLOATS, rounds=False, numpy="np.floor({0})", idempotent=FLOATS, folds=FOLDED_FLOATS)
ceil = Elementwise(name="ceil", doc="Return x rounded up.", params=("x",), ref=np.ceil, c=CFunction("pto_ceil_{t}", simple=True),
                   dtypes=FLOATS, rounds=False, numpy="np.ceil({0})", idempotent=FLOATS, folds=FOLDED_FLOATS)
round = Elementwise(name="round", doc="Return x rounded to the nearest whole number, halves to even.", aliases=("rint",), params=("x",),
                    ref=np.rint, c=CFunction("pto_rint_{t}", simple=True), dtypes=FLOATS, rounds=False, numpy="np.rint({0})",
                    idempotent=FLOATS, folds=FOLDED_FLOATS)

ENTRIES = (add, sub, mul, div, maximum, minimum, floordiv, mod, and_, or_, xor, not_, shl, shr, neg, abs, sign, relu, floor, ceil, round)
