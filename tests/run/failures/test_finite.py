"""check_finite=True: which task, which operation, which element turned NaN or infinite, the same from both executors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, In, InOut, Out, P, Program, Scalar, Tensor, Tile, kernel, minimum, pto, workload
from pto_wsp.errors import CompileOptionError, NotFiniteError

F32, F64, I32 = DType.F32, DType.F64, DType.I32
TARGETS = ("interp", "cpu_sim")
INF = float("inf")
Array = np.ndarray[Any, Any]


def program_of(body: Callable[..., None], x: Array, target: str, **options: Any) -> tuple[Program, Tensor]:
    """Return a program that runs a kernel (x, y) on x[b] for each b, checked."""
    made = kernel(body)
    X, Y = Tensor(x), Tensor(np.zeros_like(x))

    @workload
    def main() -> None:
        for b in P(x.shape[0]):
            made[b](x=X[b], y=Y[b])
    return main().compile(target=target, **({"check_finite": True} | options)), Y


def ones(*shape: int) -> Array:
    """Return f32 ones."""
    return np.ones(shape, np.float32)


def fault_of(body: Callable[..., None], x: Array, target: str) -> str:
    """Return the first line and what was found, of the error that a run ends with; "none" for a run that ends well."""
    program, _ = program_of(body, x, target)
    try:
        program.run()
    except NotFiniteError as error:
        return f"{error.message}; found {error.found}"
    return "none"


def log_of(x: In[Tile[2, 4, F32]], y: Out[Tile[2, 4, F32]]) -> None:
    pto.store(y, pto.log(x))


def product(x: In[Tile[2, 4, F32]], y: Out[Tile[2, 4, F32]]) -> None:
    acc = pto.alloc((2, 2), F32, init=0)
    for _ in pto.range(3):
        acc += x @ pto.transpose(x)
    pto.store(y, acc @ x)


def sums(x: In[Tile[2, 4, F32]], y: Out[Tile[2, 4, F32]]) -> None:
    pto.store(y, x - pto.rowsum(x))


def column_sums(x: In[Tile[2, 4, F32]], y: Out[Tile[2, 4, F32]]) -> None:
    pto.store(y, x - pto.colsum(x))


def masked(x: In[Tile[2, 4, F32]], y: Out[Tile[2, 4, F32]]) -> None:
    shown = pto.where(x > 0, x, -INF)
    pto.store(y, pto.exp(shown - pto.maximum(pto.rowmax(shown), -1e30)))


def filled(x: In[Tensor], y: Out[Tile[2, 4, F32]]) -> None:
    piece = pto.load(x, (0, 0), shape=(4, 4), valid=(2, 4), fill=-INF)
    pto.store(y, pto.exp(pto.colmax(piece) + pto.load(x, (0, 0), shape=(2, 4))))


def chosen(x: In[Tile[2, 4, F32]], y: Out[Tile[2, 4, F32]]) -> None:
    pto.store(y, pto.where(x > 0, pto.sqrt(x), 0.0))


def narrowed(x: In[Tile[2, 4, F32]], y: Out[Tile[2, 4, F32]]) -> None:
    wide = pto.cast(x, F64) * 1e30
    pto.store(y, pto.cast(wide * 1e30, F32))


def halves(x: In[Tile[2, 4, F32]], y: Out[Tile[2, 4, F32]]) -> None:
    half = pto.cast(x, DType.F16)
    pto.store(y, pto.cast(half * half, F32) + pto.cast(pto.log(pto.cast(x, DType.BF16)), F32))


def stored(x: In[Tile[2, 4, F32]], y: Out[Tile[2, 4, F32]]) -> None:
    large = pto.cast(pto.cast(x, DType.FP8E5M2), F32)
    pto.store(y, pto.exp(-pto.abs(large)) + pto.cast(pto.transpose(pto.transpose(pto.cast(pto.abs(x), DType.FP8E4M3))), F32))


def mask_of_fp8(x: In[Tile[2, 4, F32]], y: Out[Tile[2, 4, F32]]) -> None:
    mask = pto.reshape(pto.cast(pto.where(x > 0, -INF, x), DType.FP8E5M2), (4, 2))
    pto.store(y, pto.exp(pto.cast(pto.reshape(mask, (2, 4)), F32)))


def turned(x: In[Tile[2, 4, F32]], y: Out[Tile[2, 4, F32]]) -> None:
    scores = x @ pto.transpose(x)
    outer = pto.transpose(x) @ x
    pto.store(y, pto.exp(-(x @ outer)) + pto.rowmin(scores))


def at(*where: int, value: float, shape: tuple[int, ...] = (3, 2, 4)) -> Array:
    """Return ones with one element of another value."""
    x = np.ones(shape, np.float32)
    x[where] = value
    return x


def beside(value: float, large: float) -> Array:
    """Return a tile whose first row holds `value` and whose second holds `large`: each explains its own row only."""
    x = np.ones((1, 2, 4), np.float32)
    x[0, 0, 0], x[0, 1, 3] = value, large
    return x


CASES = [
    (log_of, at(1, 0, 3, value=-2), "task log_of[b=1]: `log` gave nan at row 0, column 3; found nan, from -2"),
    (log_of, at(2, 1, 0, value=0), "task log_of[b=2]: `log` gave -inf at row 1, column 0; found -inf, from 0"),
    (log_of, at(2, 1, 0, value=np.nan), "task log_of[b=2]: `load x` brought nan at row 1, column 0; found nan"),
    (log_of, at(2, 1, 0, value=INF), "none"),
    (product, at(1, 1, 2, value=2e19), "task product[b=1]: `matmul` gave inf at row 1, column 1; found inf"),
    (product, at(1, 1, 2, value=INF), "none"),
    (sums, ones(1, 2, 4) * 2e38, "task sums[b=0]: `rowsum` gave inf at row 0, column 0; found inf"),
    (sums, at(0, 1, 2, value=INF), "task sums[b=0]: `sub` gave nan at row 1, column 2; found nan, from inf and inf"),
    (column_sums, ones(1, 2, 4) * 2e38, "task column_sums[b=0]: `colsum` gave inf at row 0, column 0; found inf"),
    (column_sums, at(0, 1, 2, value=INF), "task column_sums[b=0]: `sub` gave nan at row 1, column 2; found nan, from inf and inf"),
    (masked, at(0, 1, 2, value=-5), "none"),
    (masked, ones(2, 2, 4) * -1, "none"),
    (filled, ones(2, 2, 4), "none"),
    (chosen, at(0, 1, 2, value=-4), "task chosen[b=0]: `sqrt` gave nan at row 1, column 2; found nan, from -4"),
    (halves, at(1, 1, 2, value=300), "task halves[b=1]: `mul` gave inf at row 1, column 2; found inf, from 300 and 300"),
    (halves, at(1, 1, 2, value=70000), "task halves[b=1]: `cast` gave inf at row 1, column 2; found inf, from 70000"),
    (halves, at(1, 1, 2, value=-INF), "task halves[b=1]: `log` gave nan at row 1, column 2; found nan, from -inf"),
    (halves, at(1, 1, 2, value=-0.5), "task halves[b=1]: `log` gave nan at row 1, column 2; found nan, from -0.5"),
    (stored, ones(2, 2, 4), "none"),
    (mask_of_fp8, at(1, 1, 2, value=-1), "none"),
    (stored, at(1, 1, 2, value=1e5), "task stored[b=1]: `cast` gave inf at row 1, column 2; found inf, from 100000"),
    (stored, at(1, 1, 2, value=-464.5), "task stored[b=1]: `cast` gave nan at row 1, column 2; found nan, from 464.5"),
    (stored, at(1, 1, 2, value=INF), "task stored[b=1]: `cast` gave nan at row 1, column 2; found nan, from inf"),
    (stored, at(1, 1, 2, value=-464), "none"),
    (turned, at(1, 1, 2, value=2e19), "task turned[b=1]: `matmul` gave inf at row 1, column 1; found inf"),
    (turned, at(1, 1, 2, value=INF), "none"),
    (turned, beside(INF, 2e19), "task turned[b=0]: `matmul` gave inf at row 1, column 1; found inf"),
    (narrowed, ones(1, 2, 4), "task narrowed[b=0]: `cast` gave inf at row 0, column 0; found inf, from 1e+60"),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("body", "x", "expected"), CASES, ids=[f"{case[0].__name__}-{n}" for n, case in enumerate(CASES)])
def test_the_fault_is_named(body: Callable[..., None], x: Array, expected: str, target: str) -> None:
    assert fault_of(body, x, target) == expected


@pytest.mark.parametrize("target", TARGETS)
def test_the_error_stands_at_the_operation(target: str) -> None:
    program, _ = program_of(log_of, at(1, 0, 3, value=-2), target)
    with pytest.raises(NotFiniteError) as found:
        program.run()
    lines = str(found.value).splitlines()
    assert found.value.code == "R105" and "pto.store(y, pto.log(x))" in lines[3]
    assert lines[4][lines[3].index("pto.log"):].startswith("^" * len("pto.log(x)"))
    assert any("the task was made at" in line for line in lines)


@pytest.mark.parametrize("threads", [1, 4])
def test_the_first_task_is_named_whatever_the_threads_do(threads: int) -> None:
    x = ones(600, 2, 4)
    x[[77, 78, 100, 300, 599], 1, 1] = -1
    program, Y = program_of(log_of, x, "cpu_sim", threads=threads)
    for _ in range(10):
        with pytest.raises(NotFiniteError, match=r"log_of\[b=77\]"):
            program.run()
    assert Y.data is not None and not Y.data[77].any()        # the task ended before its store
    x[:] = np.e
    program.run()                                             # and the program still runs
    assert np.allclose(Y.data, 1)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_numbers_stay_bit_for_bit(target: str) -> None:
    def body(x: In[Tile[16, 64, F32]], w: In[Tile[64, 64, F32]], y: InOut[Tile[16, 64, F32]]) -> None:
        scaled = x * pto.rsqrt(pto.rowmean(x * x) + 1e-6)
        acc = pto.alloc((16, 64), F32, init=0.5)
        for _ in pto.range(2):
            acc += scaled @ w
        pto.store(y, y + pto.exp(acc - pto.rowmax(acc)) + pto.colsum(acc) * 0.01 + (x @ w + acc))
    made = kernel(body)
    rng = np.random.default_rng(1)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((4, 16, 64), (64, 64)))
    results = []
    for check in (False, True):
        X, W, Y = Tensor(x), Tensor(w), Tensor(np.ones_like(x))

        @workload
        def main(X: Tensor = X, W: Tensor = W, Y: Tensor = Y) -> None:
            for b in P(4):
                made[b](x=X[b], w=W, y=Y[b])
        main().compile(target=target, check_finite=check).run()
        assert Y.data is not None
        results.append(Y.data.tobytes())
    assert results[0] == results[1]


@pytest.mark.parametrize("target", TARGETS)
def test_a_nan_given_as_a_scalar_is_named_where_it_is_used(target: str) -> None:
    @kernel
    def scaled(x: In[Tile[2, 4, F32]], s: Scalar[F32], y: Out[Tile[2, 4, F32]]) -> None:
        pto.store(y, x * s)
    X, Y = Tensor(ones(2, 4)), Tensor(ones(2, 4))

    @workload
    def main() -> None:
        scaled(x=X, s=float("nan"), y=Y)
    with pytest.raises(NotFiniteError, match="`mul` gave nan"):
        main().compile(target=target, check_finite=True).run()


@pytest.mark.slow
def test_the_option_is_part_of_the_cache_key() -> None:
    plain, _ = program_of(log_of, ones(2, 2, 4), "cpu_sim", check_finite=False)
    checked, _ = program_of(log_of, ones(2, 2, 4), "cpu_sim")
    assert plain.artifact_dir != checked.artifact_dir
    with pytest.raises(CompileOptionError, match="threads"):
        program_of(log_of, ones(2, 2, 4), "interp", threads=2)
    with pytest.raises(CompileOptionError):
        program_of(log_of, ones(2, 2, 4), "cpu_sim", check_finite="yes")


@pytest.mark.parametrize("target", TARGETS)
def test_masks_are_put_in_order_in_checked_kernels_too(target: str) -> None:
    """The C functions of both are called by dtypes, of which one is called as a type of C."""
    def order(x: In[Tile[2, 4, F32]], y: Out[Tile[2, 4, F32]]) -> None:
        pto.store(y, pto.cast(pto.argsort(x > 0), F32) + x * 0)

    x = np.array([[[1, -1, 2, -2], [-1, -2, 3, 4]]], np.float32)
    program, Y = program_of(order, x, target)
    program.run()
    np.testing.assert_array_equal(Y.data, np.argsort(x > 0, axis=-1, kind="stable"))


@kernel
def times(x: In[Tile[16, 16, F32]], w: In[Tile[16, 16, F32]], y: Out[Tile[16, 16, F32]]) -> None:
    pto.store(y, x @ w)


@pytest.mark.parametrize("target", TARGETS)
def test_rows_that_a_binding_leaves_out_are_not_read(target: str) -> None:
    memory = np.full((16, 16), np.nan, np.float32)      # behind the five rows of X lie other elements
    memory[:5] = 1
    X, W, Y = Tensor(memory[:5]), Tensor(ones(16, 16)), Tensor(np.zeros((5, 16), np.float32))

    @workload
    def main() -> None:
        times(X[0:].clip(16, None), W, Y[0:].clip(16, None))

    main().compile(target, check_finite=True).run()
    assert (np.asarray(Y) == 16).all()


def quotient(x: In[Tile[8, 16, F32]], y: Out[Tile[8, 16, F32]]) -> None:
    acc = pto.alloc((8, 16), F32, init=0)
    for _ in pto.range(2):
        acc[:] = acc + x
    scale = pto.sqrt(pto.rowmean(x * x))
    whole = acc / scale
    pto.store(y, pto.transpose(pto.transpose(pto.concat(whole[:, :8], whole[:, 8:], axis=1))))


def quotient_of_loads(x: In[Tensor], y: Out[Tensor]) -> None:
    for j in pto.range(2):
        rows = x.shape[0] - j * 8
        part = pto.load(x, (j * 8, 0), shape=(8, 16), valid=(minimum(8, rows), None))
        pto.store(y, 2 * part / part, (j * 8, 0), valid=(minimum(8, rows), None))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("body", [quotient, quotient_of_loads])
def test_the_rest_of_a_short_tile_is_no_fault(body: Callable[..., None], target: str) -> None:
    made, n = kernel(body), 5 if body is quotient else 13
    x = ones(n, 16)
    X, Y = Tensor(x), Tensor(np.zeros((n, 16), np.float32))

    @workload
    def main() -> None:
        made(X[0:].clip(8, None), Y[0:].clip(8, None)) if body is quotient else made(X, Y)

    program = main().compile(target, check_finite=True)
    program.run()
    assert (np.asarray(Y) == 2).all()
    x[n - 1] = 0
    with pytest.raises(NotFiniteError, match=f"`div` gave nan at row {4}, column 0"):
        program.run()


@pytest.mark.parametrize("target", TARGETS)
def test_rows_that_are_turned_are_looked_at_where_they_end(target: str) -> None:
    @kernel
    def turned(x: In[Tile[8, 16, F32]], y: Out[Tile[8, 16, F32]]) -> None:
        pto.store(y, pto.log(x)[::-1])

    X, Y = Tensor(ones(5, 16)), Tensor(np.zeros((5, 16), np.float32))

    @workload
    def main() -> None:
        turned(X[0:].clip(8, None), Y[0:].clip(8, None))

    with pytest.raises(NotFiniteError, match="`log` gave -inf at row 5, column 0"):      # which is stored in row 2
        main().compile(target, check_finite=True).run()


@pytest.mark.parametrize("target", TARGETS)
def test_a_fill_that_is_stored_is_a_fault(target: str) -> None:
    @kernel
    def logs(x: In[Tensor], y: Out[Tile[8, 16, F32]]) -> None:
        pto.store(y, pto.log(pto.load(x, (0, 0), shape=(8, 16), valid=(5, None))))

    X, Y = Tensor(ones(5, 16)), Tensor(np.zeros((8, 16), np.float32))

    @workload
    def main() -> None:
        logs(X, Y)

    with pytest.raises(NotFiniteError, match="`log` gave -inf at row 5, column 0"):
        main().compile(target, check_finite=True).run()
