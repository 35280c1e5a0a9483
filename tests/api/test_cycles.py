"""total_cycles and the schedule: every number is computed by hand from the `unit` arch, one cycle an element moved or computed.

`move` costs 5 loaded + 5 stored = 10; `add_one` 5 loaded + 5 added + 5 stored = 15; `dot` 2·3 + 3·4 loaded, 2·3·4 multiplied and
2·4 stored = 50.
"""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp import (
    DenseDyn,
    Deps,
    DispatchPolicy,
    DType,
    In,
    InOut,
    Out,
    P,
    Program,
    Ragged,
    Scalar,
    TaskWindow,
    Tensor,
    Tile,
    WindowMode,
    Workload,
    ceildiv,
    combine,
    for_each,
    kernel,
    parallel_for,
    pto,
    sequential,
    workload,
)
from pto_wsp.ir.axes import Dense

F32 = DType.F32
N = 12
A, B, C = (Tensor(np.zeros((N, 5), np.float32), name=name) for name in "ABC")


@kernel
def move(x: In[Tile[1, 5, F32]], y: Out[Tile[1, 5, F32]]) -> None:
    pto.store(y, x)


@kernel
def add_one(x: InOut[Tile[1, 5, F32]]) -> None:
    pto.store(x, x + 1)


@kernel
def dot(x: In[Tile[2, 3, F32]], w: In[Tile[3, 4, F32]], y: Out[Tile[2, 4, F32]]) -> None:
    pto.store(y, x @ w)


@kernel
def steps(x: InOut[Tile[1, 5, F32]], n: Scalar[DType.I64]) -> None:
    for _ in pto.range(n):
        pto.store(x, x + 1)


def independent(n: int) -> Workload:
    """n moves without anything in common: n · 10 cycles of work."""
    @workload
    def moves() -> None:
        for i in P(n):
            move[i](x=A[i], y=B[i])
    return moves()


def run(w: Workload) -> Program:
    """Run by the interpreter."""
    return w.compile(target="interp").run()


def cycles(w: Workload) -> int:
    """Return total_cycles of a run."""
    return run(w).stats.total_cycles


def window(n: int) -> TaskWindow:
    """A window of n tasks that stalls."""
    return TaskWindow(n, "tasks", WindowMode.STALL)


# ---- one executor ----

@pytest.mark.parametrize("n, expected", [(0, 0), (1, 10), (7, 70)])
def test_without_dispatch_tasks_take_the_sum_of_their_costs(n: int, expected: int) -> None:
    assert cycles(independent(n)) == expected


def test_costs_of_different_kernels_add_up() -> None:
    x, w, y = (Tensor(np.zeros(shape, np.float32)) for shape in ((2, 3), (3, 4), (2, 4)))

    @workload
    def mixed() -> None:
        move(x=A[0], y=B[0])
        add_one(x=C[0])
        dot(x=x, w=w, y=y)
    assert cycles(mixed()) == 10 + 15 + 50


def test_a_short_tile_costs_what_is_there() -> None:
    @workload
    def tail() -> None:
        for i in P(2):
            move(x=short[i * 5:].clip(5), y=B[i])
    short = Tensor(np.zeros(7, np.float32))
    assert cycles(tail()) == (5 + 5) + (2 + 5)


def test_a_kernel_loop_costs_its_iterations() -> None:
    @workload
    def looped() -> None:
        for i in P(4):
            steps(x=C[i], n=i)
    assert cycles(looped()) == (0 + 1 + 2 + 3) * 15


# ---- dispatch ----

@pytest.mark.parametrize("n, executors, expected", [
    (8, 2, 40), (8, 4, 20), (12, 3, 40), (7, 2, 40), (1, 4, 10), (3, 4, 10), (9, 4, 30),
])
def test_round_robin_over_equal_independent_tasks_is_the_longest_share(n: int, executors: int, expected: int) -> None:
    assert cycles(independent(n).dispatch(DispatchPolicy.round_robin(executors))) == expected


def test_round_robin_of_two_halves_the_makespan_exactly() -> None:
    assert cycles(independent(10).dispatch(DispatchPolicy.round_robin(2))) * 2 == cycles(independent(10)) == 100


