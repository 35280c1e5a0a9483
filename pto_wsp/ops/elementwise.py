"""Arithmetic and functions of single elements.

What C must match beyond the obvious: integers wrap; `//` and `%` floor, and give 0 for an integer divisor of 0; maximum,
minimum and relu propagate NaN; round is half-even; sign of -0.0 is 0.0.
"""

from __future__ import annotations

import numpy as np

from pto_wsp.ops.dtypes import BITS, FLOATS, Array
from pto_wsp.ops.entry import Function, Operator
from pto_wsp.ops.spec import Elementwise

_XY = ("x", "y")
_USE_FLOORDIV = "integers divide with // (pto.floordiv); or convert both: pto.cast(x, DType.F32)"

add = Elementwise(name="add", doc="Return x + y; integers wrap.", params=_XY, ref=np.add, c=Operator("+"), npu="TADD")
sub = Elementwise(name="sub", doc="Return x - y; integers wrap.", params=_XY, ref=np.subtract, c=Operator("-"), npu="TSUB")
mul = Elementwise(name="mul", doc="Return x * y; integers wrap.", params=_XY, ref=np.multiply, c=Operator("*"), npu="TMUL")
div = Elementwise(name="div", doc="Return x / y; floats only.", params=_XY, ref=np.divide, c=Operator("/"), npu="TDIV",
                  dtypes=FLOATS, hint=_USE_FLOORDIV)
maximum = Elementwise(name="maximum", doc="Return the larger of x and y; NaN if either is NaN.", params=_XY, ref=np.maximum,
                      c=Function("pto_maximum_{t}"), npu="TMAX", aliases=("max",), rounds=False)
minimum = Elementwise(name="minimum", doc="Return the smaller of x and y; NaN if either is NaN.", params=_XY, ref=np.minimum,
                      c=Function("pto_minimum_{t}"), npu="TMIN", aliases=("min",), rounds=False)
floordiv = Elementwise(name="floordiv", doc="Return x / y rounded down; an integer divided by 0 gives 0.", params=_XY,
                       ref=np.floor_divide, c=Function("pto_floordiv_{t}"))
mod = Elementwise(name="mod", doc="Return x - y * (x // y), with the sign of y; 0 for an integer y of 0.", params=_XY,
                  ref=np.mod, c=Function("pto_mod_{t}"), npu="TREM")
pow = Elementwise(name="pow", doc="Return x to the power y; floats only.", params=_XY, ref=np.power, c=Function("pto_pow_{t}"),
                  npu="TPOW", dtypes=FLOATS)
and_ = Elementwise(name="and_", doc="Return x & y, bit by bit.", params=_XY, ref=np.bitwise_and, c=Operator("&"), npu="TAND",
                   dtypes=BITS)
or_ = Elementwise(name="or_", doc="Return x | y, bit by bit.", params=_XY, ref=np.bitwise_or, c=Operator("|"), npu="TOR",
                 dtypes=BITS)
xor = Elementwise(name="xor", doc="Return x ^ y, bit by bit.", params=_XY, ref=np.bitwise_xor, c=Operator("^"), npu="TXOR",
                  dtypes=BITS)
not_ = Elementwise(name="not_", doc="Return ~x, bit by bit; for a mask the opposite.", params=("x",), ref=np.invert,
                   c=Function("pto_not_{t}"), npu="TNOT", dtypes=BITS)

neg = Elementwise(name="neg", doc="Return -x; integers wrap.", params=("x",), ref=np.negative, c=Operator("-"), npu="TNEG",
                  rounds=False)
abs = Elementwise(name="abs", doc="Return |x|; the smallest integer wraps to itself.", params=("x",), ref=np.absolute,
                  c=Function("pto_abs_{t}"), npu="TABS", rounds=False)
sign = Elementwise(name="sign", doc="Return -1, 0 or 1; NaN for NaN.", params=("x",), ref=np.sign, c=Function("pto_sign_{t}"),
                   rounds=False)


def _relu(x: Array) -> Array:
    result: Array = np.maximum(x, x.dtype.type(0))
    return result


relu = Elementwise(name="relu", doc="Return the larger of x and 0; NaN for NaN.", params=("x",), ref=_relu,
                   c=Function("pto_relu_{t}"), npu="TRELU", rounds=False)

exp = Elementwise(name="exp", doc="Return e to the power x.", params=("x",), ref=np.exp, c=Function("pto_exp_{t}"), npu="TEXP",
                  dtypes=FLOATS)
log = Elementwise(name="log", doc="Return the natural logarithm of x; NaN below 0.", params=("x",), ref=np.log,
                  c=Function("pto_log_{t}"), npu="TLOG", dtypes=FLOATS)
sqrt = Elementwise(name="sqrt", doc="Return the square root of x; NaN below 0.", params=("x",), ref=np.sqrt,
                   c=Function("pto_sqrt_{t}"), npu="TSQRT", dtypes=FLOATS)


def _rsqrt(x: Array) -> Array:
    result: Array = x.dtype.type(1) / np.sqrt(x)
    return result


rsqrt = Elementwise(name="rsqrt", doc="Return 1 / sqrt(x), rounded twice as written.", params=("x",), ref=_rsqrt,
                    c=Function("pto_rsqrt_{t}"), npu="TRSQRT", dtypes=FLOATS)
tanh = Elementwise(name="tanh", doc="Return the hyperbolic tangent of x.", params=("x",), ref=np.tanh,
                   c=Function("pto_tanh_{t}"), dtypes=FLOATS)


def _recip(x: Array) -> Array:
    result: Array = x.dtype.type(1) / x
    return result


recip = Elementwise(name="recip", doc="Return 1 / x.", params=("x",), ref=_recip, c=Function("pto_recip_{t}"), npu="TRECIP",
                    dtypes=FLOATS)


def _sigmoid(x: Array) -> Array:
    return _over_one_and_exp(x.dtype.type(1), x)


def _silu(x: Array) -> Array:
    return _over_one_and_exp(x, x)


def _over_one_and_exp(numerator: Array, x: Array) -> Array:
    with np.errstate(over="ignore"):   # to infinity, and the quotient to 0
        result: Array = numerator / (x.dtype.type(1) + np.exp(-x))
    return result


sigmoid = Elementwise(name="sigmoid", doc="Return 1 / (1 + exp(-x)); 0 where exp(-x) overflows.", params=("x",), ref=_sigmoid,
                      c=Function("pto_sigmoid_{t}"), dtypes=FLOATS)
silu = Elementwise(name="silu", doc="Return x / (1 + exp(-x)); 0 where exp(-x) overflows, NaN for -inf.", params=("x",), ref=_silu,
                   c=Function("pto_silu_{t}"), dtypes=FLOATS)
floor = Elementwise(name="floor", doc="Return x rounded down.", params=("x",), ref=np.floor, c=Function("pto_floor_{t}"),
                    dtypes=FLOATS, rounds=False)
ceil = Elementwise(name="ceil", doc="Return x rounded up.", params=("x",), ref=np.ceil, c=Function("pto_ceil_{t}"),
                   dtypes=FLOATS, rounds=False)
round = Elementwise(name="round", doc="Return x rounded to the nearest whole number, halves to even.", params=("x",),
                    ref=np.rint, c=Function("pto_rint_{t}"), dtypes=FLOATS, rounds=False)

ENTRIES = (add, sub, mul, div, maximum, minimum, floordiv, mod, pow, and_, or_, xor, not_, neg, abs, sign, relu, exp, log, sqrt,
           rsqrt, tanh, recip, sigmoid, silu, floor, ceil, round)
