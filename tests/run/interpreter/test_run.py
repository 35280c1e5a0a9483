"""The interpreter: whole programs against NumPy, the stream of their tasks, and how their failures read."""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp import (
    Dense,
    DType,
    In,
    InOut,
    Out,
    P,
    PtoError,
    Ragged,
    Scalar,
    Symbol,
    Tensor,
    Tile,
    Workload,
    ceildiv,
    combine,
    kernel,
    pto,
    sequential,
    workload,
)
from pto_wsp.errors import RunBoundsError, TaskFailedError
from pto_wsp.run.bound import bind
from pto_wsp.run.interpreter import placed_array, stream_of
from pto_wsp.run.orchestrator import PlacedView, TaskInstance

F32 = DType.F32
RNG = np.random.default_rng(3)


def normal(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Return f32 noise."""
    return RNG.standard_normal(shape).astype(np.float32)


@kernel
def copy(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]) -> None:
    pto.store(y, x)


@kernel
def block_sum(x: In[Tile[4, 8, F32]], y: InOut[Tile[4, 1, F32]]) -> None:
    pto.store(y, y + pto.rowsum(x))


@kernel
def product(x: In[Tile[4, 8, F32]], w: In[Tile[8, 6, F32]], y: Out[Tile[4, 6, F32]]) -> None:
    pto.store(y, x @ w)


@kernel
def row_of(table: In[Tensor], row: Scalar[DType.I32], y: Out[Tile[1, 4, F32]]) -> None:
    pto.store(y, pto.load(table, (row, 0), shape=(1, 4)))


# ---- results ----

def test_row_sums_over_blocks_with_a_short_last_one() -> None:
    x, y = normal(10, 20), np.zeros((10, 1), np.float32)
    X, Y = Tensor(x), Tensor(y)

    @workload
    def sums() -> None:
        for i in P(ceildiv(10, 4)):
            for j in P.seq(ceildiv(20, 8)):
                block_sum[i, j](x=X[i * 4:, j * 8:].clip(4, 8), y=Y[i * 4:].clip(4, 1))
    sums().compile(target="interp").run()
    np.testing.assert_allclose(y, x.sum(1, keepdims=True), rtol=1e-5, atol=1e-5)


def test_a_short_block_of_known_extent_binds_to_its_tile() -> None:
    x, y = normal(10, 8), np.zeros((4, 1), np.float32)
    X, Y = Tensor(x), Tensor(y)

    @workload
    def tail() -> None:
        block_sum(x=X[8:10].clip(4, 8), y=Y)
    tail().compile(target="interp").run()
    np.testing.assert_allclose(y[:, 0], [*x[8:].sum(1), 0, 0], rtol=1e-5)


def test_a_matmul_of_transposed_views() -> None:
    a, b, y = normal(8, 4), normal(6, 8), np.zeros((4, 6), np.float32)
    A, B, Y = Tensor(a), Tensor(b), Tensor(y)

    @workload
    def transposed() -> None:
        product(A.T, B.T, Y)
    transposed().compile(target="interp").run()
    np.testing.assert_allclose(y, a.T @ b.T, rtol=1e-5, atol=1e-5)


def test_a_reshaped_row_is_read_in_order() -> None:
    x, y = normal(3, 32), np.zeros((4, 1), np.float32)
    X, Y = Tensor(x), Tensor(y)

    @workload
    def reshaped() -> None:
        block_sum(X[1:2].T.reshape(4, 8), Y)
    reshaped().compile(target="interp").run()
    np.testing.assert_allclose(y[:, 0], x[1].reshape(4, 8).sum(1), rtol=1e-5, atol=1e-6)


def test_a_reshaped_tensor_bound_with_other_strides_is_refused() -> None:
    X, Y = Tensor(normal(2, 16), name="X"), Tensor(np.zeros((4, 1), np.float32))

    @workload
    def reshaped() -> None:
        block_sum(X.reshape(4, 8), Y)
    with pytest.raises(RunBoundsError) as caught:
        reshaped().compile(target="interp").run(X=normal(2, 32)[:, :16])
    assert caught.value.code == "R104" and (caught.value.expected, caught.value.found) == ("16", "X.strides[0] = 32")


def test_a_gather_through_a_table() -> None:
    x, y, table = normal(5, 4), np.zeros((3, 4), np.float32), np.array([4, 0, 4], np.int32)
    X, Y, T = Tensor(x), Tensor(y), Tensor(table)

    @workload
    def gathered() -> None:
        for i in P(3):
            copy[i](X[T[i]], Y[i])
    program = gathered().compile(target="interp").run()
    np.testing.assert_array_equal(y, x[table])
    table[:] = [1, 2, 3]
    program.run()
    np.testing.assert_array_equal(y, x[1:4])


def test_arrays_that_overlap_are_written_in_program_order() -> None:
    x = np.arange(20, dtype=np.float32)
    X = Tensor(x)

    @workload
    def shift() -> None:
        for i in P.seq(4):
            copy[i](X[i * 4:i * 4 + 4], X[i * 4 + 4:i * 4 + 8])
    shift().compile(target="interp").run()
    np.testing.assert_array_equal(x, np.tile(np.arange(4), 5))


def test_empty_arrays_make_no_trouble() -> None:
    X, Y = Tensor(np.zeros((0, 4), np.float32)), Tensor(np.zeros((0, 4), np.float32))

    @workload
    def none() -> None:
        for i in P(range(5, 5)):
            copy[i](X[i], Y[i])
    assert none().compile(target="interp").run().stats.task_count == 0


def test_a_placed_view_is_numpys_strided_view() -> None:
    base = np.arange(60, dtype=np.float32)
    found = placed_array(base, PlacedView(0, 7, (3, 4), (10, 2)))
    np.testing.assert_array_equal(found, np.lib.stride_tricks.as_strided(base[7:], (3, 4), (40, 8)))
    found[1, 1] = -1
    assert base[7 + 10 + 2] == -1


# ---- the stream ----

def stream(w: Workload, *arrays: np.ndarray, symbols: tuple[object, ...] = ()) -> tuple[object, ...]:  # type: ignore[type-arg]
    """Return the tasks and joins of a workload's plan."""
    plan = w.compile(target="interp").plan
    return stream_of(plan, bind(plan, arrays, symbols))


X, Y = Tensor(np.zeros((6, 4), np.float32), name="X"), Tensor(np.zeros((6, 4), np.float32), name="Y")
XY = (np.zeros((6, 4), np.float32), np.zeros((6, 4), np.float32))


def test_statements_are_joined_once_and_not_pair_by_pair() -> None:
    @workload
    def phases() -> None:
        for i in P(3):
            copy[i](X[i], Y[i])
        for i in P(3):
            copy[i](X[i], Y[i])
    found = stream(phases(), *XY)
    assert [node if isinstance(node, tuple) else node.order for node in found] == [  # type: ignore[attr-defined]
        (), (), (), (0, 1, 2), (3,), (3,), (3,), (4, 5, 6)]


def test_an_ordered_loop_is_a_chain_without_joins() -> None:
    @workload
    def chain() -> None:
        for i in P.seq(3):
            copy[i](X[i], Y[i])
    assert [node.order for node in stream(chain(), *XY)] == [(), (0,), (1,)]  # type: ignore[attr-defined]


def test_an_empty_loop_passes_the_order_on() -> None:
    n = Symbol("n")

    @workload
    def gap() -> None:
        copy(X[0], Y[0])
        for i in P(n):
            copy[i](X[i], Y[i])
        copy(X[1], Y[1])
    assert [node.order for node in stream(gap(), *XY, symbols=(0,))] == [(), (0,)]  # type: ignore[attr-defined]


def test_sides_start_after_what_stands_before_and_end_together() -> None:
    @workload
    def one(row: int) -> None:
        copy(X[row], Y[row])
    w = sequential(one(0), combine(one(1), one(2)), one(3))
    assert [node if isinstance(node, tuple) else node.order for node in stream(w, *XY)] == [  # type: ignore[attr-defined]
        (), (0,), (0,), (1, 2), (3,)]


def test_handles_close_at_the_end_of_their_loop() -> None:
    @workload
    def handles() -> None:
        for i in P(2):
            done = copy[i](X[i], Y[i])
            copy[i](X[i], Y[i + 2], after=done)
        copy(X[0], Y[5], after=done)
    w = handles().task_graph()
    found = stream(w, *XY)
    assert [node if isinstance(node, tuple) else node.after for node in found] == [  # type: ignore[attr-defined]
        (), (0,), (), (2,), (0, 2), (4,)]


def test_instances_carry_their_numbers() -> None:
    lens = np.array([1, 0, 2], np.int32)
    batch = Dense[3]()
    rows = Ragged(batch, lens)

    @workload
    def ragged() -> None:
        for b in P(batch):
            for i in P(rows[b]):
                copy[b, i](X[b + i], Y[b + i])
    found = [node for node in stream(ragged(), lens, *XY) if isinstance(node, TaskInstance)]
    assert [node.index for node in found] == [(0, 0), (2, 0), (2, 1)]
    assert [node.views[0] for node in found][-1] == PlacedView(1, 12, (1, 4), (0, 1))


# ---- failures ----

def test_a_task_that_leaves_its_region_is_named_with_its_indices() -> None:
    T = Tensor(np.zeros((3, 4), np.float32), name="T")

    @workload
    def lookups() -> None:
        for b in P(2):
            for i in P(3):
                row_of[b, i](T, b * 2 + i, Y[b * 3 + i])
    with pytest.raises(TaskFailedError) as caught:
        lookups().compile(target="interp").run()
    error = caught.value
    assert error.code == "R101"
    assert error.message == "task row_of[b=1, i=1] failed: load table[row, 0] lies outside the region that is bound"
    assert "pto.load(table, (row, 0), shape=(1, 4))" in str(error)
    assert len(error.notes) == 1 and "test_run.py" in error.notes[0]


def test_a_view_outside_is_found_before_any_task_runs() -> None:
    y = np.zeros((6, 4), np.float32)
    n = Symbol("n")

    @workload
    def too_many() -> None:
        for i in P(n):
            copy[i](X[i], Y[i])
    with pytest.raises(RunBoundsError) as caught:
        too_many().compile(target="interp").run(X=np.ones((6, 4), np.float32), Y=y, n=7)
    error = caught.value
    assert error.message == "an index lies outside its tensor: `X[i]`"
    assert (error.expected, error.found, error.notes) == ("0 .. 5", "6", ("in the iteration i = 6",))
    assert not y.any()


def test_a_negative_length_is_refused() -> None:
    batch = Dense[2]()
    lens = Tensor(np.array([1, 2], np.int32), name="lens")

    @workload
    def ragged() -> None:
        for b in P.seq(batch):
            for i in P(Ragged(batch, lens)[b]):
                copy[b, i](X[i], Y[i])
    with pytest.raises(PtoError) as caught:
        ragged().compile(target="interp").run(lens=np.array([1, -2], np.int32))
    assert caught.value.message == "a loop's extent is negative: `lens[b]`"
    assert (caught.value.expected, caught.value.found, caught.value.notes) == (">= 0", "lens[b] = -2", ("in the iteration b = 1",))
