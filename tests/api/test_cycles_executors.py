"""Who runs a task, and when: start times and the figures of each executor, by hand.

A task `fill[i, n]` takes n cycles (a cost function says so) and touches nothing that another one touches.
"""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp import (
    Deps,
    DispatchPolicy,
    P,
    Pools,
    Program,
    PtoError,
    ReadyPolicy,
    Tensor,
    TimingPolicy,
    TracePolicy,
    Workload,
    builtin_arch,
    workload,
)
from tests.schedule.small_tasks import A, double, fill, product

Y = Tensor(np.zeros((12, 1), np.int64), name="Y")
B = Tensor(np.zeros((6, 16, 16), np.float32), name="B")
COSTS = TracePolicy.cycles(lambda t: t.params[1])


@workload
def four() -> None:
    """8, 1, 1 and 5 cycles."""
    fill[0, 8](0, Y[0])
    fill[1, 1](1, Y[1])
    fill[2, 1](2, Y[2])
    fill[3, 5](3, Y[3])


@workload
def six() -> None:
    """Six times 2 cycles."""
    for i in P(6):
        fill[i, 2](i, Y[i])


@workload
def units() -> None:
    """Cube tasks of 6 and 6 cycles, vector tasks of 2, 2 and 2, of which the last needs what the first cube task gives."""
    product[0, 6](A, A, B[0])
    product[1, 6](A, A, B[1])
    double[2, 2](A, B[2])
    double[3, 2](A, B[3])
    double[4, 2](B[0], B[4])


@workload
def copies() -> None:
    """Two tasks that move 1024 bytes in and 1024 out, in 64 and in 128 cycles, and one that moves nothing but 8 bytes, in 64."""
    double[0, 64](A, B[0])
    double[1, 128](A, B[1])
    fill[2, 64](2, Y[2])


def run(w: Workload, **options: object) -> Program:
    """Return the program after a run in NumPy, each task with the cycles of its last index."""
    return w.task_graph(deps=Deps.infer_bytes_overlap(), trace=COSTS).compile(target="interp", **options).run()


def starts(program: Program) -> list[int]:
    """Return when each task starts."""
    return [int(start) for start in program.trace.start]


def ends(program: Program) -> list[int]:
    """Return when each task ends."""
    return [int(end) for end in program.trace.end]


def figures(program: Program) -> list[tuple[int, int, int, int]]:
    """Return busy, waiting, late and idle of each executor, which are all of the makespan."""
    stats = program.stats
    found = [(e.busy, e.waiting, e.late, e.idle) for e in stats.executors]
    assert all(sum(one) == stats.total_cycles for one in found) and stats.total_cycles >= stats.lower_bound
    return found


# ---- queues ----

def test_aicpus_that_share_a_queue() -> None:
    # one runs 0 .. 8, the other 0 .. 1, 1 .. 2 and 2 .. 7
    program = run(four().dispatch(DispatchPolicy.work_steal(2)))
    assert starts(program) == [0, 0, 1, 2]
    assert figures(program) == [(8, 0, 0, 0), (7, 0, 0, 1)]


def test_a_home_that_nobody_helps() -> None:
    # all are at home on AICPU 0: 8+1+1+5 = 15; the other is late until the last of them starts, at 10
    program = run(four().dispatch(DispatchPolicy.dispatch_by(lambda t: 0, 2)))
    assert starts(program) == [0, 8, 9, 10]
    assert figures(program) == [(15, 0, 0, 0), (0, 0, 10, 5)]


def test_a_home_that_others_help() -> None:
    # the other AICPU has nothing of its own, and takes 1, 2 and 3 one after another
    program = run(four().dispatch(DispatchPolicy.dispatch_by(lambda t: 0, 2)).task_graph(ready=ReadyPolicy.work_steal()))
    assert starts(program) == [0, 0, 1, 2]
    assert figures(program) == [(8, 0, 0, 0), (7, 0, 0, 1)]


