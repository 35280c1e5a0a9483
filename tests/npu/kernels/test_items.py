"""Items on the emulated vector core: the scalar unit reads elements of tiles, as offsets, bounds, conditions and numbers."""

from __future__ import annotations

import random

import numpy as np
import pytest

from pto_wsp import DType, In, InOut, Kernel, Out, Scalar, Tensor, Tile, Workload, kernel, pto, workload
from pto_wsp.errors import NpuOpError
from tests.npu.harness import A2A3_FAST, A5_FAST
from tests.npu.kernels.batch import Array, Bound, Case, check
from tests.npu.kernels.test_drawn import lies

F32, I32 = DType.F32, DType.I32
WHOLE = (DType.I16, I32, DType.I64)


@kernel
def pages(cache: In[Tensor], table: In[Tensor], count: In[Tile[1, 1, I32]], out: Out[Tile[2, 5, F32]]) -> None:
    """Add up pages by a block table; the first page counts twice."""
    total = pto.alloc((2, 5), F32, init=0)
    n = pto.item(count)
    for j in pto.range(n.min(table.shape[1])):
        page = pto.item(table, 0, j)
        piece = pto.load(cache, (page * 2, 0), shape=(2, 5))
        with pto.when(page == 0):
            total += piece * 2
        with pto.otherwise():
            total += piece * page
    pto.store(out, total)


@kernel
def picks(x: In[Tile[3, 7, I32]], r: Scalar[I32], c: Scalar[I32], out: Out[Tile[3, 7, I32]]) -> None:
    """Add an element at a place known at run time."""
    pto.store(out, x + pto.item(x, r, c) + x.item(1, 2))


@kernel
def multiplies(x: In[Tile[8, 16, F32]], cache: In[Tensor], table: In[Tensor], n: Scalar[I32], out: Out[Tensor]) -> None:
    """Multiply by pages of a block table, and by pages that entries of these name; the cube core reads the entries."""
    for j in pto.range(n):
        page = pto.item(table, 0, j)
        pto.store(out, x @ pto.load(cache, (page * 16, 0), shape=(16, 12)), (j * 16, 0))
        pto.store(out, x @ pto.load(cache, (pto.item(table, 0, page) * 16, 0), shape=(16, 12)), (j * 16 + 8, 0))


def chases(dtype: DType) -> Kernel:
    """Return a kernel in which each item is the place of the next, and a buffer keeps what was found."""
    @kernel
    def chased(x: In[Tile[5, 9, dtype]], out: Out[Tile[5, 9, I32]]) -> None:
        found, at = pto.alloc((5, 9), I32, init=0), pto.alloc((1, 1), I32, init=0)
        for j in pto.range(4):
            row = pto.item(at)
            value = pto.item(x, row, j * 2)
            found[:] = found * 2 + value
            with pto.when(value > 1):
                at[:] = pto.full((1, 1), value % 5, I32)
        pto.store(out, found)

    return chased


def paged(seed: int, count: int) -> Case:
    rng = random.Random(seed)
    cache = np.random.default_rng(seed).integers(-9, 9, (16, 5)).astype(np.float32)
    table = np.array([[rng.randrange(8) for _ in range(rng.choice([1, 4, 9]))]], np.int32)
    return Case(pages, {"cache": lies(rng, cache), "table": lies(rng, table), "count": Bound.plain(np.array([[count]], np.int32)),
                        "out": Bound.plain(np.zeros((2, 5), np.float32))}, {"cache": F32, "table": I32})


@pytest.mark.slow
@pytest.mark.parametrize("family", A2A3_FAST)
def test_a_block_table_in_the_kernel(family: str) -> None:
    check([paged(seed, count) for seed in range(4) for count in (0, 3, 20)], family)


@pytest.mark.slow
@pytest.mark.parametrize("family", A5_FAST)
def test_an_item_says_where_the_next_is(family: str) -> None:
    cases = []
    for seed, dtype in enumerate((*WHOLE, *WHOLE)):
        rng = random.Random(seed)
        x = np.random.default_rng(seed).integers(0, 100, (5, 9)).astype(dtype.np)
        cases.append(Case(chases(dtype), {"x": Bound.plain(x) if dtype is DType.I64 else lies(rng, x),
                                          "out": Bound.plain(np.zeros((5, 9), np.int32))}))
    check(cases, family)


@pytest.mark.slow
@pytest.mark.parametrize("family", A2A3_FAST)
def test_an_index_of_the_run_outside_reads_the_nearest_element(family: str) -> None:
    x: Array = np.arange(21, dtype=np.int32).reshape(3, 7)
    cases = []
    for r, c in ((0, 0), (2, 6), (1, 3), (-5, 2), (7, 7), (2, -1)):
        found = x + x[min(max(r, 0), 2), min(max(c, 0), 6)] + x[1, 2]
        cases.append(Case(picks, {"x": Bound.plain(x), "r": r, "c": c, "out": Bound.plain(np.zeros((3, 7), np.int32))},
                          expected={"out": found}))
    check(cases, family)


