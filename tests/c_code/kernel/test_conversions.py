"""Every conversion by every mode and saturation, in C against NumPy, bit for bit: one loop each, a library for each source."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from pto_wsp.c import syntax as c
from pto_wsp.c.kernel_rows import emit_cast
from pto_wsp.c.printer import print_expr
from pto_wsp.c.scalars import load_element, memory_type, store_element
from pto_wsp.ir.dtype import DType
from pto_wsp.ops.entries.cast import cast
from pto_wsp.ops.rounding import ALL, MODES, convert

from ..conftest import Compile

Way = tuple[DType, str | None, bool | None]
PAIRED = (DType.I8, DType.BF16, DType.FP8E4M3)   # one target of each kind, to which every mode meets every saturation


def ways_of(source: DType) -> list[Way]:
    """Return conversions of a dtype: every mode and every saturation to every dtype, their pairs to one dtype of each kind."""
    ways: list[Way] = []
    for target in ALL:
        modes = (None, *MODES) if source.is_real and target is not DType.BOOL else (None,)
        saturates = (None,) if DType.BOOL in (source, target) else (None, True, False)
        ways += [(target, mode, saturate) for mode, saturate in itertools.product(modes, saturates)
                 if target in PAIRED or mode is None or saturate is None]
    return ways


def values_of(dtype: DType) -> npt.NDArray[Any]:
    """Return special values, the edges of every dtype, values between those of the narrow formats, and random bits."""
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 256, (4000, dtype.nbytes), np.uint8).view(f"u{dtype.nbytes}").ravel()
    if dtype is DType.BOOL:
        return bits % 2 == 0
    if not dtype.is_real:
        limits = np.iinfo(dtype.np)
        edges = [v + d for v in (0, *(2 ** n for n in range(65)), *(-(2 ** n) for n in range(65)), 65504, 3 * 2 ** 53) for d in (-1, 0, 1)]
        return np.concatenate([np.array([v for v in edges if limits.min <= v <= limits.max], dtype.np), bits.view(dtype.np)])
    halves = rng.integers(0, 1 << 16, 3000).astype(np.uint16)
    with np.errstate(all="ignore"):
        tops = [float(ml_dtypes.finfo(t.np).max) for t in ALL if t.is_real] + [2.0 ** n for n in (7, 8, 15, 16, 31, 32, 53, 63, 64, 70)]
        edges = [sign * v * f for v in tops for f in (1, 1 - 2.0 ** -24, 1 + 2.0 ** -24, 1.0625, 1.03125, 1.001) for sign in (1, -1)]
        near = [half.astype(np.float64) * (1 + step) for half in (halves.view(np.float16), halves.view(ml_dtypes.bfloat16))
                for step in (0, 2.0 ** -12, 2.0 ** -9, 2.0 ** -5, 2.0 ** -12 + 2.0 ** -40)]
        small = np.concatenate([np.arange(-300, 300) / 4, [0.0, -0.0, np.inf, -np.inf, np.nan, 0.3, -0.3]])
        return np.concatenate([np.concatenate([edges, *near, small]).astype(dtype.np), bits.view(dtype.np)])


def check(compile_c: Compile, source: DType, ways: Sequence[Way], portable: bool = False) -> None:
    """Raise AssertionError where C and NumPy differ in a conversion of `source`."""
    heads, bodies = [], []
    for number, (target, mode, saturate) in enumerate(ways):
        head = f"void loop_{number}({memory_type(target)} *y, const {memory_type(source)} *x, int64_t n)"
        value = store_element(emit_cast(cast, load_element(c.Name("x[i]"), source), source, target, mode, saturate), target)
        heads.append(head + ";")
        bodies.append(f"{head} {{ for (int64_t i = 0; i < n; ++i) y[i] = {print_expr(value)}; }}")
    library = compile_c('#include "pto_math.h"\n' + "\n".join(bodies), "\n".join(heads), portable)
    x = np.ascontiguousarray(values_of(source))
    for number, (target, mode, saturate) in enumerate(ways):
        found = np.empty(x.shape, target.np)
        getattr(library.lib, f"loop_{number}")(library.pointer("void *", found), library.pointer("void *", x), x.size)
        expected = convert(x, target, mode, saturate)
        kind = np.dtype(f"u{target.nbytes}")
        with np.errstate(invalid="ignore"):
            both_nan = np.isnan(found.astype(np.float64)) & np.isnan(expected.astype(np.float64))
        wrong = np.flatnonzero((found.view(kind) != expected.view(kind)) & ~both_nan)
        assert not wrong.size, (f"{source} to {target}, {mode}, {saturate}: {wrong.size} differ, first {x[wrong[0]]!r}: "
                                f"{found[wrong[0]]!r}, expected {expected[wrong[0]]!r}")


@pytest.mark.slow
@pytest.mark.parametrize("source", ALL, ids=str)
def test_conversions(compile_c: Compile, source: DType) -> None:
    check(compile_c, source, ways_of(source))


@pytest.mark.slow
@pytest.mark.parametrize("source", [DType.F32, DType.BF16, DType.I64], ids=str)   # no machine has any for FP8
def test_conversions_without_this_machines_instructions(compile_c: Compile, source: DType) -> None:
    check(compile_c, source, ways_of(source), portable=True)
