"""The own f32 functions of pto_functions.h against libm's doubles: no error is larger than what the op table says, for all of f32.

The fast tests take every 4093rd float (all signs and exponents), the slow ones every 127th, and every 251st with each compiler.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import numpy as np
import pytest

from pto_wsp.ops.entries.functions import ENTRIES, gelu
from tests.compilers import compilers

from .conftest import Compile, Library

# name -> (C expression of the exact value in double, condition on x that the statement leaves out)
EXACT: Mapping[str, tuple[str, str]] = {
    "exp": ("exp(x)", "0"), "log": ("log(x)", "0"), "exp2": ("exp2(x)", "0"), "log2": ("log2(x)", "0"), "tanh": ("tanh(x)", "0"),
    "erf": ("erf(x)", "0"), "rsqrt": ("1 / sqrt(x)", "0"),
    "sin": ("sin(x)", "fabs(x) >= 0x1p30"), "cos": ("cos(x)", "fabs(x) >= 0x1p30"),
    "sigmoid": ("x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x))", "x < -88.7"),
    "silu": ("x < 0 ? x * (exp(x) / (1 + exp(x))) : x / (1 + exp(-x))", "x < -88.7"),
    "gelu": ("0.5 * x * erfc(x * -0.70710678118654752440)", "0"),
    "gelu_tanh": ("x < 0 ? x * exp(wide(x)) / (1 + exp(wide(x))) : x / (1 + exp(-wide(x)))", "0"),
}
LIMITS = {**{entry.name: entry.ulp for entry in ENTRIES if entry.ulp is not None}, "gelu_tanh": gelu.ulp}

_HEAD = """#include <math.h>
#include <string.h>
#include "pto_math.h"
static double wide(double x) { return 2 * sqrt(2 / M_PI) * (x + 0.044715 * x * x * x); }
static double ulps(float found, double exact)
{
    float nearest = (float)exact;
    if (nearest != nearest || nearest - nearest != 0 || found - found != 0)
        return found == nearest || (found != found && nearest != nearest) ? 0 : 1e9;
    double last = nearest == 0 ? 0x1p-149 : ldexp(1, ilogb(nearest) < -126 ? -149 : ilogb(nearest) - 23);
    return fabs(found - exact) / last;
}
"""
_LOOP = """double worst_{name}(uint64_t step, float *where)
{{
    double worst = 0;
    for (uint64_t bits = 0; bits < (uint64_t)1 << 32; bits += step) {{
        uint32_t low = (uint32_t)bits;
        float given;
        memcpy(&given, &low, 4);
        double x = given;
        if ({left_out})
            continue;
        double error = ulps(pto_{name}_f32(given), {exact});
        if (error > worst)
            worst = error, *where = given;
    }}
    return worst;
}}
"""
_POW = """double worst_pow(const float *x, const float *y, int64_t n, int64_t *where)
{
    double worst = 0;
    for (int64_t i = 0; i < n; ++i) {
        double error = ulps(pto_pow_f32(x[i], y[i]), pow(x[i], y[i]));
        if (error > worst)
            worst = error, *where = i;
    }
    return worst;
}
"""


def build(compile_c: Compile, portable: bool = False) -> Library:
    """Return the loops over all functions, compiled."""
    loops = [_LOOP.format(name=name, exact=exact, left_out=left_out) for name, (exact, left_out) in EXACT.items()]
    heads = [f"double worst_{name}(uint64_t step, float *where);" for name in EXACT]
    heads.append("double worst_pow(const float *x, const float *y, int64_t n, int64_t *where);")
    return compile_c(f"{_HEAD}{''.join(loops)}{_POW}", "\n".join(heads), portable)


def check(library: Library, name: str, step: int) -> None:
    """Raise AssertionError when the function is off by more ulp than the table says, with the x where it is most."""
    where = library.ffi.new("float *")
    worst = getattr(library.lib, f"worst_{name}")(step, where)
    assert worst <= LIMITS[name], f"{name}({float(where[0]).hex()}) is off by {worst:.3f} ulp"


def check_pow(library: Library, n: int) -> None:
    """Raise AssertionError when pow is off, at random points of its whole range and where its special cases meet."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 1 << 32, n, dtype=np.uint64).astype(np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        reach = 150 / np.maximum(np.abs(np.log2(np.abs(x.astype(np.float64)))), 1e-3)
        y = np.where(np.isfinite(reach), rng.uniform(-1, 1, n) * reach, 1.5).astype(np.float32)
    y[::3] = np.rint(y[::3])
    special = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, 1e-45, -1e-45, 3.4e38, -3.4e38, 2.5, 2.0 ** 24 + 2, math.inf,
               -math.inf, math.nan]
    corners = np.array(list(itertools.product(special, special)), np.float32)
    x, y = np.concatenate([corners[:, 0], x]), np.concatenate([corners[:, 1], y])
    where = library.ffi.new("int64_t *")
    worst = library.lib.worst_pow(library.pointer("float *", x), library.pointer("float *", y), x.size, where)
    at = int(where[0])
    assert worst <= LIMITS["pow"], f"pow({float(x[at]).hex()}, {float(y[at]).hex()}) is off by {worst:.3f} ulp"


@pytest.fixture(scope="module", params=[False, True], ids=["native", "portable"])
def library(compile_c: Compile, request: pytest.FixtureRequest) -> Library:
    """Return the loops, compiled for this machine and for any."""
    return build(compile_c, request.param)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXACT)
def test_error_over_all_exponents(library: Library, name: str) -> None:
    check(library, name, 4093)


def test_error_of_pow(library: Library) -> None:
    check_pow(library, 200_000)


def test_every_function_has_a_limit_and_a_test() -> None:
    assert set(LIMITS) == {*EXACT, "pow"}


@pytest.mark.slow
@pytest.mark.parametrize("name", EXACT)
def test_error_over_more_of_f32(library: Library, name: str) -> None:
    check(library, name, 509)


@pytest.mark.slow
@pytest.mark.parametrize("portable", [False, True], ids=["native", "portable"])
@pytest.mark.parametrize("compiler", compilers())
def test_error_with_every_compiler(compile_c: Compile, compiler: str, portable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", compilers()[compiler])
    library = build(compile_c, portable)
    for name in EXACT:
        check(library, name, 1021)
    check_pow(library, 400_000)