@pytest.mark.parametrize("family", A2A3_FAST)
def test_a_page_outside_the_cache_is_not_read(family: str) -> None:
    cache = np.arange(80, dtype=np.float32).reshape(16, 5)
    table = np.array([[1, 9, -3, 7]], np.int32)
    check([Case(pages, {"cache": Bound.plain(cache), "table": Bound.plain(table), "count": Bound.plain(np.array([[4]], np.int32)),
                        "out": Bound.plain(np.zeros((2, 5), np.float32))}, {"cache": F32, "table": I32},
                expected={"out": cache[2:4] + 7 * cache[14:16]})], family)


@pytest.mark.slow
@pytest.mark.parametrize("family", A2A3_FAST)
def test_the_cube_core_reads_a_block_table(family: str) -> None:
    rng = np.random.default_rng(0)
    table, x = np.array([[2, 0, 3, 1]], np.int32), rng.integers(-8, 9, (8, 16)).astype(np.float32)
    cache = rng.integers(-8, 9, (4, 16, 12)).astype(np.float32)
    cases = []
    for n in (1, 4):
        given = {"x": Bound.plain(x), "cache": Bound.plain(cache.reshape(64, 12)), "table": Bound.plain(table), "n": n}
        pages = [page for j in range(n) for page in (table[0, j], table[0, table[0, j]])]
        want = np.concatenate([x @ cache[page] for page in pages])
        cases.append(Case(multiplies, {**given, "out": Bound.plain(np.zeros_like(want))}, {"cache": F32, "table": I32, "out": F32},
                          expected={"out": want}))
    check(cases, family)


@pytest.mark.slow
@pytest.mark.parametrize("family", A2A3_FAST)
def test_the_cube_core_reads_nothing_outside_a_table(family: str) -> None:
    """An index of the run outside the table reads the nearest element, as on the vector core."""
    x, cache = np.eye(8, 16, dtype=np.float32), np.arange(32 * 12, dtype=np.float32).reshape(32, 12)
    given = {"x": Bound.plain(x), "cache": Bound.plain(cache), "table": Bound.plain(np.array([[0, 1]], np.int32)), "n": 3}
    want = np.concatenate([cache[at:at + 8] for at in (0, 0, 16, 16, 16, 16)])
    check([Case(multiplies, {**given, "out": Bound.plain(np.zeros((48, 12), np.float32))}, {"cache": F32, "table": I32, "out": F32},
                expected={"out": want})], family)


def refused(made: Kernel, x: Array, out: Array) -> Workload:
    """Return a workload of one task."""
    @workload
    def once() -> None:
        made(Tensor(x, name="x"), Tensor(out, name="out"))

    return once()


def test_dtypes_that_lie_otherwise_on_chip_are_refused() -> None:
    @kernel
    def of_floats(x: In[Tile[4, 8, F32]], out: Out[Tile[4, 8, F32]]) -> None:
        pto.store(out, x * pto.item(x, 0, 1))

    @kernel
    def of_bytes(x: In[Tile[4, 8, F32]], out: Out[Tile[4, 8, F32]]) -> None:
        pto.store(out, x * pto.item(pto.cast(x, DType.U8), 0, 1))

    @kernel
    def of_masks(x: In[Tile[4, 8, F32]], out: Out[Tile[4, 8, F32]]) -> None:
        with pto.when(pto.item(x > 0, 0, 0)):
            pto.store(out, x)

    x = np.zeros((4, 8), np.float32)
    for made, found in ((of_floats, "f32"), (of_masks, "bool"), (of_bytes, "u8")):
        with pytest.raises(NpuOpError, match=f"does not run a read of one item on {found}") as caught:
            refused(made, x, x).compile("ascend_npu")
        assert caught.value.expected == "i32, i16, i64"


def test_an_item_of_what_a_kernel_of_products_computes_is_refused() -> None:
    @kernel
    def computed(x: In[Tile[16, 16, F32]], out: Out[Tile[16, 16, F32]]) -> None:
        with pto.when(pto.item(pto.cast(x, I32), 0, 0) > 0):
            pto.store(out, x @ x)

    @kernel
    def written(x: In[Tile[16, 16, F32]], table: InOut[Tensor], out: Out[Tile[16, 16, F32]]) -> None:
        pto.store(table, pto.full((1, 1), 3, I32), (0, 1))
        pto.store(out, (x @ x) * pto.cast(pto.full((1, 1), pto.item(table, 0, 1), I32), F32))

    x = np.zeros((16, 16), np.float32)
    with pytest.raises(NpuOpError, match="a kernel that multiplies matrices cannot read this item on the NPU"):
        refused(computed, x, x).compile("ascend_npu")

    @workload
    def once() -> None:
        written(Tensor(x, name="x"), Tensor(np.zeros((1, 4), np.int32), name="table"), Tensor(x.copy(), name="out"))

    with pytest.raises(NpuOpError, match="a kernel that multiplies matrices cannot read this item on the NPU"):
        once().compile("ascend_npu")
