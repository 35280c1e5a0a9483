"""Valid tails: a kernel touches nothing outside what is bound and valid, whatever the tail; on an empty binding it does nothing.

Arrays lie against pages that cannot be touched, so one byte too many ends the child process that the kernels run in.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from pto_wsp.api.pto import pto
from pto_wsp.ir import kernel as k
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tensor import Tensor
from pto_wsp.ir.tile import Tile
from pto_wsp.run.failures import Failure, PieceFault
from pto_wsp.run.kernel_interpreter import failure_of, run_kernel
from pto_wsp.trace.kernel.annotations import In, InOut, Out, Scalar
from tests.selected import selected

from ..conftest import BuildAll, Built, Job
from .guard_pages import Fence, in_child
from .test_emit import trace

F32, F16, I8, I32, BOOL = DType.F32, DType.F16, DType.I8, DType.I32, DType.BOOL
Sizes = Mapping[str, tuple[int, int]]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="mprotect through ctypes, fork")
ROWS, COLS = 5, 21


def scaled(x: In[Tile[ROWS, COLS, F32]], y: Out[Tile[ROWS, COLS, F32]]) -> None:
    pto.store(y, x * 2 + 1)


def halves(x: In[Tile[ROWS, COLS, F16]], y: Out[Tile[ROWS, COLS, F16]]) -> None:
    pto.store(y, x * 2 + 1)


def bytes_and_masks(x: In[Tile[ROWS, COLS, I8]], y: Out[Tile[ROWS, COLS, BOOL]]) -> None:
    pto.store(y, x > 0)


def rmsnorm(x: In[Tile[ROWS, COLS, F32]], y: Out[Tile[ROWS, COLS, F32]]) -> None:
    pto.store(y, x * pto.rsqrt(pto.rowmean(x * x) + 1e-6))


def columns(x: In[Tile[ROWS, COLS, F32]], y: Out[Tile[1, COLS, F32]]) -> None:
    pto.store(y, pto.colmax(x))


def broadcast(x: In[Tile[ROWS, COLS, F32]], row: In[Tile[1, COLS, F32]], col: In[Tile[ROWS, 1, F32]],
              y: Out[Tile[ROWS, COLS, F32]]) -> None:
    pto.store(y, x * row + col)


def updated(x: In[Tile[ROWS, COLS, F32]], y: InOut[Tile[ROWS, COLS, F32]]) -> None:
    for _ in pto.range(2):
        y += x


def product(x: In[Tile[ROWS, COLS, F32]], w: In[Tile[COLS, ROWS, F32]], y: Out[Tile[ROWS, ROWS, F32]]) -> None:
    pto.store(y, x @ w)


def transposed(x: In[Tile[ROWS, COLS, F32]], y: Out[Tile[COLS, ROWS, F32]]) -> None:
    pto.store(y, x.T)


def moved(x: In[Tile[ROWS, COLS, F32]], y: Out[Tile[ROWS, COLS, F32]]) -> None:
    pto.store(y, pto.concat(x[:, 11:21], x[:, 0:11], axis=1))


def sorted_rows(x: In[Tile[ROWS, COLS, F32]], y: Out[Tile[ROWS, COLS, F32]]) -> None:
    pto.store(y, pto.sort(x))


def pieces(x: In[Tensor], n: Scalar[I32], m: Scalar[I32], y: Out[Tensor]) -> None:
    piece = pto.load(x, (0, 0), shape=(ROWS, COLS), valid=(n, m), fill=3)
    pto.store(y, piece * 2, (0, 0), valid=(n, m))


def transposed_pieces(x: In[Tensor], n: Scalar[I32], m: Scalar[I32], y: Out[Tensor]) -> None:
    piece = pto.load(x, (0, 0), shape=(ROWS, COLS), valid=(n, m), fill=3, transpose=True)
    pto.store(y, piece, (0, 0), valid=(m, n))


def blocks(x: In[Tensor], n: Scalar[I32], m: Scalar[I32], y: Out[Tensor]) -> None:
    """Walk a region in blocks of [2, 8], the last of each row and column short."""
    for i in pto.range((n + 1) // 2):
        for j in pto.range((m + 7) // 8):
            rest = (n - i * 2, m - j * 8)
            block = pto.load(x, (i * 2, j * 8), shape=(2, 8), valid=rest)
            with pto.when(j % 2 == 0):
                pto.store(y, block, (i * 2, j * 8), valid=rest)
            with pto.otherwise():
                pto.store(y, -block, (i * 2, j * 8), valid=rest)


def same(rows: int, cols: int) -> Sizes:
    """x and y alike."""
    return {"x": (rows, cols), "y": (rows, cols)}


CASES: list[tuple[Callable[..., None], Callable[[int, int], Sizes]]] = [
    (scaled, same), (halves, same), (bytes_and_masks, same), (rmsnorm, same), (updated, same), (pieces, same), (blocks, same),
    (moved, same), (sorted_rows, same),
    (columns, lambda r, c: {"x": (r, c), "y": (min(r, 1), c)}),
    (broadcast, lambda r, c: {"x": (r, c), "row": (1, c), "col": (r, 1), "y": (r, c)}),
    (product, lambda r, c: {"x": (r, c), "w": (c, r), "y": (r, r)}),
    (transposed, lambda r, c: {"x": (r, c), "y": (c, r)}),
    (transposed_pieces, lambda r, c: {"x": (r, c), "y": (c, r)}),
]


def layouts() -> Iterator[dict[str, Any]]:
    """Yield where the pages that cannot be touched lie."""
    for far, rows_apart in itertools.product((True, False), repeat=2):
        yield {"far": far, "rows_apart": rows_apart}
    yield {"far": True, "rows_apart": True, "columns_apart": 3}


def arguments(kernel: k.Kernel, sizes: Sizes, layout: Mapping[str, Any], rows: int, cols: int) -> dict[str, Any]:
    """Return arrays of these sizes against the fence, and the scalars."""
    rng = np.random.default_rng(rows * 100 + cols)
    args: dict[str, Any] = {"n": rows, "m": cols}
    for param in kernel.memory_params:
        dtype = (param.dtype).np
        shape = sizes[param.name]
        args[param.name] = Fence(*shape, np.dtype(dtype), **layout).array(rng.integers(-3, 4, shape).astype(dtype))
    return {name: value for name, value in args.items() if name in {p.name for p in kernel.params}}


ALL = tuple(itertools.product(range(ROWS + 1), range(COLS + 1)))
SOME = tuple(itertools.product((0, 1, 2, ROWS), (0, 1, 8, 15, 16, 17, 20, COLS)))     # about a vector of 16


def run_tails(built: Built, sizes_of: Callable[[int, int], Sizes], say: Callable[[str], None], tails: Sequence[tuple[int, int]],
              stage: bool = False) -> None:
    """Run a kernel on tails in every layout and compare it with the interpreter."""
    names = tuple(p.name for p in built.kernel.memory_params) if stage else ()
    for layout in layouts():
        if layout.get("columns_apart", 1) > 1 and not built.code.text.count("stride[1]"):
            continue   # compiled for columns that are neighbours
        for rows, cols in tails:
            say(f"{built.kernel.name} {rows} x {cols} {layout}")
            args = arguments(built.kernel, sizes_of(rows, cols), layout, rows, cols)
            expected = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in args.items()}
            assert run_kernel(built.kernel, expected) is None
            assert built(args, names) == 0
            for name, value in expected.items():
                if isinstance(value, np.ndarray):
                    np.testing.assert_allclose(args[name], value, rtol=2e-6, atol=2e-6, err_msg=name)


@pytest.fixture(scope="module")
def kernels(request: pytest.FixtureRequest, build_all: BuildAll) -> Mapping[Hashable, Built]:
    """Return the kernels of the cases of this run, for columns that are neighbours and for any, in one library."""
    jobs: dict[Hashable, Job] = {}
    for function in {scaled, rmsnorm, *(params["function"] for params in selected(request) if "function" in params)}:
        kernel = trace(function, x=F32, y=F32)
        for unit_inner in (True, False):
            jobs[function, unit_inner] = Job(kernel, {p.name: unit_inner for p in kernel.memory_params})
    jobs[two_outputs], jobs[guarded] = Job(trace(two_outputs)), Job(trace(guarded, x=F32))
    return build_all(jobs)


@pytest.mark.parametrize("unit_inner", [True, False], ids=["neighbours", "strided"])
def test_a_tail_never_leaves_its_valid_part(kernels: Mapping[Hashable, Built], unit_inner: bool) -> None:
    built = kernels[scaled, unit_inner]
    assert in_child(lambda say: run_tails(built, same, say, SOME)) == ""


@pytest.mark.slow
@pytest.mark.parametrize("function, sizes_of", CASES, ids=lambda value: getattr(value, "__name__", ""))
def test_no_tail_at_all_leaves_its_valid_part(kernels: Mapping[Hashable, Built], function: Callable[..., None],
                                              sizes_of: Callable[[int, int], Sizes]) -> None:
    for built in (kernels[function, True], kernels[function, False]):
        assert in_child(lambda say, built=built: run_tails(built, sizes_of, say, ALL)) == ""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("function, sizes_of", CASES[:4], ids=lambda value: getattr(value, "__name__", ""))
def test_a_staged_tail_neither(kernels: Mapping[Hashable, Built], function: Callable[..., None],
                               sizes_of: Callable[[int, int], Sizes]) -> None:
    built = kernels[function, True]
    assert in_child(lambda say: run_tails(built, sizes_of, say, SOME, stage=True)) == ""


def test_the_fence_holds() -> None:
    def read(say: Callable[[str], None], *, far: bool, at: int) -> None:
        array = Fence(2, 4, np.dtype(np.float32), far).array(np.zeros((2, 4), np.float32))
        address = array.__array_interface__["data"][0] + 4 * at
        say(f"reading {at}")
        bytes((__import__("ctypes").c_char * 4).from_address(address))

    assert in_child(lambda say: read(say, far=True, at=7)) == ""
    assert in_child(lambda say: read(say, far=True, at=8)) == "signal 11 at: reading 8"
    assert in_child(lambda say: read(say, far=False, at=0)) == ""
    assert in_child(lambda say: read(say, far=False, at=-1)) == "signal 11 at: reading -1"


# ---- nothing to do ----

def test_an_empty_binding_does_no_work(kernels: Mapping[Hashable, Built]) -> None:
    built = kernels[rmsnorm, True]
    body = built.code.text
    assert body.index("return 0;") < body.index("for (int64_t row"), "it returns ahead of its loops"
    for shape in ((0, COLS), (ROWS, 0), (0, 0)):
        y = np.full(shape, 7, np.float32)
        assert built({"x": np.zeros(shape, np.float32), "y": y}) == 0


def two_outputs(x: In[Tile[ROWS, COLS, F32]], y: Out[Tile[ROWS, COLS, F32]], top: Out[Tile[ROWS, 1, F32]]) -> None:
    pto.store(y, x * 2)
    pto.store(top, pto.rowmax(x))


def test_one_empty_output_leaves_the_other(kernels: Mapping[Hashable, Built]) -> None:
    built = kernels[two_outputs]
    x, y, top = np.ones((2, 3), np.float32), np.zeros((2, 0), np.float32), np.zeros((2, 1), np.float32)
    assert built({"x": x, "y": y, "top": top}) == 0
    np.testing.assert_array_equal(top, 1)


def guarded(x: In[Tensor], row: Scalar[I32], y: Out[Tile[2, 2, F32]]) -> None:
    pto.store(y, pto.load(x, (row, 0), shape=(2, 2)))


def test_a_guard_is_asked_even_when_nothing_is_to_be_stored(kernels: Mapping[Hashable, Built]) -> None:
    built = kernels[guarded]
    args: dict[str, Any] = {"x": np.zeros((4, 4), np.float32), "row": 9, "y": np.zeros((0, 2), np.float32)}
    assert run_kernel(built.kernel, dict(args)) == 0
    assert built(args) == 1


def test_a_guard_tells_what_it_found(kernels: Mapping[Hashable, Built]) -> None:
    built = kernels[guarded]
    failed = failure_of(built.kernel, {"x": np.zeros((4, 3), np.float32), "row": 9, "y": np.zeros((2, 2), np.float32)})
    assert failed == Failure(0, PieceFault(9, 0, 2, 1))
    assert "pto_outside(context, 1, &args[0], x_row, 2, 0, 2)" in built.code.text
