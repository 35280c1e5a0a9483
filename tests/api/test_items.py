"""Items: elements of tiles and Tensor parameters as scalars of a kernel, against NumPy, on both host targets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pto_wsp import DType, In, InOut, Kernel, Out, P, PtoError, Scalar, Tensor, Tile, Workload, kernel, pto, workload
from pto_wsp.errors import TaskFailedError
from tests.tolerances import Array

F32, I32 = DType.F32, DType.I32
TARGETS = ("interp", "cpu_sim")


def run_on(target: str, made: Kernel, **args: Any) -> dict[str, Array]:
    """Run a kernel as one task on copies of its arrays; return the arrays."""
    copies = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in args.items()}

    @workload
    def once() -> None:
        made(**{name: Tensor(value, name=name) if isinstance(value, np.ndarray) else value for name, value in copies.items()})

    once().compile(target).run()
    return {name: value for name, value in copies.items() if isinstance(value, np.ndarray)}


def check(made: Kernel, expected: Mapping[str, Array], **args: Any) -> None:
    """Raise AssertionError unless both targets leave exactly the arrays expected."""
    for target in TARGETS:
        found = run_on(target, made, **args)
        for name, array in expected.items():
            assert np.array_equal(found[name], array, equal_nan=True), (target, name, found[name], array)


# -- offsets, bounds, conditions -----------------------------------------------------------------------------------------


@kernel
def paged_sum(cache: In[Tensor], table: In[Tensor], length: In[Tile[1, 1, I32]], out: Out[Tile[2, 3, F32]]) -> None:
    """Add up the pages that a table names, as many as a count says."""
    total = pto.alloc((2, 3), F32, init=0)
    count = pto.item(length)
    for j in pto.range(count.min(table.shape[1])):
        page = pto.item(table, 0, j)
        total += pto.load(cache, (page * 2, 0), shape=(2, 3))
    pto.store(out, total)


CACHE = np.arange(48, dtype=np.float32).reshape(16, 3)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("count", [-1, 0, 1, 3, 4, 9])
def test_a_block_table_in_the_kernel_picks_pages(count: int) -> None:
    table = np.array([[5, 0, 7, 5]], np.int32)
    pages = [CACHE[2 * p:2 * p + 2] for p in table[0, :max(count, 0)]]
    check(paged_sum, {"out": sum(pages, np.zeros((2, 3), np.float32))}, cache=CACHE, table=table, length=np.array([[count]], np.int32),
          out=np.full((2, 3), 9, np.float32))


def test_a_page_outside_the_cache_is_an_error_at_its_line() -> None:
    for page, found in ((8, "row 16, column 0"), (-1, "row -2, column 0"), (2 ** 31 - 1, "row 4294967294, column 0")):
        for target in TARGETS:
            with pytest.raises(TaskFailedError, match=r"load cache\[page \* 2, 0\] lies outside the region") as caught:
                run_on(target, paged_sum, cache=CACHE, table=np.array([[0, page]], np.int32), length=np.array([[2]], np.int32),
                       out=np.zeros((2, 3), np.float32))
            assert caught.value.found == found


def test_the_best_rows_are_loaded_one_by_one() -> None:
    @kernel
    def best(scores: In[Tile[1, 6, F32]], rows: In[Tensor], out: Out[Tensor]) -> None:
        _, columns = pto.topk(scores, 3)
        for j in pto.range(3):
            pto.store(out, pto.load(rows, (pto.item(columns, 0, j), 0), shape=(1, 4)), (j, 0))

    scores = np.array([[.1, .9, .3, .8, .2, .7]], np.float32)
    rows = np.arange(24, dtype=np.float32).reshape(6, 4)
    check(best, {"out": rows[[1, 3, 5]]}, scores=scores, rows=rows, out=np.zeros((3, 4), np.float32))


def test_a_count_ends_the_work_early() -> None:
    @kernel
    def until(x: In[Tensor], out: Out[Tile[1, 4, F32]]) -> None:
        """Add rows until a sum of the first column is over 5."""
        total, seen = pto.alloc((1, 4), F32, init=0), pto.alloc((1, 1), F32, init=0)
        for j in pto.range(x.shape[0]):
            with pto.when(pto.item(seen) <= 5):
                row = pto.load(x, (j, 0), shape=(1, 4))
                total += row
                seen += row[:, 0]
        pto.store(out, total)

    x = np.full((6, 4), 2, np.float32)
    check(until, {"out": np.full((1, 4), 6, np.float32)}, x=x, out=np.zeros((1, 4), np.float32))


def test_lengths_of_rows_bound_their_loops_and_their_tails() -> None:
    @kernel
    def means(x: In[Tensor], lengths: In[Tile[3, 1, I32]], out: Out[Tile[3, 1, F32]]) -> None:
        sums = pto.alloc((3, 1), F32, init=0)
        for r in pto.range(3):
            n = pto.item(lengths, r).min(x.shape[1])
            for c in pto.range(0, n, 4):
                part = pto.rowsum(pto.load(x, (r, c), shape=(1, 4), valid=(1, (n - c).min(4))))
                sums += pto.where(pto.iota((3, 1), I32, 0) == r, part / n, 0)
        pto.store(out, sums)

    x, lengths = np.arange(33, dtype=np.float32).reshape(3, 11), np.array([[11], [1], [6]], np.int32)
    expected = np.array([[x[r, :lengths[r, 0]].sum() / lengths[r, 0]] for r in range(3)], np.float32)
    for target in TARGETS:
        found = run_on(target, means, x=x, lengths=lengths, out=np.zeros((3, 1), np.float32))["out"]
        assert np.allclose(found, expected, rtol=1e-6), target


def test_an_item_of_an_inout_parameter_is_its_value_now() -> None:
    @kernel
    def swap(x: InOut[Tile[1, 2, I32]], region: InOut[Tensor], out: Out[Tile[1, 4, I32]]) -> None:
        first, before = pto.item(x, 0, 0), pto.item(region, 0, 0)
        pto.store(x, x + 10)
        pto.store(region, x, (0, 0))
        later, after = pto.item(x, 0, 0), pto.item(region, 0, 0)
        pto.store(out, pto.concat(pto.full((1, 2), first + before * 100, I32), pto.full((1, 2), later + after * 100, I32)))

    check(swap, {"out": np.array([[501, 501, 1111, 1111]], np.int32)}, x=np.array([[1, 2]], np.int32),
          region=np.array([[5, 6]], np.int32), out=np.zeros((1, 4), np.int32))


def test_an_item_outlives_a_change_of_its_buffer() -> None:
    @kernel
    def keeps(x: In[Tile[2, 2, I32]], out: Out[Tile[2, 2, I32]]) -> None:
        held = pto.alloc((2, 2), I32, init=3)
        old = pto.item(held, 1, 1)
        held[:] = x
        pto.store(out, held * old)

    check(keeps, {"out": np.array([[3, 6], [9, 12]], np.int32)}, x=np.array([[1, 2], [3, 4]], np.int32), out=np.zeros((2, 2), np.int32))


# -- indices -------------------------------------------------------------------------------------------------------------


@kernel
def pick(x: In[Tile[3, 4, I32]], r: Scalar[I32], c: Scalar[I32], out: Out[Tile[1, 1, I32]]) -> None:
    """Store the element at a place known at run time."""
    pto.store(out, pto.item(x, r, c))


@pytest.mark.slow
@given(st.integers(0, 2), st.integers(0, 3))
@settings(max_examples=5)
def test_an_index_of_the_run_picks_its_element(r: int, c: int) -> None:
    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    check(pick, {"out": x[r:r + 1, c:c + 1]}, x=x, r=r, c=c, out=np.zeros((1, 1), np.int32))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("place", [(3, 0), (0, 4), (-1, 0), (0, -1), (2 ** 31 - 1, 2 ** 31 - 1)])
def test_an_index_of_the_run_outside_is_an_error(place: tuple[int, int]) -> None:
    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    for attempt in (lambda: run_on("interp", pick, x=x, r=place[0], c=place[1], out=np.zeros((1, 1), np.int32)),
                    lambda: run_on("cpu_sim", pick, x=x, r=place[0], c=place[1], out=np.zeros((1, 1), np.int32)),
                    lambda: pick.run(x, *place)):
        with pytest.raises(TaskFailedError, match=r"item \[r, c\] of Tile\[3, 4, i32\] lies outside the tile") as caught:
            attempt()
        assert (caught.value.expected, caught.value.found) == ("row 0 .. 2, column 0 .. 3", f"row {place[0]}, column {place[1]}")


def test_constants_count_from_the_end_and_lines_take_one_index() -> None:
    @kernel
    def corners(x: In[Tile[3, 4, I32]], row: In[Tile[1, 4, I32]], out: Out[Tile[1, 1, I32]]) -> None:
        total = pto.item(x, -1, -1) * 1000 + x.item(0, 1) * 100 + row.item(-2) * 10
        pto.store(out, total + x.item((1, 0)) + pto.item(x[:, 2:3], 1) + x[0, 0].item())

    x, row = np.arange(1, 13, dtype=np.int32).reshape(3, 4), np.array([[5, 6, 7, 8]], np.int32)
    check(corners, {"out": np.array([[12000 + 200 + 70 + 5 + 7 + 1]], np.int32)}, x=x, row=row, out=np.zeros((1, 1), np.int32))


def test_an_item_beyond_the_valid_part_is_zero() -> None:
    @kernel
    def last(x: In[Tile[2, 4, F32]], out: Out[Tile[1, 2, F32]]) -> None:
        pto.store(out, pto.concat(pto.full((1, 1), pto.item(x, 0, 1), F32), pto.full((1, 1), pto.item(x, 1, 3), F32)))

    given, result = Tensor(np.full((1, 3), 7, np.float32), name="given"), Tensor(np.ones((1, 2), np.float32), name="result")

    @workload
    def once() -> None:
        last(given.clip(2, 4), result)

    for target in TARGETS:
        once().compile(target).run()
        assert result.data.tolist() == [[7, 0]]


# -- dtypes --------------------------------------------------------------------------------------------------------------


VALUES: Mapping[DType, tuple[Any, ...]] = {
    DType.F64: (0.1, -1e300, np.inf), F32: (0.1, -0.0, np.nan), DType.F16: (0.1, 65504, -np.inf), DType.BF16: (0.1, 3e38, 1.5),
    DType.I8: (-128, 127, 3), DType.I16: (-2 ** 15, 7, 0), I32: (-2 ** 31, 2 ** 31 - 1, 5), DType.I64: (-2 ** 63, 2 ** 63 - 1, 5),
    DType.U8: (255, 0, 3), DType.U16: (2 ** 16 - 1, 0, 3), DType.U32: (2 ** 32 - 1, 0, 3), DType.U64: (2 ** 64 - 1, 2 ** 63, 3)}


FAST = (F32, DType.BF16, DType.I8, DType.U64)


@pytest.mark.parametrize("dtype", [dtype if dtype in FAST else pytest.param(dtype, marks=pytest.mark.slow) for dtype in VALUES], ids=str)
def test_an_item_meets_tiles_and_compares_as_its_number(dtype: DType) -> None:
    @kernel
    def mixed(x: In[Tile[1, 3, dtype]], out: Out[Tile[3, 3, dtype]], bigger: Out[Tile[3, 1, I32]]) -> None:
        held, counts = pto.alloc((3, 3), dtype, init=0), pto.alloc((3, 1), I32, init=0)
        for j in pto.range(3):
            here = pto.iota((3, 1), I32, 0) == j
            n = pto.item(x, 0, j)
            held[:] = pto.where(here, pto.full((1, 3), n, dtype) + x, held)
            with pto.when((n > 2) & ~(n != n)):
                counts += pto.cast(here, I32)
        pto.store(out, held)
        pto.store(bigger, counts)

    x = np.array([VALUES[dtype]], dtype.np)
    with np.errstate(all="ignore"):
        expected = (x.T + x).astype(dtype.np)
    check(mixed, {"out": expected, "bigger": (x.T > 2).astype(np.int32)}, x=x, out=np.zeros((3, 3), dtype.np),
          bigger=np.zeros((3, 1), np.int32))


def test_an_item_of_a_mask_is_a_condition() -> None:
    @kernel
    def chosen(x: In[Tile[1, 2, F32]], out: Out[Tile[1, 2, F32]]) -> None:
        with pto.when(pto.item(x > 1, 0, 1)):
            pto.store(out, x * 2)
        with pto.otherwise():
            pto.store(out, x)

    for second in (0.5, 1.5):
        x = np.array([[3, second]], np.float32)
        check(chosen, {"out": x * 2 if second > 1 else x}, x=x, out=np.zeros((1, 2), np.float32))


def test_items_of_halves_are_exact_numbers() -> None:
    @kernel
    def widened(x: In[Tile[1, 1, DType.BF16]], out: Out[Tile[1, 1, F32]]) -> None:
        pto.store(out, pto.full((1, 1), pto.item(x) * 3, F32))

    x = np.array([[0.1]], ml_dtypes.bfloat16)
    check(widened, {"out": x.astype(np.float32) * 3}, x=x, out=np.zeros((1, 1), np.float32))


# -- cycles --------------------------------------------------------------------------------------------------------------


def test_cycles_are_those_of_the_limit_whatever_the_data() -> None:
    expected = None
    for count in (0, 2, 4):
        for target in TARGETS:
            length, out = Tensor(np.array([[count]], np.int32), name="length"), Tensor(np.zeros((2, 3), np.float32), name="out")

            @workload
            def once(length: Tensor = length, out: Tensor = out) -> None:
                paged_sum(Tensor(CACHE, name="cache"), Tensor(np.zeros((1, 4), np.int32), name="table"), length, out)

            cycles = once().compile(target).run().stats.total_cycles
            expected = cycles if expected is None else expected
            assert cycles == expected
    # load length, init is free; 4 turns: load the entry, load the page, add; store
    assert expected == 1 + 4 * (1 + 6 + 6) + 6


def test_a_branch_on_data_costs_as_its_dearer_side() -> None:
    @kernel
    def either(x: In[Tile[1, 8, F32]], out: Out[Tile[1, 8, F32]]) -> None:
        with pto.when(pto.item(x, 0, 0) > 0):
            pto.store(out, x + 1)
        with pto.otherwise():
            pto.store(out, (x + 1) * 2 - 3)

    assert either.cost().total == 8 + 3 * 8 + 8


@pytest.mark.parametrize(("bound", "trips"), [
    (lambda n: (n.min(7),), 7), (lambda n: (n.min(7).max(2),), 7), (lambda n: (n.max(3), 9), 6), (lambda n: (n % 5,), 4),
    (lambda n: (((n.min(20) + 3) // 4),), 5), (lambda n: (0, n.min(10), 3), 4), (lambda n: ((n > 0).where(3, 6),), 6),
    (lambda n: ((-n.max(-4)),), 4), (lambda n: (n.min(4) * 2 - n.max(0),), 8), (lambda n: (n.max(0).min(5) * 3,), 15)])
def test_limits_follow_from_arithmetic(bound: Callable[[Any], tuple[Any, ...]], trips: int) -> None:
    @kernel
    def turns(n: In[Tile[1, 1, I32]], out: InOut[Tile[1, 1, F32]]) -> None:
        for _ in pto.range(*bound(pto.item(n))):
            pto.store(out, out + 1)

    assert turns.cost().total == 1 + 3 * trips
    for value in (-2 ** 31, -5, -1, 0, 1, 2, 4, 6, 9, 100, 2 ** 31 - 1):
        assert turns.run(np.array([[value]], np.int32), np.zeros((1, 1), np.float32))[0, 0] <= trips


def test_a_narrow_item_is_its_own_limit() -> None:
    @kernel
    def turns(n: In[Tile[1, 1, DType.U8]], out: InOut[Tile[1, 1, F32]]) -> None:
        for _ in pto.range(pto.item(n)):
            pto.store(out, out + 1)

    assert turns.cost().total == 1 + 3 * 255


# -- programs ------------------------------------------------------------------------------------------------------------


def test_tasks_read_what_tasks_before_them_made() -> None:
    @kernel
    def count(x: In[Tile[1, 4, F32]], n: Out[Tile[1, 1, I32]]) -> None:
        pto.store(n, pto.rowsum(pto.cast(x > 0, I32)))

    @kernel
    def power(n: In[Tile[1, 1, I32]], out: Out[Tile[1, 1, F32]]) -> None:
        held = pto.alloc((1, 1), F32, init=1)
        for _ in pto.range(pto.item(n).min(4)):
            held[:] = held * 2
        pto.store(out, held)

    x = np.array([[1, -1, 1, 1], [-1, -1, -1, -1], [1, 1, 1, 1]], np.float32)
    given, made, out = Tensor(x, name="x"), Tensor.empty((3, 1), I32), Tensor(np.zeros((3, 1), np.float32), name="out")

    @workload
    def both() -> None:
        for b in P(3):
            count[b](given[b:b + 1], made[b:b + 1])
            power[b](made[b:b + 1], out[b:b + 1])

    for target in TARGETS:
        out.data[:] = 0
        both().compile(target, **({"sanitize": True} if target == "cpu_sim" else {})).run()
        assert out.data.ravel().tolist() == [8, 1, 16]


def test_a_workload_with_items_reads_back_from_json() -> None:
    out = Tensor(np.zeros((2, 3), np.float32), name="out")

    @workload
    def once() -> None:
        paged_sum(Tensor(CACHE, name="cache"), Tensor(np.array([[1, 2]], np.int32), name="table"),
                  Tensor(np.array([[2]], np.int32), name="length"), out)

    text = once().to_json()
    assert Workload.from_json(text).to_json() == text
    # an item of another tile than the statement before made, and one that no statement reads
    data = json.loads(text)
    items = [node for node in _nodes(data) if node.get("kind") == "ItemRef"]
    assert {node["name"] for node in items} == {"page", "count"}
    for node in items:
        for field, wrong in (("id", 7), ("name", "other"), ("name", "no name"), ("dtype", {"kind": "DType", "value": "F32"})):
            right = node[field]
            node[field] = wrong
            with pytest.raises(PtoError, match="this JSON is not a workload"):
                Workload.from_json(json.dumps(data))
            node[field] = right


def _nodes(data: Any) -> Iterator[dict[str, Any]]:
    if isinstance(data, dict):
        yield data
    for inner in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from _nodes(inner)