def test_an_executor_takes_its_own_before_it_helps() -> None:
    # AICPU 1 is home of the last alone: it runs that 0 .. 5, then takes 1 and 2 from AICPU 0, 5 .. 6 and 6 .. 7
    program = run(four().dispatch(DispatchPolicy.dispatch_by(lambda t: t.params[0] // 3, 2)).task_graph(ready=ReadyPolicy.work_steal()))
    assert starts(program) == [0, 5, 6, 0]
    assert [e.tasks for e in program.stats.executors] == [1, 3]


# ---- pools ----

def test_units_of_one_aicpu() -> None:
    # cube 0 .. 6 .. 12; vector 0 .. 2 .. 4, then it waits for the first cube task. The second stands for the cube core alone.
    program = run(units().task_graph(pools=Pools.by_exec_unit()))
    assert starts(program) == [0, 6, 0, 2, 6]
    assert [e.pool for e in program.stats.executors] == [0, 1]
    assert figures(program) == [(12, 0, 0, 0), (6, 2, 0, 4)]


def test_units_of_two_aicpus() -> None:
    # homes in turn: 0 2 4 on the first, 1 3 on the second; every core runs one task after another
    program = run(units().dispatch(DispatchPolicy.round_robin(2)).task_graph(pools=Pools.by_exec_unit()))
    assert starts(program) == [0, 0, 0, 0, 6]
    assert figures(program) == [(6, 0, 0, 2), (6, 0, 0, 2), (4, 4, 0, 0), (2, 0, 0, 6)]


def test_two_vector_cores_of_one_aicpu_and_a_shared_queue() -> None:
    # of each pool one queue. Cube: 0 .. 6 .. 12. Vector cores: both at 0, then the lower one at 6.
    arch = builtin_arch("unit").with_cores(cube=1, vector=2)
    shared = units().dispatch(DispatchPolicy.work_steal(1)).task_graph(pools=Pools.by_exec_unit())
    program = run(shared, arch=arch)
    assert starts(program) == [0, 6, 0, 0, 6]
    assert figures(program) == [(12, 0, 0, 0), (4, 4, 0, 4), (2, 4, 0, 6)]


def test_pools_that_a_key_names() -> None:
    # pools 3 and 5 have an executor on either AICPU. Home 0 has 0 2 4, home 1 has 1 3 5; pool 3 takes 0 .. 3, pool 5 the rest:
    # pool 3: 0 then 2, 1 then 3; pool 5: 4 and 5
    w = six().dispatch(DispatchPolicy.round_robin(2)).task_graph(pools=Pools.custom(lambda t: 3 + t.params[0] // 4 * 2))
    program = run(w)
    assert starts(program) == [0, 0, 2, 2, 0, 0]
    assert [e.pool for e in program.stats.executors] == [3, 3, 5, 5]
    assert figures(program) == [(4, 0, 0, 0), (4, 0, 0, 0), (2, 0, 0, 2), (2, 0, 0, 2)]


def test_a_pool_past_the_last_number_is_refused_by_its_key() -> None:
    assert [e.pool for e in run(six().task_graph(pools=Pools.custom(lambda t: t.params[0] + 4090))).stats.executors] == [*range(4090, 4096)]
    with pytest.raises(PtoError, match=r"(?s)S104.*expected: 0 \.\. 4095.*found:    4096"):
        run(six().task_graph(pools=Pools.custom(lambda t: t.params[0] + 4091)))
    with pytest.raises(PtoError, match=r"(?s)S104.*expected: 0 \.\. 15"):     # of each AICPU an executor: a million in all
        run(six().dispatch(DispatchPolicy.round_robin(1 << 16)).task_graph(pools=Pools.custom(lambda t: t.params[0] + 11)))


# ---- which task ----

def test_the_highest_priority_of_a_shared_queue() -> None:
    # two executors take the highest two at a time: 5 4, 3 2, 1 0
    w = six().dispatch(DispatchPolicy.work_steal(2)).task_graph(ready=ReadyPolicy.priority(lambda t: t.params[0]))
    assert starts(run(w)) == [4, 4, 2, 2, 0, 0]


def test_a_task_of_high_priority_that_is_not_ready_holds_nobody() -> None:
    # 4 has the highest priority and needs 0, which has the lowest: 3 2 1 go first, then 0, then 4
    w = units().task_graph(ready=ReadyPolicy.priority(lambda t: t.params[0]))
    program = run(w)
    assert starts(program) == [10, 4, 2, 0, 16]
    assert figures(program) == [(18, 0, 0, 0)]


def test_lanes_take_turns() -> None:
    # streams 0, 1, 2 of tasks 0 1, 2 3 and 4 5. Classes of stream mod 2: 0 first, then 2 of class 1, then 4 and 1 of class 0 by the time
    # at which they were ready, with 3 of class 1 between them
    w = six().stream_by(lambda t: t.params[0] // 2).task_graph()
    assert starts(run(w)) == [0, 6, 2, 8, 4, 10]
    assert starts(run(w.timing(TimingPolicy.interleaved(2)))) == [0, 8, 2, 6, 4, 10]


def test_turns_are_taken_among_tasks_of_the_highest_priority() -> None:
    # streams 0 1 2 0 1 2: each a chain of two; those of stream 2 go before the others whenever they are ready: 2, 5, then 0 and 1 by turns
    w = six().streams(3).dispatch(DispatchPolicy.dispatch_by(lambda t: 0, 1)).timing(TimingPolicy.interleaved(3))
    assert starts(run(w)) == [0, 2, 4, 6, 8, 10]
    assert starts(run(w.task_graph(ready=ReadyPolicy.priority(lambda t: t.params[0] % 3 // 2)))) == [4, 6, 0, 8, 10, 2]


# ---- streams ----

def test_streams_are_executors_without_dispatch() -> None:
    # stream 0: 8 and 1, stream 1: 1 and 5
    program = run(four().streams(2))
    assert starts(program) == [0, 0, 8, 1]
    assert figures(program) == [(9, 0, 0, 0), (6, 0, 0, 3)]


def test_streams_only_order_what_is_dispatched() -> None:
    # all have an executor of their own, and 2 waits for 0, 3 for 1
    program = run(four().streams(2).dispatch(DispatchPolicy.round_robin(4)))
    assert starts(program) == [0, 0, 8, 1]
    assert figures(program) == [(8, 0, 0, 1), (1, 0, 0, 8), (1, 8, 0, 0), (5, 1, 0, 3)]


# ---- calendars ----

def test_a_calendar_orders_each_executor() -> None:
    # 0 and 3 on executor 0, 3 first: 0 .. 5 .. 13; 1 and 2 on executor 1, 2 first: 0 .. 1 .. 2. While 0 stands, executor 1 is late.
    program = run(four().calendar([(0, 1), (1, 7), (1, 3), (0, 0)]))
    assert starts(program) == [5, 1, 0, 0]
    assert figures(program) == [(13, 0, 0, 0), (2, 0, 3, 8)]


def test_a_calendar_waits_for_a_task_that_is_not_ready() -> None:
    # executor 1: 4, which needs 0 (0 .. 6), before 2 and 3, which could run at once: 6, 8, 10. Executor 0: 0 and 1.
    program = run(units().calendar([(0, 0), (0, 1), (1, 1), (1, 2), (1, 0)]))
    assert starts(program) == [0, 6, 8, 10, 6]
    assert figures(program) == [(12, 0, 0, 0), (6, 0, 6, 0)]


def test_a_calendar_of_a_function() -> None:
    # even tasks on executor 0 from the last to the first, odd ones on executor 1 as they come
    w = six().calendar(lambda t: (t.params[0] % 2, (t.params[0] % 2 == 0).where(10 - t.params[0], t.params[0])))
    assert starts(run(w)) == [4, 0, 2, 2, 0, 4]


# ---- AICPUs that take time ----

def test_an_aicpu_dispatches_and_retires_one_after_another() -> None:
    # dispatch 2, retire 1, six tasks of 2 on two executors of one AICPU. It is busy all the time: dispatches 0-2 and 2-4 (the first task
    # runs 2-4, the second 4-6); at 4 the first is retired, 4-5; the third dispatched 5-7, runs 7-9; the second (ended at 6) retired 7-8;
    # the fourth dispatched 8-10, runs 10-12; the third (9) retired 10-11; the fifth dispatched 11-13, runs 13-15; the fourth (12)
    # retired 13-14; the sixth dispatched 14-16, runs 16-18; the fifth (15) retired 16-17, the sixth 18-19.
    arch = builtin_arch("unit").with_cores(cube=1, vector=2).with_aicpu(submit_cycles=0, dispatch_cycles=2, retire_cycles=1)
    w = six().dispatch(DispatchPolicy.dispatch_by(lambda t: 0, 1)).task_graph(pools=Pools.by_exec_unit())
    program = run(w, arch=arch, overheads=True)
    assert starts(program) == [2, 4, 7, 10, 13, 16]
    assert program.stats.total_cycles == 19
    assert run(w, arch=arch).stats.total_cycles == 6     # without overheads: three after another


def test_a_successor_waits_for_the_retirement() -> None:
    # 8 cycles of dispatch 3 and retirement 2 around each task of a stream: 3+8+2, 3+1+2 on AICPUs of their own
    arch = builtin_arch("unit").with_aicpu(submit_cycles=0, dispatch_cycles=3, retire_cycles=2)
    program = run(four().streams(2).dispatch(DispatchPolicy.round_robin(4)), arch=arch, overheads=True)
    assert starts(program) == [3, 3, 16, 9]
    assert program.stats.total_cycles == 19
    # executor 2 waits for 0 until 13, and is given its task until 16
    assert figures(program)[2] == (1, 13, 3, 2)


def test_an_aicpu_that_submits_dispatches_and_retires_without_cost() -> None:
    arch = builtin_arch("unit").with_aicpu(submit_cycles=0, dispatch_cycles=0, retire_cycles=0)
    assert run(four().streams(2), arch=arch, overheads=True).stats.total_cycles == 9


# ---- memory ----

def test_memory_for_all_that_tasks_ask_for() -> None:
    # 2048 / 64 = 32 and 2048 / 128 = 16 bytes a cycle, and 8 / 64: 48.125 are there
    arch = builtin_arch("unit").with_memory("GM", bandwidth_bytes_per_cycle=48.125)
    assert ends(run(copies().dispatch(DispatchPolicy.round_robin(3)), arch=arch)) == [64, 128, 64]


def test_tasks_that_ask_for_more_slow_down_evenly() -> None:
    # 48.125 asked of 24.0625: at half speed, 0 and 2 end at 128, when 1 has 64 of its 128 cycles left; alone it asks for 16: 192
    arch = builtin_arch("unit").with_memory("GM", bandwidth_bytes_per_cycle=24.0625)
    program = run(copies().dispatch(DispatchPolicy.round_robin(3)), arch=arch)
    assert ends(program) == [128, 192, 128]
    assert figures(program) == [(128, 0, 0, 64), (192, 0, 0, 0), (128, 0, 0, 64)]


def test_a_task_alone_may_ask_for_more_than_there_is() -> None:
    # one executor: 32 of 10 bytes a cycle are 3.2 times 64 cycles, 204.8, so 205; 16 of 10: 1.6 times 128, 204.8, so 205 more; then 64
    arch = builtin_arch("unit").with_memory("GM", bandwidth_bytes_per_cycle=10.0)
    program = run(copies(), arch=arch)
    assert ends(program) == [205, 410, 474]
    assert program.stats.memory_bound == program.stats.lower_bound == program.simulate().stats.lower_bound == 410      # 4104 bytes
