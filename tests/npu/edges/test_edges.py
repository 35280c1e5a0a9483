"""Which edges must be told: program order that data does not give, reads that a write may fall on, and how many at most."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pto_wsp import Deps, DType, In, Out, P, Tensor, Tile, Workload, combine, kernel, pto, workload
from pto_wsp.ir.flow import leaves
from pto_wsp.npu.check.writes import check_writes
from pto_wsp.npu.emit.orchestration import emit_orchestration
from pto_wsp.npu.plan.model import NpuPlan
from pto_wsp.npu.plan.places import TaskItems, TensorOf, site_of, statements
from pto_wsp.npu.plan.waits import WORTH_JOINING, overwrites, remembered_reads, waits_of
from pto_wsp.resources import csrc_dir
from tests.npu.submits import npu_plan
from tests.npu.tasks import grow, mix, move

F32 = DType.F32


X, Y, Z = (Tensor(np.ones((64, 4, 8), np.float32), name=name) for name in "XYZ")
A, B = (Tensor(np.ones((8, 16, 16), np.float32), name=name) for name in "AB")


def plan_of(body: Callable[[], None], *, structure: bool = True) -> NpuPlan:
    """Return the plan of a workload with that body."""
    value: Workload = workload(body)()
    return npu_plan(value if structure else value.task_graph(deps=Deps.infer_bytes_overlap()))


def told(body: Callable[[], None]) -> dict[int, int | None]:
    """Return which tasks are told to wait for program order, and for how many others at most."""
    return waits_of(plan_of(body)).order.waits


def test_program_order_that_data_gives_is_not_told() -> None:
    def body() -> None:
        for b in P(8):
            move[b](X[b], Y[b])
            move[b](Y[b], Z[b])
            grow[b](Z[b])
    assert told(body) == {}


def test_turns_of_an_ordered_loop_follow_by_data_that_is_the_same_in_each() -> None:
    def body() -> None:
        for b in P.seq(8):
            grow[b](X[0])
            move[b](X[0], Y[b])

    def other() -> None:
        for b in P.seq(8):
            grow[b](X[b])
    assert told(body) == {0: 1}      # the turn ends with the move, whose read is no reason for the runtime
    assert told(other) == {0: 1}


def test_a_write_behind_a_read_is_told_in_program_order_too() -> None:
    def body() -> None:
        move(X[0], Y[0])
        move(Z[0], X[0])
    assert told(body) == {1: 1}


def test_a_reader_of_everything_follows_a_loop_by_data() -> None:
    small = Tensor(np.ones((32, 8), np.float32), name="small")

    @kernel
    def whole(x: In[Tile[32, 8, F32]], y: Out[Tile[4, 8, F32]]) -> None:
        """Add up the rows."""
        pto.store(y, pto.colsum(x) + pto.zeros((4, 8), F32))

    def body() -> None:
        for b in P(4):
            for i in P(2):
                move[b, i](X[b * 2 + i], small[(b * 2 + i) * 4:(b * 2 + i + 1) * 4])
        whole(small, Y[0])

    def turned() -> None:
        for b in P(8):
            move[b](X[b], Y[b])
        whole(Y[0:8].reshape(32, 8), Z[0])
    assert told(body) == {}
    assert told(turned) == {1: 8}      # what another shape overlaps is not looked at


def test_how_many_are_waited_for() -> None:
    def body() -> None:
        for b in P(8):
            move[b](X[b], Y[b])
        for b in P(5):
            for i in P(3):
                move[b, i](X[b], Z[i])
        combine(left(), right())
        move(X[9], Z[9])

    @workload
    def left() -> None:
        move(X[0], Y[10])

    @workload
    def right() -> None:
        for i in P.seq(7):
            move[i](X[i], Y[i + 11])
    assert told(body) == {1: 8, 2: 15, 3: 15, 4: 2}


def test_a_loop_that_may_not_run_hides_nothing() -> None:
    """Behind it stands what was before it as well."""
    lens = Tensor(np.ones(1, np.int64), name="lens")

    def body() -> None:
        move(X[0], Y[0])
        for i in P(lens[0]):
            move[i](X[i], Y[i + 1])
        move(X[0], Z[0])
    waits = waits_of(plan_of(body))
    assert waits.order.waits == {1: 1, 2: None} and waits.order.counts == {0, 1}


def remembered(body: Callable[[], None]) -> set[str]:
    """Return the tensors whose readers are remembered."""
    plan = plan_of(body, structure=False)
    return {plan.tensors[found.slot].ref.shown for found in remembered_reads(plan).tensors if isinstance(found, TensorOf)}


def test_loops_in_loops_are_worked_out_once() -> None:
    """2^40 turns, and an ordered loop's body is asked for twice: neither the analysis nor the check of writes counts them."""
    def nest(depth: int) -> None:
        if depth == 0:
            grow(X[0])
            return
        for _ in P.seq(2):
            nest(depth - 1)

    def body() -> None:
        nest(40)
        move(X[0], Y[0])
    plan = plan_of(body)
    assert waits_of(plan).order.waits == {}
    check_writes(plan)


def test_what_is_not_written_behind_a_read_is_not_remembered() -> None:
    def body() -> None:
        for b in P(8):
            move[b](X[b], Y[b])
        for b in P(8):
            move[b](Y[b], Z[b])
    assert remembered(body) == set()


def test_tiles_of_their_own_are_not_remembered_where_data_orders_each() -> None:
    def body() -> None:
        for b in P(8):
            move[b](X[b], Y[b])
            move[b](Y[b], X[b])
    assert remembered(body) == set()


