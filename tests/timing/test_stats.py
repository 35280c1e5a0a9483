"""Stats: the lower bound, the gap to it, and what the time mostly is, on made-up figures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pto_wsp import DispatchPolicy, DType, In, InOut, Out, P, Tensor, Tile, kernel, pto, workload
from pto_wsp.ir.execution_rules import WindowUnit
from pto_wsp.run.simulator import STALL_REASONS
from pto_wsp.timing.explain import Chain, Step
from pto_wsp.timing.figures import ChannelStats, ControlStats, ExecutorStats, PoolStats, ResourceStats, StallStats, WindowStats
from pto_wsp.timing.stats import Stats


def stats(total: int, path: int, busy: tuple[int, ...], stalled: int = 0) -> Stats:
    """Figures of a run: makespan, critical path, busy cycles an executor, which waits else, cycles stalled on the window."""
    executors = tuple(ExecutorStats(b, total - b, 0, 1) for b in busy)
    return Stats(len(busy), total, path, sum(busy), executors, WindowStats(8, 1, stalled, 8), 0.0, 0.0)


@pytest.mark.parametrize("found, bound, gap", [
    (stats(100, 40, (60, 40)), 50, 1.0), (stats(100, 100, (60, 40)), 100, 0.0), (stats(60, 10, (60, 41)), 51, 60 / 51 - 1),
    (stats(0, 0, ()), 0, 0.0),
])
def test_the_lower_bound_is_the_path_or_the_work_shared(found: Stats, bound: int, gap: float) -> None:
    assert found.lower_bound == bound and found.gap == pytest.approx(gap)


def test_the_bytes_of_all_tasks_bound_the_time() -> None:
    found = replace(stats(200, 40, (60, 40)), memory_bound=160, memory_cycles=90)
    assert found.lower_bound == 160 and found.gap == 0.25 and "work 100 on 2 executors, memory 160; 25% above it" in str(found)


@pytest.mark.parametrize("found, text", [
    (stats(0, 0, (0, 0)), "nothing"), (stats(100, 100, (100, 0)), "the critical path"),
    (stats(100, 20, (100,)), "work on the one executor"),
    (stats(100, 20, (100, 98)), "work, spread evenly"), (stats(100, 20, (100, 20)), "imbalance: the busiest executor has 1.67 times"),
    (stats(100, 60, (50, 50), stalled=60), "the window"), (stats(100, 60, (50, 50)), "waiting"),
])
def test_what_the_time_mostly_is(found: Stats, text: str) -> None:
    assert found.dominated_by.startswith(text)


def test_executors_that_have_not_waited_are_not_told_to() -> None:
    idle = tuple(ExecutorStats(50, 0, 50, 1) for _ in range(2))
    assert replace(stats(100, 60, (50, 50)), executors=idle).dominated_by == \
        "the critical path: one chain of dependent tasks takes 60% of the time"
    assert replace(stats(100, 40, (50, 50)), executors=idle).dominated_by.startswith("work, spread evenly")


def test_imbalance_is_that_of_a_pool() -> None:
    """Two executors of pool 0 are busy all the time, the four of pool 1 are not."""
    of_pools = ((100, 0), (98, 0), (3, 1), (0, 1), (0, 1), (0, 1))
    executors = tuple(ExecutorStats(busy, 100 - busy, 0, 1, pool=pool) for busy, pool in of_pools)
    found = replace(stats(100, 20, (100, 100)), executors=executors)
    assert found.dominated_by == "work, spread evenly: only more executors of pool 0 would help"
    uneven = (replace(executors[0], busy=100), replace(executors[1], busy=60), *executors[2:])
    assert replace(found, executors=uneven).dominated_by == "imbalance: the busiest executor of pool 0 has 1.25 times the average work"


def chain(**cycles: int) -> Chain:
    """A chain of causes with a step of each cause; "last": a task that nothing waits for."""
    steps, begin = [], 0
    for cause, length in cycles.items():
        task, behind = (0, cause.removeprefix("t_")) if cause.startswith("t_") else (None, "")
        steps.append(Step(begin, begin + length, "task" if behind else cause, "", task, "", behind))
        begin += length
    return Chain(tuple(steps))


@pytest.mark.parametrize("found, text", [
    (chain(t_edge=60, submit=40), "waiting"), (chain(t_task=40, submit=60), "submission"), (chain(t_edge=30, retire=40), "dispatch"),
    (chain(t_edge=30, dispatch=40), "dispatch"), (chain(window=30, t_window=21, t_edge=49), "the window"), (chain(release=9), "timing"),
    (chain(start=9), "the start policy"), (chain(calendar=9), "the calendar"), (chain(edge=9), "latency"), (chain(mark=9), "marks"),
    (chain(t_EVENT_WAIT=9), "events"), (chain(executor=9), "lateness"), (chain(t_executor=9), "work, spread evenly"),
    (chain(t_task=9), "one task: the last one alone takes 9% of the time"), (chain(t_bytes=9), "the window of bytes"),
])
def test_the_chain_of_causes_has_the_last_word(found: Chain, text: str) -> None:
    assert replace(stats(100, 60, (50, 50)), chain=lambda: found).dominated_by.startswith(text)


def test_a_run_at_its_lower_bound_is_bounded_by_what_makes_the_bound() -> None:
    held = chain(t_window=100)
    at_work = replace(stats(100, 60, (100, 100)), chain=lambda: held)
    assert at_work.gap == 0 and at_work.dominated_by.startswith("work, spread evenly")
    assert replace(at_work, critical_path=100).dominated_by == "the critical path: one chain of dependent tasks takes all the time"
    assert replace(at_work, executors=at_work.executors[:1], work=100, memory_bound=100, critical_path=1).verdict.kind == "work"
    assert replace(at_work, work=0, memory_bound=100).verdict.kind == "memory"
    assert replace(at_work, work=0, task_count=6, control=ControlStats(20, 0, 0, 1, 6)).verdict.kind == "submission"
    assert replace(at_work, work=0, task_count=5, control=ControlStats(0, 10, 10, 1, 5)).verdict.kind == "dispatch"


@pytest.mark.parametrize("reason, text", [*zip(STALL_REASONS[1:], ("empty channels", "full channels", "reads", "events"), strict=True)])
def test_processes_that_mostly_stand_still_are_told_by_reason(reason: str, text: str) -> None:
    others = StallStats("WAIT", 9, 3)
    found = replace(stats(100, 60, (50, 50)), stalls=(others, StallStats(reason, 2, 51)))
    assert found.dominated_by.startswith(text)
    assert replace(found, stalls=(others, StallStats(reason, 2, 50))).dominated_by.startswith("waiting")


def test_the_lower_bound_goes_pool_by_pool() -> None:
    """Two cube cores with 90 cycles of work, four vector cores with 100: 45 and 25 at best."""
    found = replace(stats(100, 40, (50, 40, 25, 25, 25, 25)), pools=(PoolStats(0, 2, 90), PoolStats(1, 4, 100)))
    assert found.lower_bound == 45 and found.gap == pytest.approx(100 / 45 - 1)
    assert replace(found, critical_path=60).lower_bound == 60


def test_the_lower_bound_counts_what_handing_out_tasks_takes() -> None:
    """Seven tasks, submitted every 9 cycles: the last one at 54. Dispatched and retired in 20
    cycles each by two AICPUs: 70 at best."""
    found = replace(stats(100, 40, (50, 50)), task_count=7)
    assert found.lower_bound == 50
    assert replace(found, control=ControlStats(9, 0, 0, 2, in_a_row=7)).lower_bound == 54
    assert replace(found, control=ControlStats(9, 0, 0, 2, in_a_row=4)).lower_bound == 50
    for dispatch, retire in (20, 0), (13, 7):
        assert replace(found, control=ControlStats(0, dispatch, retire, 2)).lower_bound == 70


@pytest.mark.parametrize("change, text", [
    ({"memory_cycles": 26}, "memory: tasks took 26% longer"), ({"memory_cycles": 25}, "waiting"),
    ({"control": ControlStats(46, 0, 0, 2)}, "submission"), ({"control": ControlStats(45, 0, 0, 2)}, "waiting"),
    ({"control": ControlStats(0, 30, 21, 2)}, "dispatch"), ({"control": ControlStats(0, 30, 20, 2)}, "waiting"),
    ({"executors": (ExecutorStats(50, 10, 9, 1, 31), ExecutorStats(50, 20, 0, 1, 30))}, "lateness"),
    ({"executors": (ExecutorStats(50, 20, 9, 1, 21), ExecutorStats(50, 25, 0, 1, 25))}, "lateness"),
    ({"executors": (ExecutorStats(50, 30, 9, 1, 11), ExecutorStats(50, 25, 0, 1, 25))}, "waiting"),
])
def test_memory_control_and_lateness_are_named(change: dict[str, object], text: str) -> None:
    assert replace(stats(100, 60, (50, 50)), **change).dominated_by.startswith(text)     # type: ignore[arg-type]


@pytest.mark.parametrize("unit, name, size", [
    (WindowUnit.TASKS, "TASK_RING_FULL", "8 tasks"), (WindowUnit.BYTES, "HEAP_ARENA_FULL", "8 bytes"),
    (WindowUnit.ENTRIES, "TENSORMAP_POOL_FULL", "8 entries"),
])
def test_the_window_bounds_the_resource_of_its_unit(unit: WindowUnit, name: str, size: str) -> None:
    found = replace(stats(100, 60, (50, 50)), window=WindowStats(8, 2, 30, 7, unit))
    bounded = [resource for resource in found.resources if resource.size]
    assert bounded == [ResourceStats(name, size, "7", 2, 30)]
    assert {"TASK_RING_FULL", "HEAP_ARENA_FULL", "TENSORMAP_POOL_FULL", "DEPLIST_POOL_FULL", "READY_QUEUE_FULL"} == {
        resource.name for resource in found.resources}


def test_figures_read_well() -> None:
    executors = ExecutorStats(50, 30, 15, 3, 5), ExecutorStats(40, 20, 30, 2, 10, 1)
    found = replace(stats(100, 60, (50, 40)), executors=executors, task_count=5, pools=(PoolStats(0, 1, 50), PoolStats(1, 1, 40)),
                    channels=(ChannelStats("tokens", 4, 9, 3),),
                    stalls=(StallStats("CHANNEL_FULL_WAIT", 2, 20),))
    assert str(found) == """\
