"""Writes to parts of buffers and parameters, and reads of parts that start where only the run tells, against NumPy on both host targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, In, InOut, Kernel, Out, Scalar, Tensor, Tile, Workload, kernel, pto, workload
from pto_wsp.errors import NpuOpError, TaskFailedError
from tests.api.test_items import TARGETS, check, run_on
from tests.npu.harness import A2A3_FAST
from tests.npu.kernels.batch import Bound, Case
from tests.npu.kernels.batch import check as check_on_core
from tests.tolerances import Array

F32, I32 = DType.F32, DType.I32
X = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
Change = Callable[[Any, Any, Any, Any], None]


# Each is both a kernel's body, where `turns` is pto.range, and NumPy's meaning of it.

def with_constants(b: Any, x: Any, i: Any, turns: Any) -> None:
    b[0:3, 0:4] = x
    b[1:4, 2:4] = x[0:3, 0:2] * 10
    b[2, :] = 7
    b[:, 5] = x[0, 0]
    b[-1:] = 3
    b[0, 0] += x[2, 3]


def with_scalars(b: Any, x: Any, i: Any, turns: Any) -> None:
    b[i:i + 3, 0:4] = x
    b[i, :] += 100
    b[:, i * 2:(i + 1) * 2] *= 2
    b[i + 1, i + 2] = 5
    b[i:i + 2, 0:3] -= x[0:2, 1:4]


def in_loops(b: Any, x: Any, i: Any, turns: Any) -> None:
    for r in turns(3):
        b[r, 0:4] = x[r:r + 1] * 2
        for c in turns(r):
            b[r:r + 2, c:c + 2] += 1
        b[:, r + 1] += b[:, r] * 3


def by_itself(b: Any, x: Any, i: Any, turns: Any) -> None:
    b[0:3, 0:4] = x
    b[1:4] = b[0:3]
    b[:, 0:2] = b[:, 2:4]
    b[:, i:i + 2] = b[:, i + 1:i + 3]
    old = b[0:2] + 0
    b[0:2] = b[2:4] + old
    b[2:4] = old


CHANGES = (with_constants, with_scalars, in_loops, by_itself)


def kernel_of(change: Change, dtype: DType) -> Kernel:
    """Return a kernel that makes the change to a buffer of zeros."""
    @kernel
    def changed(x: In[Tile[3, 4, dtype]], i: Scalar[I32], out: Out[Tile[5, 6, dtype]]) -> None:
        b = pto.alloc((5, 6), dtype, init=0)
        change(b, x, i, pto.range)
        pto.store(out, b)

    return changed


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [F32, DType.BF16, DType.I8], ids=str)
def test_parts_are_written_in_order(dtype: DType) -> None:
    x = X.astype(dtype.np)
    for change in CHANGES:
        for i in (0, 2):
            expected = np.zeros((5, 6), dtype.np)
            change(expected, x, i, range)
            check(kernel_of(change, dtype), {"out": expected}, x=x, i=i, out=np.ones((5, 6), dtype.np))


@kernel
def place(x: In[Tile[2, 3, F32]], r: Scalar[I32], c: Scalar[I32], out: Out[Tile[4, 5, F32]]) -> None:
    """Put a tile into a buffer at a place known at run time."""
    b = pto.alloc((4, 5), F32, init=0)
    b[r:r + 2, c:c + 3] = x
    pto.store(out, b)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("at", [(3, 0), (0, 3), (-1, 0), (0, -1), (2 ** 31 - 1, 0), (-2 ** 31, -2 ** 31)])
def test_a_part_that_leaves_its_buffer_ends_the_run(at: tuple[int, int]) -> None:
    x = np.ones((2, 3), np.float32)
    for target in TARGETS:
        with pytest.raises(TaskFailedError, match=r"a write of 2 x 3 elements to `b` at \[r, c\] leaves the buffer") as caught:
            run_on(target, place, x=x, r=at[0], c=at[1], out=np.zeros((4, 5), np.float32))
        assert (caught.value.expected, caught.value.found) == ("row 0 .. 2, column 0 .. 2", f"row {at[0]}, column {at[1]}")


@pytest.mark.slow
def test_a_read_that_leaves_its_tile_ends_the_run() -> None:
    @kernel
    def window(x: In[Tile[4, 6, F32]], i: Scalar[I32], out: Out[Tile[2, 3, F32]]) -> None:
        pto.store(out, x[i:i + 2, i + 1:i + 4])

    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    for i in (0, 2):
        check(window, {"out": x[i:i + 2, i + 1:i + 4]}, x=x, i=i, out=np.zeros((2, 3), np.float32))
    for target in TARGETS:
        for i in (3, -1, 2 ** 31 - 1):
            with pytest.raises(TaskFailedError, match="an index lies outside"):
                run_on(target, window, x=x, i=i, out=np.zeros((2, 3), np.float32))


def test_items_place_what_is_written() -> None:
    @kernel
    def inverse(order: In[Tile[1, 4, I32]], out: Out[Tile[1, 4, I32]]) -> None:
        b = pto.alloc((1, 4), I32, init=-1)
        for j in pto.range(4):
            b[:, pto.item(order, 0, j)] = j
        pto.store(out, b)

    check(inverse, {"out": np.array([[2, 0, 3, 1]], np.int32)}, order=np.array([[1, 3, 0, 2]], np.int32), out=np.zeros((1, 4), np.int32))


def test_a_part_of_a_parameter_is_a_store_of_the_part() -> None:
    @kernel
    def parts(x: In[Tile[2, 3, F32]], y: InOut[Tile[4, 3, F32]], out: Out[Tile[4, 3, F32]]) -> None:
        y[1:3] = x
        y[-1, 0:2] += 5
        out[0:2] = y[1:3] * 2
        out[2] = 1

    x, y = np.full((2, 3), 2, np.float32), np.ones((4, 3), np.float32)
    changed, out = y.copy(), np.full((4, 3), 9, np.float32)
    changed[1:3], out[0:2], out[2] = 2, 4, 1
    changed[3, 0:2] += 5
    check(parts, {"y": changed, "out": out}, x=x, y=y, out=np.full((4, 3), 9, np.float32))


def test_what_was_read_before_a_part_was_written_stays() -> None:
    @kernel
    def keeps(x: In[Tile[2, 3, F32]], out: Out[Tile[2, 3, F32]]) -> None:
        b = pto.alloc((2, 3), F32, init=1)
        old = pto.load(b)
        b[0] = x[1]
        pto.store(out, old * 10 + b)

    x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    check(keeps, {"out": np.array([[14, 15, 16], [11, 11, 11]], np.float32)}, x=x, out=np.zeros((2, 3), np.float32))


def test_a_branch_writes_its_part_alone() -> None:
    @kernel
    def either(x: In[Tile[1, 4, F32]], n: Scalar[I32], out: Out[Tile[2, 4, F32]]) -> None:
        b = pto.alloc((2, 4), F32, init=0)
        with pto.when(n > 0):
            b[0] = x
        with pto.otherwise():
            b[1, 0:2] = x[:, 2:4]
        pto.store(out, b + 1)

    x = np.array([[1, 2, 3, 4]], np.float32)
    check(either, {"out": np.array([[2, 3, 4, 5], [1, 1, 1, 1]], np.float32)}, x=x, n=1, out=np.zeros((2, 4), np.float32))
    check(either, {"out": np.array([[1, 1, 1, 1], [4, 5, 1, 1]], np.float32)}, x=x, n=0, out=np.zeros((2, 4), np.float32))


@pytest.mark.slow
def test_products_are_added_beside_parts() -> None:
    @kernel
    def blocks(x: In[Tile[8, 8, F32]], out: Out[Tile[8, 8, F32]]) -> None:
        acc = pto.alloc((8, 8), F32, init=0)
        for j in pto.range(2):
            acc += x @ x
            acc[j * 4:(j + 1) * 4, :] = x[0:4] * 2
        acc += x @ x
        pto.store(out, acc)

    x = np.random.default_rng(0).integers(-3, 4, (8, 8)).astype(np.float32)
    expected = np.zeros((8, 8), np.float32)
    for j in range(2):
        expected += x @ x
        expected[j * 4:(j + 1) * 4] = x[0:4] * 2
    check(blocks, {"out": expected + x @ x}, x=x, out=np.zeros((8, 8), np.float32))


def test_a_part_costs_its_elements() -> None:
    @kernel
    def one(x: In[Tile[1, 8, F32]], out: Out[Tile[64, 64, F32]]) -> None:
        b = pto.alloc((64, 64), F32, init=0)
        b[3, 8:16] = x
        pto.store(out, b)

    assert one.cost().total == 8 + 8 + 64 * 64


def test_a_workload_with_parts_reads_back_from_json() -> None:
    @workload
    def once() -> None:
        place(Tensor(np.zeros((2, 3), np.float32), name="x"), 1, 2, Tensor(np.zeros((4, 5), np.float32), name="out"))

    text = once().to_json()
    assert '"kind":"WritePart"' in text and Workload.from_json(text).to_json() == text


@pytest.mark.slow
@pytest.mark.parametrize("family", A2A3_FAST)
def test_parts_with_constant_starts_on_a_vector_core(family: str) -> None:
    def outside(x: Array) -> Array:
        expected = np.zeros((5, 6), np.float32)
        with_constants(expected, x, 0, range)
        return expected

    cases = [Case(kernel_of(with_constants, F32), {"x": Bound.plain(X), "i": 0, "out": Bound.plain(np.zeros((5, 6), np.float32))},
                  expected={"out": outside(X)})]
    check_on_core(cases, family)


def test_a_start_of_the_run_is_refused_on_the_npu() -> None:
    @workload
    def once() -> None:
        place(Tensor(np.zeros((2, 3), np.float32), name="x"), 1, 2, Tensor(np.zeros((4, 5), np.float32), name="out"))

    with pytest.raises(NpuOpError, match="a part of a buffer starts where only the run tells"):
        once().compile("ascend_npu")