@pytest.mark.parametrize("policy, expected", [
    (DispatchPolicy.affinity(lambda t: t.i, num_aicpus=2), 60),           # executor 0 gets 0 2 4 6 8 10
    (DispatchPolicy.affinity(lambda t: t.i // 4, num_aicpus=2), 80),      # blocks 0 1 2 of four on 0 1 0
    (DispatchPolicy.affinity(lambda t: 0, num_aicpus=4), 120),
    (DispatchPolicy.dispatch_by(lambda t: t.i * 2, num_aicpus=4), 60),    # 0 2 0 2 …: two of four executors
    (DispatchPolicy.dispatch_by(lambda t: -t.i, num_aicpus=3), 40),       # the remainder is never negative
    (DispatchPolicy.dispatch_by(lambda t: t.params[0] % 3, num_aicpus=3), 40),
    (DispatchPolicy.dispatch_by(lambda t: (t.i > 2).where(1, 0), num_aicpus=2), 90),
    (DispatchPolicy.affinity("i", num_aicpus=12), 10),
], ids=repr)
def test_a_key_places_tasks(policy: object, expected: int) -> None:
    assert cycles(independent(12).dispatch(policy)) == expected  # type: ignore[arg-type]


def fnv(value: int) -> int:
    """FNV-1a-64 of eight little-endian bytes, written out."""
    state = 14695981039346656037
    for k in range(8):
        state = ((state ^ (value >> (8 * k) & 0xFF)) * 1099511628211) % 2**64
    return state


@pytest.mark.parametrize("executors", [2, 3, 4])
def test_hash_places_tasks_by_the_hash_of_their_key(executors: int) -> None:
    program = run(independent(12).dispatch(DispatchPolicy.hash(lambda t: t.i * 7, num_aicpus=executors)))
    expected = [fnv(i * 7) % executors for i in range(12)]
    assert [event.executor for event in program.trace] == expected
    assert program.stats.total_cycles == 10 * max(expected.count(k) for k in range(executors))


def test_round_robin_counts_all_tasks_of_the_run() -> None:
    @workload
    def three_kinds() -> None:
        for i in P(3):
            move(x=A[i], y=B[i])
            add_one(x=C[i])
    program = run(three_kinds().dispatch(DispatchPolicy.round_robin(2)))
    assert [event.executor for event in program.trace] == [0, 1, 0, 1, 0, 1]


# ---- the window ----

@pytest.mark.parametrize("size, expected", [(1, 80), (2, 40), (3, 40), (8, 40)])
def test_a_window_of_one_is_serial_again(size: int, expected: int) -> None:
    w = independent(8).dispatch(DispatchPolicy.round_robin(2)).task_graph(window=window(size))
    assert cycles(w) == expected


def long_and_short() -> Workload:
    """A task of 60 cycles on executor 0, then four of 10 on executor 1, with nothing in common."""
    @workload
    def tasks() -> None:
        steps[0](x=C[0], n=4)
        for i in P(4):
            move[1](x=A[i], y=B[i])
    return tasks().dispatch(DispatchPolicy.dispatch_by(lambda t: t.params[0], num_aicpus=2))


def test_a_slot_frees_in_order() -> None:
    assert cycles(long_and_short().task_graph()) == 60
    program = run(long_and_short().task_graph(window=window(3)))
    # Tasks 1 and 2 end at 10 and 20, and hold their slots until task 0 ends at 60.
    assert [event.start for event in program.trace] == [0, 0, 10, 60, 70]
    assert program.stats.total_cycles == 80
    assert program.stats.window.high_water == 3


def test_the_window_says_how_long_it_stalled() -> None:
    found = run(long_and_short().task_graph(window=window(3))).stats.window
    assert (found.size, found.stalls, found.stall_cycles) == (3, 1, 60)
    assert run(long_and_short().task_graph(window=window(5))).stats.window.stalls == 0


# ---- dependencies ----

def chain(n: int) -> Workload:
    """n tasks on one buffer: each waits for the one before."""
    @workload
    def links() -> None:
        for _ in P.seq(n):
            add_one(x=C[0])
    return links()


@pytest.mark.parametrize("executors", [1, 2, 4])
def test_a_chain_never_takes_less_than_its_critical_path(executors: int) -> None:
    program = run(chain(5).dispatch(DispatchPolicy.round_robin(executors)).task_graph())
    assert (program.stats.total_cycles, program.stats.critical_path) == (75, 75)


def test_chains_run_beside_each_other() -> None:
    @workload
    def chains() -> None:
        for i in P(4):
            move(x=A[i], y=B[i])
            add_one(x=B[i])
    policy = DispatchPolicy.affinity(lambda t: t.i, num_aicpus=2)
    assert cycles(chains().dispatch(policy)) == 2 * (10 + 15)
    assert cycles(chains().dispatch(DispatchPolicy.affinity(lambda t: t.i, num_aicpus=4))) == 25


def test_structure_orders_statements_that_share_nothing() -> None:
    # Two loops of moves over different rows: hybrid puts a join between them, data alone does not.
    @workload
    def phases() -> None:
        for i in P(3):
            move(x=A[i], y=B[i])
        for i in P(3):
            add_one(x=C[i])
    six = phases().dispatch(DispatchPolicy.round_robin(6))
    assert cycles(six) == 10 + 15
    assert cycles(six.task_graph()) == 15
    assert cycles(six.task_graph(deps=Deps.hybrid())) == 25


def test_an_ordered_loop_is_ordered_by_structure_alone() -> None:
    @workload
    def in_order() -> None:
        for i in P.seq(4):
            move(x=A[i], y=B[i])
    four = in_order().dispatch(DispatchPolicy.round_robin(4))
    assert cycles(four) == 40
    assert cycles(four.task_graph()) == 10


def test_sequential_orders_and_combine_does_not() -> None:
    two = DispatchPolicy.round_robin(2)

    @workload
    def left() -> None:
        move(x=A[0], y=B[0])

    @workload
    def right() -> None:
        add_one(x=C[0])
    assert cycles(sequential(left(), right()).dispatch(two)) == 25
    assert cycles(combine(left(), right()).dispatch(two)) == 15
    assert cycles((left() >> right()).dispatch(two)) == 25
    assert cycles((left() | right()).dispatch(two)) == 15


def test_functional_loops_are_ordered_as_the_others() -> None:
    @workload
    def unordered() -> None:
        parallel_for(3, lambda i: add_one(x=C[i]))

    @workload
    def ordered() -> None:
        for_each(3, lambda i: add_one(x=C[i]))
    three = DispatchPolicy.round_robin(3)
    assert (cycles(unordered().dispatch(three)), cycles(ordered().dispatch(three))) == (15, 45)


def test_a_read_waits_for_the_write_before_it_and_a_write_for_both() -> None:
    @workload
    def conflicts() -> None:
        move(x=A[0], y=B[0])     # writes B0
        move(x=B[0], y=C[0])     # reads B0
        move(x=B[0], y=C[1])     # reads B0 beside it
        move(x=A[1], y=B[0])     # writes B0 again
    program = run(conflicts().dispatch(DispatchPolicy.round_robin(4)).task_graph())
    assert [(e.start, e.end) for e in program.trace] == [(0, 10), (10, 20), (10, 20), (20, 30)]
    assert {(e.source, e.target, e.reasons) for e in program.graph.edges} >= {(0, 1, ("RAW",)), (0, 2, ("RAW",))}


def test_regions_that_overlap_in_part_conflict() -> None:
    flat, row = Tensor(np.zeros(20, np.float32)), Tensor(np.zeros(5, np.float32))

    @workload
    def parts() -> None:
        move(x=row, y=flat[0:5])
        move(x=row, y=flat[4:9])
        move(x=row, y=flat[9:14])
    program = run(parts().dispatch(DispatchPolicy.round_robin(3)).task_graph())
    assert [e.start for e in program.trace] == [0, 10, 0]


def test_after_orders_what_data_does_not() -> None:
    @workload
    def ordered() -> None:
        first = move(x=A[0], y=B[0])
        add_one(x=C[0])
        add_one(x=C[1], after=first)
    program = run(ordered().dispatch(DispatchPolicy.round_robin(3)).task_graph())
    assert [e.start for e in program.trace] == [0, 0, 10]
    assert program.stats.total_cycles == 25


def test_a_handle_behind_its_loop_waits_for_all_its_tasks() -> None:
    @workload
    def gathered() -> None:
        for i in P(3):
            done = steps[i](x=C[i], n=i + 1)
        move(x=A[0], y=B[0], after=done)
    program = run(gathered().dispatch(DispatchPolicy.round_robin(4)).task_graph())
    assert [e.start for e in program.trace] == [0, 0, 0, 45]


# ---- extents known at run time ----

def test_ragged_rows_make_as_many_tasks_as_their_lengths() -> None:
    lengths = Tensor(np.array([3, 0, 2], np.int32))
    batch = Dense[3]()
    rows = Ragged(batch, lengths)

    @workload
    def ragged() -> None:
        for b in P(batch):
            for i in P(rows[b]):
                move[b, i](x=A[i], y=B[b * 4 + i])
    assert cycles(ragged()) == 50


def test_an_extent_that_is_bound_changes_the_cycles() -> None:
    axis = DenseDyn(4)

    @workload
    def dynamic() -> None:
        for i in P(ceildiv(length[0], 2)):
            move(x=A[i], y=B[i])
        for i in P(axis):
            add_one(x=C[i])
    length = Tensor(np.array([5], np.int64))
    program = dynamic().compile(target="interp")
    assert program.run().stats.total_cycles == 3 * 10 + 4 * 15
    assert program.run(axis=1).stats.total_cycles == 3 * 10 + 15
    assert program.run().stats.total_cycles == 3 * 10 + 4 * 15


def test_the_number_is_the_same_on_every_run() -> None:
    program = independent(11).dispatch(DispatchPolicy.hash("i", num_aicpus=3)).compile(target="interp")
    assert len({program.run().stats.total_cycles for _ in range(5)}) == 1


def test_busy_waiting_and_idle_add_up_to_the_total() -> None:
    stats = run(chain(4).dispatch(DispatchPolicy.round_robin(2)).task_graph()).stats
    assert stats.work == 60 and sum(e.busy for e in stats.executors) == 60
    assert all(e.busy + e.waiting + e.idle == stats.total_cycles == 60 for e in stats.executors)
    assert [e.tasks for e in stats.executors] == [2, 2]
