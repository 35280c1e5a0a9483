"""One kernel in several builds: for this CPU, without its vectors of 512 bits, without fused multiply-adds, for any CPU. What
docs/kernels.md says has the same bits everywhere has them; products that overflow are what the order on that page makes of them.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pto_wsp import DType, In, Kernel, Out, Tensor, Tile, kernel, pto, workload
from tests.compilers import compilers
from tests.tolerances import Array, assert_identical

F32, F64, F16, BF16, I8, I32 = DType.F32, DType.F64, DType.F16, DType.BF16, DType.I8, DType.I32
FEATURES = Path("/proc/cpuinfo").read_text().split() if Path("/proc/cpuinfo").exists() else []

ROWS, COLS = 4, 67
EVERYWHERE: dict[str, Callable[[Any, Any], Any]] = {
    "arithmetic": lambda x, z: x * z + x / z - z, "sqrt": lambda x, z: pto.sqrt(pto.abs(x)), "rsqrt": lambda x, z: pto.rsqrt(pto.abs(x)),
    "recip": lambda x, z: pto.recip(x), "sin": lambda x, z: pto.sin(x), "cos": lambda x, z: pto.cos(z), "relu": lambda x, z: pto.relu(x),
    "minimum": lambda x, z: pto.minimum(x, pto.maximum(z, x * 2)), "floor": lambda x, z: pto.floor(x) + pto.ceil(z) + pto.round(x * 3),
    "rowsum": lambda x, z: x + pto.rowsum(z), "rowmean": lambda x, z: x - pto.rowmean(x), "rowprod": lambda x, z: z * pto.rowprod(x),
    "colsum": lambda x, z: pto.coladd(x, pto.colsum(z)), "bf16": lambda x, z: pto.cast(pto.cast(x, BF16) * pto.cast(z, BF16), F32),
    "f16": lambda x, z: pto.cast(pto.cast(x, F16) / pto.cast(z, F16), F32),
}
WITH_FMA: dict[str, Callable[[Any, Any], Any]] = {
    "exp": lambda x, z: pto.exp(x), "log": lambda x, z: pto.log(pto.abs(x)), "tanh": lambda x, z: pto.tanh(x),
    "sigmoid": lambda x, z: pto.sigmoid(x), "erf": lambda x, z: pto.erf(x), "gelu": lambda x, z: pto.gelu(x),
    "silu": lambda x, z: pto.silu(x), "exp2": lambda x, z: pto.exp2(x), "log2": lambda x, z: pto.log2(pto.abs(x)),
}


def made_of(f: Callable[[Any, Any], Any]) -> Kernel:
    """Return the kernel of a function of two tiles."""
    @kernel
    def run(x: In[Tile[ROWS, COLS, F32]], z: In[Tile[ROWS, COLS, F32]], y: Out[Tile[ROWS, COLS, F32]]) -> None:
        pto.store(y, f(x, z))
    return run


def product_of(dtype: DType, m: int, k: int, n: int, *, turned: bool = False) -> Kernel:
    """Return the kernel of a product of [m, k] and [k, n]; `turned`: the second lies transposed."""
    result = {I8: I32, I32: I32, F64: F64}.get(dtype, F32)
    if turned:
        @kernel
        def turn(a: In[Tile[m, k, dtype]], b: In[Tile[n, k, dtype]], y: Out[Tile[m, n, result]]) -> None:
            pto.store(y, a @ b.T)
        return turn

    @kernel
    def run(a: In[Tile[m, k, dtype]], b: In[Tile[k, n, dtype]], y: Out[Tile[m, n, result]]) -> None:
        pto.store(y, a @ b)
    return run


Call = tuple[Kernel, tuple[Array, ...], Array]


def outcomes(calls: dict[str, Call], *, target: str = "cpu_sim", portable: bool = False) -> dict[str, Array]:
    """Run kernels as the tasks of one program and return what each leaves in its room."""
    tensors = {name: [Tensor(array, name=f"t{at}_{k}") for k, array in enumerate((*arrays, room.copy()))]
               for at, (name, (_, arrays, room)) in enumerate(calls.items())}

    @workload
    def once() -> None:
        for name, (made, _, _) in calls.items():
            made(*tensors[name])
    once().compile(target=target, portable=portable).run()
    return {name: given[-1].data for name, given in tensors.items() if given[-1].data is not None}


def outcome(made: Kernel, arrays: tuple[Array, ...], out: Array, *, target: str = "cpu_sim") -> Array:
    """Return what one kernel leaves."""
    return outcomes({"y": (made, arrays, out)}, target=target)["y"]


def inputs() -> tuple[Array, Array]:
    rng = np.random.default_rng(8)
    x, z = (rng.standard_normal((ROWS, COLS)).astype(np.float32) * 3 for _ in range(2))
    return x, z


def factors(dtype: DType) -> tuple[Array, Array, Array]:
    """Return the factors of a product of several steps, and room for it."""
    rng = np.random.default_rng(9)
    a, b = ((rng.standard_normal(shape) * 3).astype(dtype.np) for shape in ((5, 600), (600, 33)))
    return a, b, np.zeros((5, 33), {I8: I32, I32: I32, F64: F64}.get(dtype, F32).np)


def calls_of(names: dict[str, Callable[[Any, Any], Any]], dtypes: list[DType]) -> dict[str, Call]:
    """Return the kernels of functions, and the products of dtypes."""
    calls: dict[str, Call] = {name: (made_of(f), inputs(), np.zeros((ROWS, COLS), np.float32)) for name, f in names.items()}
    for dtype in dtypes:
        a, b, room = factors(dtype)
        calls[str(dtype)] = (product_of(dtype, 5, 600, 33), (a, b), room)
    return calls


def assert_same(found: dict[str, Array], expected: dict[str, Array]) -> None:
    for name, bits in expected.items():
        assert_identical(found[name], bits, name)


@pytest.mark.slow
def test_a_portable_build_has_the_bits_of_this_machine() -> None:
    calls = calls_of(EVERYWHERE, [I8, I32])
    assert_same(outcomes(calls, portable=True), outcomes(calls))


BUILDS = [pytest.param(flag, feature, id=flag) for flag, feature in (
    ("-mno-avx512f", "avx512f"), ("-mno-avx512bf16", "avx512_bf16"), ("-mno-fma -mno-avx512f", "fma"))]


@pytest.mark.slow
@pytest.mark.skipif("gcc" not in compilers() or platform.machine() != "x86_64", reason="flags of gcc for x86-64")
@pytest.mark.usefixtures("same_runtime")
@pytest.mark.parametrize("flags, feature", BUILDS)
def test_builds_without_a_feature_have_the_same_bits(flags: str, feature: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if feature not in FEATURES:
        pytest.skip(f"this CPU has no {feature}")
    names, dtypes = {
        "fma": (EVERYWHERE, [I8, I32]),
        "avx512_bf16": ({"bf16": EVERYWHERE["bf16"]}, []),       # it has instructions for bf16 only
    }.get(feature, ({**EVERYWHERE, **WITH_FMA}, [I8, F32, F64, F16]))
    calls = calls_of(names, dtypes)
    monkeypatch.setenv("CC", "gcc")
    here = outcomes(calls)
    monkeypatch.setenv("CC", f"gcc {flags}")
    assert_same(outcomes(calls), here)


# ---- products that overflow ----

def in_order(a: Array, b: Array) -> Array:
    """Return the sums of products in f32 in the order of docs/kernels.md: fused multiply-adds from zero, 256 at a time."""
    left, right = a.astype(np.float64), b.astype(np.float64)
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    with np.errstate(all="ignore"):
        for begin in range(0, a.shape[1], 256):
            step = np.zeros_like(total)
            for k in range(begin, min(begin + 256, a.shape[1])):
                step = (left[:, k:k + 1] * right[k:k + 1] + step).astype(np.float32)
            total = total + step
    return total


def check_overflow(dtype: DType, m: int, k: int, n: int, seed: int, *, turned: bool) -> None:
    """Raise AssertionError unless both targets have the infinities and NaN of the order that the page states."""
    rng = np.random.default_rng(seed)
    a, b = ((rng.standard_normal(shape) * 10.0 ** rng.choice([0, 18, 19, 37], shape)).astype(dtype.np) for shape in ((m, k), (k, n)))
    expected = in_order(a, b)
    given = (a, np.ascontiguousarray(b.T) if turned else b)
    for target in ("interp", "cpu_sim"):
        found = outcome(product_of(dtype, m, k, n, turned=turned), given, np.zeros((m, n), np.float32), target=target)
        where = ~np.isfinite(expected) | ~np.isfinite(found)
        assert np.array_equal(found[where], expected[where], equal_nan=True), (target, dtype, seed)


HAS_FMA = pytest.mark.skipif("fma" not in FEATURES and platform.machine() != "aarch64", reason="this CPU has no fused multiply-add")


@pytest.mark.slow
@HAS_FMA
@pytest.mark.parametrize("dtype", [BF16, F32], ids=str)
@pytest.mark.parametrize("turned", [False, True], ids=["as it lies", "turned"])
def test_a_product_that_overflows_is_what_its_order_makes_of_it(dtype: DType, turned: bool) -> None:
    check_overflow(dtype, 3, 515, 37, 1, turned=turned)


@HAS_FMA
@pytest.mark.slow
@given(st.sampled_from([BF16, F32]), st.integers(1, 14), st.integers(1, 700), st.integers(1, 70), st.integers(0, 999), st.booleans())
@settings(max_examples=16)
def test_products_of_all_sizes_that_overflow(dtype: DType, m: int, k: int, n: int, seed: int, turned: bool) -> None:
    check_overflow(dtype, m, k, n, seed, turned=turned)


@pytest.mark.slow
@HAS_FMA
def test_an_accumulated_product_that_overflows() -> None:
    big = np.full((1, 4), 3e38, np.float32).astype(BF16.np)

    @kernel
    def twice(a: In[Tile[1, 4, BF16]], b: In[Tile[4, 16, BF16]], y: Out[Tile[1, 16, F32]]) -> None:
        acc = pto.alloc((1, 16), F32, init=5)
        acc += a @ b
        pto.store(y, acc)

    a, b = big * np.array([[-1, 1, 1, 1]], BF16.np), np.full((4, 16), 3e38, np.float32).astype(BF16.np)
    for target in ("interp", "cpu_sim"):
        assert (outcome(twice, (a, b), np.zeros((1, 16), np.float32), target=target) == -np.inf).all(), target