5 tasks in 100 cycles; run 0.0 ms, compile 0.0 ms
lower bound 60 cycles: critical path 60, work 50 on 1 executor of pool 0, work 40 on 1 executor of pool 1; 67% above it
dominated by waiting: executors were idle while their tasks waited for others
executor (pool)         busy     waiting        late        idle     tasks
   0 (0)            50   50%    30   30%     5    5%    15   15%         3
   1 (1)            40   40%    20   20%    10   10%    30   30%         2
stall                             size         most used    stalls      cycles
TASK_RING_FULL                 8 tasks                 8         1           0
CHANNEL_EMPTY_WAIT           tokens: 4         tokens: 3         0           0
CHANNEL_FULL_WAIT            tokens: 4         tokens: 3         2          20"""


def test_of_many_executors_those_that_ran_something_are_shown() -> None:
    one, none = ExecutorStats(5, 0, 95, 1), ExecutorStats(0, 0, 100, 0)
    lines = str(replace(stats(100, 5, (5,)), executors=(none,) * 10 + (one,) * 18)).splitlines()
    assert [line.split()[0] for line in lines[4:20]] == [str(k) for k in range(10, 26)]
    assert lines[20:22] == ["   … 2 more, busy 5 to 5", "   … 10 ran nothing"]


def test_kernels_are_counted() -> None:
    """Three rows of 8 elements moved, 8 cycles loaded and 8 stored, and added to, on one executor."""
    x, y = (Tensor(np.zeros((3, 8), np.float32)) for _ in range(2))

    @workload
    def main() -> None:
        for b in P(3):
            move[b](x[b], y[b])
        for b in P(2):
            add[b](x[b], y[b])

    program = main().dispatch(DispatchPolicy.round_robin(1)).compile(wall_trace=True).run()
    found, length = program.stats.kernels, program.trace.end - program.trace.start
    assert [(row.kernel, row.tasks) for row in found] == [("add", 2), ("move", 3)]
    assert found[0].cycles == length[3:].sum() and found[1].cycles == length[:3].sum()
    assert [row.waiting for row in found] == [program.trace.start[3:].sum(), program.trace.start[:3].sum()]     # all are submitted at 0
    wall = program.wall_trace.end - program.wall_trace.start
    assert found.columns()["wall_ns"].tolist() == [wall[3:].sum(), wall[:3].sum()] and found.columns()["kernel"].tolist() == ["add", "move"]
    assert any(part.kind == "table" and part.title == "Kernels" and part.head[-1] == "wall ns" for part in program.stats.card.parts)
    assert str(found).splitlines()[0].split() == ["kernel", "tasks", "cycles", "waiting", "wall", "ns"]
    simulated = program.simulate(arch="ascend_910b").stats.kernels
    assert [row.wall_ns for row in simulated] == [None, None] and "wall_ns" not in simulated.columns()
    assert program.trace.card.sentence == program.stats.card.sentence


@kernel
def move(a: In[Tile[1, 8, DType.F32]], c: Out[Tile[1, 8, DType.F32]]) -> None:
    pto.store(c, a)


@kernel
def add(a: In[Tile[1, 8, DType.F32]], c: InOut[Tile[1, 8, DType.F32]]) -> None:
    pto.store(c, pto.exp(c) + a)
