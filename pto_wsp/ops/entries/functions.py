"""Functions of single elements: floats only. `ulp`: the error of f32, against the exact value rounded; f64 comes from libm.

What C must match beyond the obvious: halves compute in f32; NaN in, NaN out; infinities as IEEE has them.
"""

from __future__ import annotations

import math

import numpy as np

from pto_wsp.ops.entry import CFunction
from pto_wsp.ops.rounding import FLOATS, FOLDED_FLOATS, Array
from pto_wsp.ops.spec import Elementwise, Variant

_erf = np.frompyfunc(math.erf, 1, 1)
_erfc = np.frompyfunc(math.erfc, 1, 1)
_SQRT_HALF = 0.70710678118654752440


def _rsqrt(x: Array) -> Array:
    result: Array = x.dtype.type(1) / np.sqrt(x)
    return result


def _recip(x: Array) -> Array:
    result: Array = x.dtype.type(1) / x
    return result


def _sigmoid(x: Array) -> Array:
    return _over_one_and_exp(x.dtype.type(1), x)


def _silu(x: Array) -> Array:
    return _over_one_and_exp(x, x)


def _over_one_and_exp(numerator: Array, x: Array) -> Array:
    with np.errstate(over="ignore"):   # to infinity, and the quotient to 0
        result: Array = numerator / (x.dtype.type(1) + np.exp(-x))
    return result


def _exp2(x: Array) -> Array:
    """2 to the power x in f64: NumPy's f32 is not exact for every whole number."""
    result: Array = np.exp2(x.astype(np.float64)).astype(x.dtype)
    return result


def _erf_of(x: Array) -> Array:
    return np.asarray(_erf(x.astype(np.float64)), x.dtype)


def _gelu(x: Array) -> Array:
    """x Phi(x) by erfc in f64, which keeps the small values of a negative x."""
    wide = x.astype(np.float64)
    result: Array = (0.5 * wide * np.asarray(_erfc(wide * -_SQRT_HALF), np.float64)).astype(x.dtype)
    return result


def _gelu_tanh(x: Array) -> Array:
    """x (1 + tanh u) / 2 = x sigmoid(2u) in f64."""
    wide = x.astype(np.float64)
    result: Array = (wide * _sigmoid(wide * (1.5957691216057308 + 0.07135481627260025 * wide * wide))).astype(x.dtype)
    return result


pow = Elementwise(name="pow", doc="Return x to the power y; floats only.", aliases=("power",),
                  params=("x", "y"), ref=np.power, c=CFunction("pto_pow_{t}"),
                  npu="TPOW", dtypes=FLOATS, ulp=0.6, numpy="{0} ** {1}", nan_below_zero=FLOATS)
exp = Elementwise(name="exp", doc="Return e to the power x.", params=("x",), ref=np.exp, c=CFunction("pto_exp_{t}"), npu="TEXP",
                  dtypes=FLOATS, ulp=1.2, numpy="np.exp({0})", non_negative=FLOATS)
log = Elementwise(name="log", doc="Return the natural logarithm of x; NaN below 0.", params=("x",), ref=np.log,
                  c=CFunction("pto_log_{t}"), npu="TLOG", dtypes=FLOATS, ulp=1.2, numpy="np.log({0})", nan_below_zero=FLOATS)
exp2 = Elementwise(name="exp2", doc="Return 2 to the power x, exact for whole numbers.", params=("x",), ref=_exp2,
                   c=CFunction("pto_exp2_{t}"), dtypes=FLOATS, ulp=0.6, numpy="np.exp2({0})", non_negative=FLOATS)
log2 = Elementwise(name="log2", doc="Return the logarithm of x to base 2, exact for powers of 2; NaN below 0.", params=("x",), ref=np.log2,
                   c=CFunction("pto_log2_{t}"), dtypes=FLOATS, ulp=0.6, numpy="np.log2({0})", nan_below_zero=FLOATS)
sqrt = Elementwise(name="sqrt", doc="Return the square root of x; NaN below 0.", params=("x",), ref=np.sqrt,
                   c=CFunction("pto_sqrt_{t}"), npu="TSQRT", dtypes=FLOATS, numpy="np.sqrt({0})", folds=FOLDED_FLOATS, scales=FLOATS,
                   nan_below_zero=FLOATS, non_negative=FLOATS)
rsqrt = Elementwise(name="rsqrt", doc="Return 1 / sqrt(x), rounded twice as written.", params=("x",), ref=_rsqrt,
                    c=CFunction("pto_rsqrt_{t}"), npu="TRSQRT", dtypes=FLOATS, ulp=1.5, numpy="1 / np.sqrt({0})", scales=FLOATS,
                    nan_below_zero=FLOATS)
recip = Elementwise(name="recip", doc="Return 1 / x.", aliases=("reciprocal",), synonyms=("inv",),
                    params=("x",), ref=_recip, c=CFunction("pto_recip_{t}"), npu="TRECIP",
                    dtypes=FLOATS, numpy="1 / {0}", scales=FLOATS)
sin = Elementwise(name="sin", doc="Return the sine of x; beyond 2^30 the angle of an f32 or bf16 counts as 0.", params=("x",), ref=np.sin,
                  c=CFunction("pto_sin_{t}"), dtypes=FLOATS, ulp=0.6, numpy="np.sin({0})")
cos = Elementwise(name="cos", doc="Return the cosine of x; beyond 2^30 the angle of an f32 or bf16 counts as 0.", params=("x",), ref=np.cos,
                  c=CFunction("pto_cos_{t}"), dtypes=FLOATS, ulp=0.6, numpy="np.cos({0})")
tanh = Elementwise(name="tanh", doc="Return the hyperbolic tangent of x.", params=("x",), ref=np.tanh,
                   c=CFunction("pto_tanh_{t}"), dtypes=FLOATS, ulp=1.6, numpy="np.tanh({0})")
sigmoid = Elementwise(name="sigmoid", doc="Return 1 / (1 + exp(-x)); 0 where exp(-x) overflows.", synonyms=("expit", "logistic"),
                      params=("x",),
                      ref=_sigmoid, c=CFunction("pto_sigmoid_{t}"), dtypes=FLOATS, ulp=2.5, numpy="1 / (1 + np.exp(-{0}))",
                      non_negative=FLOATS)
erf = Elementwise(name="erf", doc="Return the error function of x.", params=("x",), ref=_erf_of, c=CFunction("pto_erf_{t}"),
                  dtypes=FLOATS, ulp=1.6, numpy="_erf({0})")
gelu = Elementwise(name="gelu", doc="""Return x times the normal distribution function of x; NaN for -inf.

approximate="tanh": x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 instead.""", params=("x",), ref=_gelu, c=CFunction("pto_gelu_{t}"),
                   dtypes=FLOATS, ulp=8.0, option="approximate", numpy="_gelu({0})",
                   variants=(Variant("none", _gelu, CFunction("pto_gelu_{t}"), "_gelu({0})"),
                             Variant("tanh", _gelu_tanh, CFunction("pto_gelu_tanh_{t}"), "_gelu_tanh({0})")))
silu = Elementwise(name="silu", doc="Return x / (1 + exp(-x)); 0 where exp(-x) overflows, NaN for -inf.", synonyms=("swish",),
                   params=("x",), ref=_silu,
                   c=CFunction("pto_silu_{t}"), dtypes=FLOATS, ulp=3.0, numpy="{0} / (1 + np.exp(-{0}))")

ENTRIES = (pow, exp, log, exp2, log2, sqrt, rsqrt, recip, sin, cos, tanh, sigmoid, erf, gelu, silu)
