"""The names of NumPy and torch in kernels: the same line, on a tile and on an array, gives the same numbers.

Each case is one function, which is called with NumPy's array for what is expected, and traced for what a kernel gives, by `interp`, by
the generated C and by the instructions of an NPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from pto_wsp import DType, In, Out, PtoError, Tensor, Tile, kernel, pto, workload
from pto_wsp.ops.array_names import methods
from pto_wsp.ops.table import FORMULAS
from tests.npu.select.numbers import check

Array = npt.NDArray[Any]
Line = Callable[..., Any]
F32, F64, F16, BF16, I8, I32, U8, BOOL = (DType.F32, DType.F64, DType.F16, DType.BF16, DType.I8, DType.I32, DType.U8, DType.BOOL)
FLOATS = (F32, F64, F16, BF16)
SHAPES = ((1, 7), (5, 1), (3, 17))
# Error relative to the largest number of a line: sums in another order, and one rounding of a half.
NEAR = {F64: 1e-13, F32: 2e-6, F16: 2e-3, BF16: 1.6e-2}


def numbers(dtype: DType, shape: tuple[int, int]) -> Array:
    """Return numbers of both signs with equal ones among them."""
    made = np.random.default_rng(sum(shape)).integers(-12, 12, shape)
    if dtype.is_bool:
        return made > -4
    return (made / 4 if dtype.is_real else made).astype(dtype.np)


def kernel_of(line: Line, given: Array, shape: tuple[int, int], dtype: DType) -> Any:
    """Return the kernel of one line on a tile."""
    @kernel
    def run(x: In[Tile[given.shape[0], given.shape[1], DType.from_numpy(given.dtype)]],  # type: ignore[misc]
            y: Out[Tile[shape[0], shape[1], dtype]]) -> None:  # type: ignore[misc]
        pto.store(y, line(x))
    return run


def wide(line: Line, x: Array) -> Array:
    """Return what NumPy gives for a line, halves computed in f64."""
    with np.errstate(all="ignore"):
        is_half = x.dtype.itemsize == 2 and x.dtype.kind not in "iu"
        return np.asarray(line(x.astype(np.float64) if is_half else x))


# ---- the reductions, over axes, dtypes and shapes ----

REDUCTIONS: dict[str, tuple[Line, tuple[DType, ...], DType | None]] = {
    "sum": (lambda x, **axis: x.sum(**axis, keepdims=True), (*FLOATS, I32, BOOL), None),
    "np.sum": (lambda x, **axis: np.sum(x, **axis, keepdims=True), (F32,), None),
    "np.sum in another dtype": (lambda x, **axis: np.sum(x, **axis, dtype=np.int32, keepdims=True), (I8, U8), I32),
    "add.reduce": (lambda x, axis=None: np.add.reduce(x, axis=axis, keepdims=True), (F32,), None),
    "prod": (lambda x, **axis: x.prod(**axis, keepdims=True), (F32, F64), None),
    "mean": (lambda x, **axis: x.mean(**axis, keepdims=True), FLOATS, None),
    "max": (lambda x, **axis: x.max(**axis, keepdims=True), (*FLOATS, I8, I32), None),
    "np.max": (lambda x, **axis: np.max(x, **axis, keepdims=True), (F32,), None),
    "min": (lambda x, **axis: x.min(**axis, keepdims=True), (*FLOATS, U8, I32), None),
    "np.amin": (lambda x, **axis: np.amin(x, **axis, keepdims=True), (F32,), None),
    "any": (lambda x, **axis: x.any(**axis, keepdims=True), (F32, I8, BOOL), BOOL),
    "all": (lambda x, **axis: x.all(**axis, keepdims=True), (F32, I32, BOOL), BOOL),
    "np.all of a comparison": (lambda x, **axis: np.all(x > -2, **axis, keepdims=True), (F32, I32), BOOL),
    "argmax": (lambda x, **axis: x.argmax(**axis, keepdims=True) if isinstance(x, np.ndarray) else pto.argmax(x, **axis, keepdims=True),
               (F32, BF16, I32), I32),
    "np.argmin": (lambda x, **axis: np.argmin(x, **axis, keepdims=True), (F32, F16, I8), I32),
    "var": (lambda x, **axis: x.var(**axis, keepdims=True), FLOATS, None),
    "np.std": (lambda x, **axis: np.std(x, **axis, keepdims=True), (F32, F64), None),
    "std of a sample": (lambda x, **axis: x.std(**axis, ddof=1, keepdims=True), (F32,), None),
}
AXES: tuple[dict[str, Any], ...] = ({"axis": 0}, {"axis": 1}, {"axis": -1}, {"axis": -2}, {"axis": None}, {"axis": (0, 1)})


@pytest.mark.sampled(4)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("name", "axis"), [        # NumPy has no places along several axes
    (name, axis) for name in REDUCTIONS for axis in AXES if not (isinstance(axis["axis"], tuple) and "arg" in name)], ids=str)
def test_a_reduction_is_numpys(name: str, axis: dict[str, Any]) -> None:
    line, dtypes, result = REDUCTIONS[name]
    for dtype in dtypes:
        for shape in SHAPES:
            x = numbers(dtype, shape)
            expected = wide(lambda x: line(x, **axis), x)
            kept = result or (I32 if dtype is BOOL else dtype)
            found = kernel_of(lambda x: line(x, **axis), x, expected.shape, kept).run(x)
            assert found.dtype == kept.np
            near(found, expected, dtype, f"{name} {axis} {dtype} {shape}")


def near(found: Array, expected: Array, dtype: DType, where: str) -> None:
    """Check numbers: bit for bit those of integers and masks, else within the tolerance of the dtype."""
    if found.dtype.kind in "iub":
        assert np.array_equal(found, expected), where
        return
    size = np.nanmax(np.abs(np.where(np.isfinite(expected), expected, 0)), initial=1e-3)
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=NEAR[dtype], atol=NEAR[dtype] * size, err_msg=where)


# ---- everything else, one line each ----

LINES: dict[str, tuple[Line, tuple[DType, ...], DType | None]] = {
    "np.cumsum along": (lambda x: np.cumsum(x, axis=1, dtype=x.dtype), (F32, F64, F16, I8, I32), None),
    "cumsum down": (lambda x: x.cumsum(axis=0, dtype=x.dtype), (F32, BF16, U8), None),
    "cumsum of a mask": (lambda x: np.cumsum(x, axis=1), (BOOL,), I32),
    "add.accumulate": (lambda x: np.add.accumulate(x, axis=1), (F32,), None),
    "clip": (lambda x: np.clip(x, -1, 2), (*FLOATS, I8), None),
    "clip method": (lambda x: x.clip(-1, None), (F32,), None),
    "square": (lambda x: np.square(x), (F32, I8), None),
    "isnan": (lambda x: np.isnan(np.sqrt(x)), (F32, F16), BOOL),
    "isinf": (lambda x: np.isinf(np.exp(x * 400)), (F32,), BOOL),
    "isfinite": (lambda x: np.isfinite(np.exp(x * 400)), (F32,), BOOL),
    "logical_and": (lambda x: np.logical_and(x, x > 1), (F32, I8), BOOL),
    "logical_or": (lambda x: np.logical_or(x > 1, x < -1), (F32,), BOOL),
    "logical_xor": (lambda x: np.logical_xor(x, x > 1), (F32,), BOOL),
    "logical_not": (lambda x: np.logical_not(x), (F32, I32, BOOL), BOOL),
    "concatenate": (lambda x: np.concatenate([x, x * 2])[x.shape[0]:], (F32, I32), None),
    "concatenate along": (lambda x: np.concatenate([x, x], axis=1)[:, :x.shape[1]], (F32,), None),
    "split": (lambda x: np.split(x, [1], axis=0)[0] + x * 0, (F32,), None),
    "split even": (lambda x: np.concatenate(np.split(x, x.shape[1], axis=1)[::-1], axis=1), (F32,), None),
    "zeros_like": (lambda x: x + np.zeros_like(x), (F32, I8), None),
    "ones_like": (lambda x: np.where(x > 0, np.ones_like(x), x), (F32, I8), None),
    "full_like": (lambda x: x + np.full_like(x, 3), (F32, I8), None),
    "a mask of ones": (lambda x: np.ones_like(x, dtype=np.bool_), (F32,), BOOL),
    "where of numbers": (lambda x: np.where(x > 0, 1.0, 0.0), (F32,), F32),
    "where of whole numbers": (lambda x: np.where(x > 0, 1, 0), (F32,), I32),
    "astype": (lambda x: x.astype("int32"), (F32, I8), I32),
    "astype of NumPy": (lambda x: x.astype(np.float16), (F32,), F16),
    "reshape": (lambda x: x.reshape(-1, 1).reshape(x.shape), (F32, BOOL), None),
    "np.reshape": (lambda x: np.reshape(x, (1, x.shape[0] * x.shape[1])).reshape(x.shape[0], -1), (F32,), None),
    "transpose": (lambda x: np.transpose(x.transpose()), (F32,), None),
    "sort": (lambda x: np.sort(x), (F32, I8), None),
    "sort down": (lambda x: np.sort(x, axis=0), (F32,), None),
    "argsort": (lambda x: np.argsort(x, axis=-1, kind="stable") if isinstance(x, np.ndarray) else np.argsort(x, axis=-1), (F32,), I32),
    "take_along_axis": (lambda x: np.take_along_axis(x, (x * 0).astype(np.int32), axis=1), (F32,), None),
    "tril": (lambda x: np.tril(x) + np.triu(x, k=1), (F32, I32), None),
    "broadcast_to": (lambda x: np.broadcast_to(x[0:1], x.shape), (F32,), None),
    "dot": (lambda x: np.dot(x, x.T @ x), (F64,), None),
    "round": (lambda x: np.round(x) + x.round(), (F32,), None),
    "exp2 and log2": (lambda x: np.log2(np.exp2(x)), (F32, F64), None),
    "reciprocal": (lambda x: np.reciprocal(x + 100), (F32,), None),
    "fabs": (lambda x: np.fabs(x), (F32,), None),
    "subtract": (lambda x: np.subtract(x, np.multiply(x, 2)), (F32, I8), None),
}
# What NumPy has not, with its meaning.
OTHERS: dict[str, tuple[Line, Line]] = {
    "softmax": (lambda x: pto.softmax(x), lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True)),
    "softmax down": (lambda x: x.softmax(dim=0), lambda x: np.exp(x) / np.exp(x).sum(0, keepdims=True)),
    "log_softmax": (lambda x: x.log_softmax(-1), lambda x: x - np.log(np.exp(x).sum(1, keepdims=True))),
    "logsumexp": (lambda x: x + x.logsumexp(1, keepdim=True), lambda x: x + np.log(np.exp(x).sum(1, keepdims=True))),
    "logsumexp of all": (lambda x: x + pto.logsumexp(x, keepdims=True), lambda x: x + np.log(np.exp(x).sum())),
    "clamp": (lambda x: x.clamp(min=-1), lambda x: np.maximum(x, -1)),
    "clamp by tiles": (lambda x: pto.clamp(x, x * 0 - 1, x.mean(keepdims=True)), lambda x: np.clip(x, -1, x.mean())),
    "stack": (lambda x: np.stack([x, x * 2])[1], lambda x: x * 2),
    "mT": (lambda x: x.mT.T * 3, lambda x: x * 3),
    "max of two": (lambda x: pto.max(x, 1) + x.max(x * 2), lambda x: np.maximum(x, 1) + np.maximum(x, x * 2)),
    "min of two": (lambda x: pto.min(x, 1) - pto.min(x, x * 2), lambda x: np.minimum(x, 1) - np.minimum(x, x * 2)),
    "max of one": (lambda x: x + pto.max(x, axis=1, keepdims=True), lambda x: x + x.max(1, keepdims=True)),
    "amax of torch": (lambda x: x - x.amax(dim=-1, keepdim=True), lambda x: x - x.max(1, keepdims=True)),
    "methods of torch": (lambda x: x.exp().add(1).log().mul(x.sigmoid()), lambda x: np.log(np.exp(x) + 1) / (1 + np.exp(-x))),
    "cat": (lambda x: pto.cat([x, x], dim=1)[:, :x.shape[1]], lambda x: x),
    "split": (lambda x: pto.split(x, 1)[0], lambda x: x),
    "mm": (lambda x: x.mm(x.T @ x), lambda x: x @ (x.T @ x)),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", LINES)
def test_a_line_is_numpys(name: str) -> None:
    line, dtypes, result = LINES[name]
    for dtype in dtypes:
        for shape in SHAPES:
            if name != "split" or shape[0] > 1:
                x = numbers(dtype, shape)
                expected = wide(line, x)
                near(kernel_of(line, x, expected.shape, result or dtype).run(x), expected, dtype, f"{name} {dtype} {shape}")


@pytest.mark.parametrize("name", OTHERS)
def test_a_line_is_its_formula(name: str) -> None:
    line, meaning = OTHERS[name]
    for dtype in (F32, F64) if name == "mm" else FLOATS:        # products of halves are f32
        for shape in SHAPES:
            x = numbers(dtype, shape)
            near(kernel_of(line, x, x.shape, dtype).run(x), meaning(x.astype(np.float64)), dtype, f"{name} {dtype} {shape}")


def test_every_formula_is_tested() -> None:
    text = " ".join((*REDUCTIONS, *LINES, *OTHERS)).replace(".", " ").split()
    assert {formula.name for formula in FORMULAS} <= {*text, "amin", "amax", "random", "random_at"}     # test_random.py


# ---- edges ----

def run(line: Line, x: Array, dtype: DType = F32) -> Array:
    shape = x.shape
    result: Array = kernel_of(line, x, shape, dtype).run(x)
    return result


def test_softmax_of_large_numbers_neither_overflows_nor_vanishes() -> None:
    x = np.array([[1000, 1000, -1000, 0], [-1000, -1000, -1001, -2000]], np.float32)
    assert run(lambda x: pto.softmax(x), x)[0].tolist() == [0.5, 0.5, 0, 0]
    np.testing.assert_allclose(run(lambda x: pto.softmax(x), x)[1], [0.42232, 0.42232, 0.15536, 0], rtol=1e-4)


def test_logsumexp_of_infinities() -> None:
    lowest, inf = -np.inf, np.inf
    x = np.array([[lowest, lowest], [inf, 0], [lowest, 3], [np.nan, 0]], np.float32)
    found = run(lambda x: x * 0 + 1, np.ones((4, 2), np.float32)) * kernel_of(
        lambda x: pto.logsumexp(x, 1, keepdims=True), x, (4, 1), F32).run(x)
    np.testing.assert_array_equal(found[:, 0], [lowest, inf, 3, np.nan])


def test_nan_stays() -> None:
    x = np.array([[np.nan, 1, 5]], np.float32)
    np.testing.assert_array_equal(run(lambda x: x.clamp(0, 2), x), [[np.nan, 1, 2]])
    np.testing.assert_array_equal(run(lambda x: np.cumsum(x, 1), x[:, ::-1].copy()), [[5, 6, np.nan]])
    assert kernel_of(lambda x: x.any(axis=1, keepdims=True), x * 0, (1, 1), BOOL).run(x * 0).item() is True


def test_a_short_sum_of_bytes_wraps_and_a_cast_one_does_not() -> None:
    x = np.full((1, 3), 100, np.int8)
    assert kernel_of(lambda x: x.sum(axis=1, keepdims=True), x, (1, 1), I8).run(x).item() == 44
    assert kernel_of(lambda x: x.sum(axis=1, dtype="int32", keepdims=True), x, (1, 1), I32).run(x).item() == 300


# ---- the other targets ----

@pytest.mark.slow
def test_generated_c_gives_what_the_interpreter_gives() -> None:
    x = numbers(F32, (4, 8))
    cases = [(name, line) for name, (line, _) in OTHERS.items() if name != "mm"]
    cases += [(name, line) for name, (line, dtypes, result) in LINES.items() if F32 in dtypes and result is None]
    cases += [(f"{name} of rows", lambda x, line=line: x * 0 + line(x, axis=1)) for name, (line, dtypes, result) in REDUCTIONS.items()
              if F32 in dtypes and result is None]
    lines = [line for _, line in cases]

    @kernel
    def everything(x: In[Tile[4, 8, F32]], y: Out[Tensor]) -> None:
        for place, line in enumerate(lines):
            pto.store(y, line(x), (4 * place, 0))

    X, Y = Tensor(x), Tensor(np.zeros((4 * len(lines), 8), np.float32))

    @workload
    def once() -> None:
        everything(X, Y)

    found = {}
    for target in ("interp", "cpu_sim"):
        Y.data[:] = 7
        once().compile(target).run()
        found[target] = Y.data.copy().reshape(-1, 4, 8)
    for place, (name, _) in enumerate(cases):
        np.testing.assert_allclose(found["cpu_sim"][place], found["interp"][place], rtol=1e-5, atol=1e-5, err_msg=name)


NPU: dict[str, tuple[Line, DType, DType, tuple[int, int], float]] = {
    "softmax": (lambda x: pto.softmax(x), F32, F32, (8, 40), 1e-5),
    "softmax of halves": (lambda x: pto.softmax(x), F16, F16, (8, 40), 2e-3),
    "softmax down": (lambda x: x.softmax(0), F32, F32, (8, 40), 1e-5),
    "logsumexp": (lambda x: x.logsumexp(1, keepdims=True), F32, F32, (8, 1), 1e-5),
    "cumsum": (lambda x: (x / 3).cumsum(1), F32, F32, (8, 40), 0.0), "cumsum of integers": (lambda x: x.cumsum(1), I32, I32, (8, 40), 0.0),
    "cumsum down": (lambda x: x.cumsum(0), I8, I8, (8, 40), 0.0),
    "any": (lambda x: (x > 2).any(axis=1, keepdims=True), F32, BOOL, (8, 1), 0),
    "all": (lambda x: x.all(axis=0, keepdims=True), I32, BOOL, (1, 40), 0), "count": (lambda x: pto.rowsum(x), BOOL, I32, (8, 1), 0),
    "count down": (lambda x: pto.colsum(x), BOOL, I32, (1, 40), 0),
    "argmax down": (lambda x: x.argmax(0, keepdims=True), F32, I32, (1, 40), 0),
    "prod down": (lambda x: x.prod(0, keepdims=True), F32, F32, (1, 40), 1e-5), "clamp": (lambda x: x.clamp(-1, 2), BF16, BF16, (8, 40), 0),
    "std": (lambda x: x.std(axis=1, keepdims=True), F32, F32, (8, 1), 1e-5),
}


@pytest.mark.parametrize("name", NPU)
def test_instructions_of_an_npu_give_what_the_interpreter_gives(name: str) -> None:
    line, given, result, shape, rtol = NPU[name]
    check(line, numbers(given, (8, 40)), out=(*shape, result), rtol=rtol, atol=rtol)


@pytest.mark.slow
@pytest.mark.parametrize("axis", [0, 1])
def test_running_sums_have_one_order_on_every_target(axis: int) -> None:
    """Doubling steps, by hand; numbers of many sizes, so that another order gives other bits."""
    rng = np.random.default_rng(3)
    given = [(rng.standard_normal((5, 13)) * 10.0 ** rng.integers(-3, 4, (5, 13))).astype(dtype.np) for dtype in (F32, F64, F16, BF16)]
    results = [Tensor(np.zeros_like(x)) for x in given]

    @kernel
    def running(x: In[Tensor], y: Out[Tensor]) -> None:
        pto.store(y, pto.load(x, (0, 0), shape=(5, 13)).cumsum(axis))

    @workload
    def all_of_them() -> None:
        for x, y in zip(given, results, strict=True):
            running(Tensor(x), y)

    for target in ("interp", "cpu_sim"):
        for result in results:
            result.data[:] = 0
        all_of_them().compile(target).run()
        for x, result in zip(given, results, strict=True):
            total = np.moveaxis(x.astype(np.float32) if x.itemsize == 2 else x.copy(), axis, 0)
            step = 1
            while step < len(total):
                total = np.concatenate([total[:step], total[step:] + total[:-step]])
                step *= 2
            assert np.moveaxis(total, 0, axis).astype(x.dtype).tobytes() == result.data.tobytes(), (target, x.dtype)
            assert x.itemsize == 2 or (np.cumsum(x, axis=axis) != result.data).any()


def test_running_sums_along_a_row_are_those_of_its_blocks_whatever_comes_behind() -> None:
    rng = np.random.default_rng(4)
    x = (rng.standard_normal((3, 1001)) * 10.0 ** rng.integers(-3, 4, (3, 1001))).astype(np.float32)
    total, step = np.pad(x, ((0, 0), (0, 23))).reshape(48, 64), 1
    while step < 64:
        total = np.concatenate([total[:, :step], total[:, step:] + total[:, :-step]], axis=1)
        step *= 2
    blocks, step = total[:, -1].reshape(3, 16), 1
    while step < 16:
        blocks = np.concatenate([blocks[:, :step], blocks[:, step:] + blocks[:, :-step]], axis=1)
        step *= 2
    wanted = total.reshape(3, 16, 64)
    wanted[:, 1:] += blocks[:, :-1, None]
    for n in (1001, 640, 65, 64, 63):
        found = run(lambda x: x.cumsum(1), np.ascontiguousarray(x[:, :n]))
        np.testing.assert_array_equal(found, wanted.reshape(3, 1024)[:, :n])
    whole = rng.integers(-2 ** 31, 2 ** 31, (2, 200)).astype(np.int32)
    np.testing.assert_array_equal(run(lambda x: x.cumsum(1), whole, I32), np.cumsum(whole, axis=1, dtype=np.int32))


# ---- mistakes ----

@pytest.mark.parametrize(("line", "code", "text"), [
    (lambda x: x.sum(axis=1), "T214", "keepdims=True"), (lambda x: np.sum(x), "T214", "[1, 1]"),
    (lambda x: x.sum(dim=1), "T214", "x.sum(dim=1, keepdim=True) gives [R, 1]"),
    (lambda x: x.sum(axis=2, keepdims=True), "T214", "not an axis"), (lambda x: x.sum(axis=True, keepdims=True), "T214", "not an axis"),
    (lambda x: x.sum(axis=(0, 0), keepdims=True), "T214", "not an axis"), (lambda x: x.sum(axis=(), keepdims=True), "T214", "not an axis"),
    (lambda x: x.sum(axis=0, dim=1, keepdims=True), "T214", "same option"), (lambda x: x.sum(axis=1, keepdims=1), "T214", "keepdims=1"),
    (lambda x: x.max(dim=1, keepdim=True), "T214", "a pair"), (lambda x: x.std(dim=1), "T214", "n - 1"),
    (lambda x: x.var(axis=1, ddof=-1, keepdims=True), "T214", "ddof"), (lambda x: np.cumsum(x), "T214", "one-dimensional"),
    (lambda x: pto.softmax(x, (0, 1)), "T214", "more than one axis"), (lambda x: x.transpose(0, 1), "T101", "transpose"),
    (lambda x: x.transpose((0, 1)), "T214", "x.T"), (lambda x: np.round(x, 2), "T101", "decimals"),
    (lambda x: x.clamp(), "T101", "no bound"), (lambda x: pto.max(x, x, axis=1), "T101", "or one and an axis"),
    (lambda x: np.split(x, 3, axis=1), "T207", "divisor of 8"), (lambda x: np.split(x, [3, 2], axis=1), "T207", "rising places"),
    (lambda x: np.split(x, [0, 9], axis=1), "T207", "rising places"), (lambda x: pto.concatenate(x), "T213", "a list of tiles"),
    (lambda x: (x > 0).max(axis=1, keepdims=True), "T204", "x.any(axis=1, keepdims=True)"),
    (lambda x: x.isnan().mean(1), "T214", "keepdims"),
    (lambda x: pto.cast(x, I32).mean(1, keepdims=True), "T204", "pto.cast"), (lambda x: np.sum(x, axis=1, out=x), "T101", "out"),
    (lambda x: x.sum(1, True), "T214", "keepdims=True"), (lambda x: pto.softmax(3), "T213", "takes a tile"),
    (lambda x: pto.any(pto.cast(x, DType.FP8E4M3), 1, keepdims=True), "T204", "fp8e4m3"), (lambda x: x.astype("f31"), "T207", "float32"),
    (lambda x: pto.zeros((1, 8), int), "T207", "say the width"), (lambda x: x.reshape(3, -1), "T207", "shape"),
])
def test_a_mistake_is_an_error_at_the_line(line: Line, code: str, text: str) -> None:
    x = numbers(F32, (4, 8))
    with pytest.raises(PtoError) as caught:
        run(line, x)
    assert caught.value.code == code and text in str(caught.value), str(caught.value)
    assert "test_array_names.py" in str(caught.value.span)


def test_a_tile_has_the_names_of_its_methods() -> None:
    assert {"sum", "exp", "softmax", "clip", "astype", "reshape", "square"} <= set(methods())
    assert not {"and_", "not_", "where", "sort", "store", "rowsum"} & set(methods())