@pytest.mark.parametrize("index", ["X[b + 1]", "X[63 - b]", "X[0]", "X[b * 2]"])
def test_tiles_that_may_be_those_of_another_turn_are_remembered(index: str) -> None:
    def body() -> None:
        for b in P(8):
            move[b](X[b], Y[b])
            move[b](Y[b], eval(index, {"X": X, "b": b}))
    assert remembered(body) == {"X"}


def test_what_a_task_reads_and_writes_itself_is_not_remembered() -> None:
    def body() -> None:
        for b in P.seq(8):
            grow[b](X[0])
            move[b](X[0], X[0])
    assert remembered(body) == set()


def test_data_that_may_be_empty_is_no_reason() -> None:
    """Y has rows or not: where it has none the runtime sees no edge, and X was read all the same."""
    n = Tensor(np.ones(1, np.int64), name="n")

    @kernel
    def two(x: In[Tile[4, 8, F32]], y: Out[Tile[4, 8, F32]], z: Out[Tile[4, 8, F32]]) -> None:
        """Write twice."""
        pto.store(y, x * 2)
        pto.store(z, x * 3)

    def body() -> None:
        two(X[0], Y[0, :n[0]], Z[0])
        move(Y[0, :n[0]], X[0])
    assert remembered(body) == {"X"}


def test_the_launches_of_a_task_are_one_statement() -> None:
    def body() -> None:
        mix(A[0], B[0])
        for b in P(2):
            mix[b](A[b], B[b + 1])
            move[b](X[b], Y[b])
    plan = plan_of(body)
    first, loop = statements(plan.body)
    assert isinstance(first, TaskItems) and len(first.launches) == 2 and first.count == 2
    assert [type(part) for part in statements(loop.body)] == [TaskItems, TaskItems]   # type: ignore[union-attr]


def test_many_are_joined_where_several_tasks_wait_for_them() -> None:
    def joins(n_made: int, n_waiting: int) -> bool:
        def body() -> None:
            for b in P(n_made):
                move[b](X[b], Y[b])
            for b in P(n_waiting):
                move[b](X[63 - b], Z[b])
        return "pto_wsp::join(" in emit_orchestration(plan_of(body))
    assert joins(WORTH_JOINING + 1, 2)
    assert not joins(WORTH_JOINING, 2)

    def one() -> None:
        for b in P(40):
            made = move[b](X[b], Y[b])
        move(X[0], Z[0], after=made)
    text = emit_orchestration(plan_of(one, structure=False))
    assert "pto_wsp::wait_for(task, handle" in text and "pto_wsp::join(" not in text


def test_the_header_joins_from_the_same_number_on() -> None:
    text = (csrc_dir() / "npu" / "pto_wsp_abi.h").read_text()
    assert f"constexpr uint32_t kWorthJoining = {WORTH_JOINING};" in text


# ---- writes behind writes ----

def looked_up(body: Callable[[], None]) -> list[bool]:
    """Return for each launch of a workload with that body whether what it writes is given as INOUT."""
    plan = plan_of(body, structure=False)
    found = overwrites(plan)
    return [any((site_of(launch), position) in found for position in range(len(launch.arguments))) for launch in leaves(plan.body)]


def test_an_output_that_nothing_wrote_before_stays_one() -> None:
    def body() -> None:
        for b in P(8):
            move[b](X[b], Y[b])
        for k in range(4):
            move(X[k], Z[k])                       # parts that are told apart as they stand
        for b in P(8):
            for h in P(2):
                move[b, h](X[b], A.reshape(16, 4, 32)[b * 2 + h, :, 0:8])
    assert looked_up(body) == [False] * 5 + [True]      # in another shape, turns are not told apart


def test_what_another_task_may_have_written_is_looked_up() -> None:
    lens, W = Tensor(np.ones(8, np.int64), name="lens"), Tensor(np.ones((64, 8), np.float32), name="W")

    def again() -> None:
        for b in P(8):
            move[b](X[b], Y[b])
        move(X[0], Y[3])
        move(X[0], Y[3])

    def turns() -> None:
        for i in P.seq(2):
            for b in P(8):
                move[i, b](X[b], Y[b])

    def partly() -> None:
        for b in P(8):
            both[b](X[b], W[b * 4:b * 4 + 8])

    def by_data() -> None:
        for b in P(8):
            move[b](X[b], Y[lens[b]])

    def ways() -> None:
        with P.when(lens[0] > 1):
            move(X[0], Y[0])
        with P.otherwise():
            move(X[1], Y[0])

    def behind_ways() -> None:
        ways()
        move(X[2], Y[0])
    assert looked_up(again) == [False, True, True]
    assert looked_up(turns) == looked_up(partly) == looked_up(by_data) == [True]
    assert looked_up(ways) == [False, False]
    assert looked_up(behind_ways) == [False, False, True]


def test_a_tensor_of_a_turn_is_another_one_in_the_next() -> None:
    def body() -> None:
        for b in P(8):
            tmp = Tensor.empty((2, 4, 8), F32)
            move[b](X[b], tmp[0])
            move[b](X[b], tmp[1])
            move[b](tmp[0], tmp[1])
    assert looked_up(body) == [False, False, True]


@kernel
def both(x: In[Tile[4, 8, F32]], y: Out[Tile[8, 8, F32]]) -> None:
    """Write two tiles at once, as rows of one."""
    pto.store(y, pto.concat([x, x], axis=0))
