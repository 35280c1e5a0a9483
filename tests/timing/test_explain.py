"""Why a task ran when it did: each cause by hand on a small stream, and chains without gaps under every rule."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from pto_wsp import (
    Channel,
    DispatchPolicy,
    DType,
    In,
    Out,
    P,
    Pools,
    Program,
    ReadyPolicy,
    StartPolicy,
    TaskWindow,
    Tensor,
    Tile,
    TimingPolicy,
    TracePolicy,
    WindowMode,
    Workload,
    builtin_arch,
    consume,
    kernel,
    pto,
    send,
    workload,
)
from pto_wsp.api.finished_run import FinishedRun
from pto_wsp.errors import ArgumentKindError
from pto_wsp.ir.execution_rules import Release, WindowUnit
from pto_wsp.run.simulator import LastWait
from pto_wsp.schedule.schedule import Scheduled
from pto_wsp.timing.timed_run import TimedRun

F32 = DType.F32
C = 24      # cycles of a task: 8 elements loaded, added, stored


@kernel
def step(x: In[Tile[1, 8, F32]], o: Out[Tile[1, 8, F32]]) -> None:
    pto.store(o, x + 1)


def main_of_pairs() -> Workload:
    """Six tasks, 0 → 1, 2 → 3, 4 → 5."""
    X, Y, Z = (Tensor(np.zeros((3, 8), np.float32)) for _ in range(3))

    @workload
    def main() -> None:
        for b in P(3):
            step[b](X[b], Y[b])
            step[b](Y[b], Z[b])
    return main()


def pairs() -> Program:
    """The same on executors 0, 1, 2, 0, 1, 2."""
    return main_of_pairs().dispatch(DispatchPolicy.round_robin(3)).compile(target="interp").run()


def main_of_pipe() -> Workload:
    """Four tokens through a channel of one slot."""
    X, Y, Z = (Tensor(np.zeros((4, 8), np.float32)) for _ in range(3))
    tokens = Channel("tokens", 1)

    @workload
    def give() -> None:
        for k in P.seq(4):
            send(tokens, step[k](X[k], Y[k]))

    @workload
    def take() -> None:
        with consume(tokens) as k:
            step[k](Y[k], Z[k])

    @workload
    def main() -> None:
        with P.pipe():
            give()
            take()
    return main()


PAIRS, PIPED = pairs(), main_of_pipe().compile(target="interp").run()


def timed(program: Program, **rules: object) -> TimedRun:
    """Return a program's stream in simulated time under other rules."""
    run = FinishedRun(program.compiled, program.compiled.to_run(), program.bind(), 0.0).timed
    changed = replace(run.plan.rules, **rules)
    return replace(run, plan=replace(run.plan, rules=changed), sim=program.compiled.runner.recorder.simulate(changed, keep_trace=True))


def delayed(task: int, **rules: object) -> tuple[LastWait, str, int | None, int]:
    """Return what delayed a task of `pairs`: why, as text, the task behind it and when that ended or was submitted."""
    cause = timed(PAIRS, **rules).explainer.explain(task).cause
    return cause.held, cause.text, cause.moment.task, cause.moment.time


def steps(run: TimedRun, task: int = -1) -> list[tuple[int, int, int | str]]:
    """Return a chain as (begin, end, the task or what holds)."""
    return [(step.begin, step.end, step.kind if step.task is None else step.task) for step in run.explainer.explain(task).chain()]


def test_nothing_delays_the_first() -> None:
    assert delayed(0) == (LastWait.NOT, "nothing: it started as soon as it was submitted, at 0", None, 0)


def test_what_it_waits_for() -> None:
    assert delayed(5) == (LastWait.EDGE, f"4 step[b=2], which ended at {C}: RAW on Y[2, 0:8], order", 4, C)
    assert steps(timed(PAIRS)) == [(0, C, 4), (C, 2 * C, 5)]


def test_its_executor() -> None:
    """Submitted at 0, 10 .. 50, three executors: 1 runs from 24 to 48 on executor 1, then 4 may."""
    assert delayed(4, submit_cycles=10) == (LastWait.EXECUTOR, f"its executor, which ran 1 step[b=0] until {2 * C}", 1, 2 * C)
    assert steps(timed(PAIRS, submit_cycles=10)) == [(0, C, 0), (C, 2 * C, 1), (2 * C, 3 * C, 4), (3 * C, 4 * C, 5)]


def test_the_window() -> None:
    assert delayed(5, window=1) == (LastWait.WINDOW, f"the window of 1 task, in which 4 step[b=2] made room at {5 * C}", 4, 5 * C)
    assert steps(timed(PAIRS, window=1)) == [(k * C, (k + 1) * C, k) for k in range(6)]
    assert steps(timed(PAIRS, window=2)) == [(0, C, 0), (C, 2 * C, 1), (2 * C, 3 * C, 3), (3 * C, 4 * C, 5)]


def test_timing() -> None:
    rate = {"release": Release.RATE, "release_every": (50, 1)}
    assert delayed(4, **rate) == (LastWait.RELEASE, "timing: rate_limit had not released it", 4, 0)
    assert steps(timed(PAIRS, **rate)) == [(0, 200, "release"), (200, 200 + C, 4), (200 + C, 250, "release"), (250, 250 + C, 5)]
    batches = {"release": Release.BATCHED, "release_n": 4, "submit_cycles": 10}      # 0 .. 3 when 3 is submitted, at 30
    assert delayed(2, **batches) == (LastWait.RELEASE, "timing: batched(4) had not released it", 2, 20)
    assert steps(timed(PAIRS, **batches), 2) == [(0, 20, "submit"), (20, 30, "release"), (30, 30 + C, 2)]


def test_the_start() -> None:
    said = "the start policy: nothing runs before 3 tasks were submitted"
    assert delayed(0, submit_cycles=10, start_after=3) == (LastWait.START, said, 2, 20)
    everything = timed(PAIRS, submit_cycles=10, start_after=None)      # the stream has ended at 60
    assert steps(everything, 4) == [(0, 50, "submit"), (50, 60, "start"), (60, 60 + C, 4)]


def test_the_time_of_submitting() -> None:
    assert delayed(2, submit_cycles=10)[::2] == (LastWait.SUBMIT, 1)
    assert steps(timed(PAIRS, submit_cycles=10), 2) == [(0, 20, "submit"), (20, 20 + C, 2)]


def test_dispatching_and_retiring() -> None:
    assert steps(timed(PAIRS, dispatch_cycles=5, retire_cycles=7)) == [
        (0, 5, "dispatch"), (5, 5 + C, 4), (5 + C, 12 + C, "retire"), (12 + C, 17 + C, "dispatch"), (17 + C, 17 + 2 * C, 5),
        (17 + 2 * C, 24 + 2 * C, "retire")]
    one = timed(PAIRS, dispatch_cycles=5, n_workers=3, pool_size=(2,)).explainer     # 1 and 4 are both of worker 1, and ready at 0 and 29
    assert one.explain(5).cause.held is LastWait.EDGE


def one_aicpu(**costs: int) -> TimedRun:
    """The same on three executors of one AICPU, an executor for each pair, where that takes time."""
    machine = builtin_arch("unit").with_aicpu(submit_cycles=0, **costs)
    schedule = main_of_pairs().dispatch(DispatchPolicy.round_robin(1)).task_graph(pools=Pools.custom(lambda t: t.b))
    return PAIRS.simulate(schedule, machine, overheads=True).timed


def test_the_makespan_ends_with_the_last_retirement() -> None:
    """0, 2, 4 are dispatched until 5, 10, 15; 0 and 2 retired until 43, 1 dispatched until 48, 4 retired until 55, 3 and 5 dispatched until
    60 and 65; they end at 84 and 89, and 5 is retired until 98."""
    run = one_aicpu(dispatch_cycles=5, retire_cycles=7)
    last = run.explainer.explain(None)
    assert (last.task, last.ended, last.completed, run.sim.total_cycles) == (5, 89, 98, 98)
    assert str(last).splitlines()[1].endswith("on executor 2: 24 cycles, retired at 98")
    assert steps(run)[-3:] == [(60, 65, "dispatch"), (65, 89, 5), (89, 98, "retire")]
    for found in (run, timed(PAIRS, dispatch_cycles=9, retire_cycles=50), timed(PIPED, retire_cycles=3, submit_cycles=2)):
        chain = found.explainer.explain(None).chain()
        assert sum(chain.cycles.values()) == found.sim.total_cycles and str(chain).startswith(f"{found.sim.total_cycles} cycles: ")


def test_a_retirement_waits_for_its_aicpu() -> None:
    """0, 2 and 4 end together, and one AICPU retires them one after another."""
    run = one_aicpu(dispatch_cycles=0, retire_cycles=10)
    times = run.sim.tasks
    assert times is not None
    assert times.end.tolist()[::2] == [C] * 3 and times.complete.tolist()[::2] == [C + 10, C + 20, C + 30]
    said = str(run.explainer.explain(4).chain()).splitlines()
    assert said[-1] == f"  {C} .. {C + 30}    held by the retirement of 4, its AICPU being busy until {C + 20}"


def test_what_completes_last_need_not_end_last() -> None:
    """One AICPU retires 0 and 2, which end at 24, until 34 and 44, 1 and 3, which end at 68, until 78 and 88; on the other 4 ends at 30 and
    5 at 70, and that is retired at 80."""
    machine = builtin_arch("unit").with_aicpu(submit_cycles=0, dispatch_cycles=0, retire_cycles=10)
    schedule = main_of_pairs().dispatch(DispatchPolicy.affinity(lambda t: t.b // 2, 2)).task_graph(
        pools=Pools.custom(lambda t: t.b), trace=TracePolicy.cycles(lambda t: (t.b == 2).where(30, C)))
    found = PAIRS.simulate(schedule, machine, overheads=True)
    assert found.trace.end.tolist() == [24, 68, 24, 68, 30, 70]
    assert (found.explain().task, found.explain().completed, found.total_cycles) == (3, 88, 88)


def test_its_process() -> None:
    """Receive k and send k + 1 take turns: each step starts when the one before has ended."""
    run = timed(PIPED)
    assert run.sim.total_cycles == 5 * C and [step.held for step in run.explainer.explain(None).chain()] == ["not", *["mark"] * 4]
    cause = run.explainer.explain(None).cause
    assert cause.held is LastWait.MARK and cause.text.startswith("its process, which stood at test_explain.py:")
    assert cause.text.endswith(f" until {4 * C}")


def test_an_explanation_reads_well() -> None:
    said = timed(PAIRS, submit_cycles=10).explainer.explain(5)
    line = said.line
    assert str(said) == "\n".join((
        f"task 5 step[b=2]  ({line})",
        "  submitted at 50, ready at 72, ran from 72 to 96 on executor 2: 24 cycles",
        "  delayed by 4 step[b=2], which ended at 72: RAW on Y[2, 0:8], order",
        "  waits for",
        "    72  4 step[b=2]  RAW on Y[2, 0:8], order"))
    assert str(timed(PAIRS, submit_cycles=10).explainer.explain(4).chain()) == "\n".join((
        "72 cycles: 72 in 3 tasks",
        "   0 .. 24  0 step[b=0]",
        "  24 .. 48  1 step[b=0]  when what it waits for was there",
        "  48 .. 72  4 step[b=2]  when its executor was free"))
    assert str(timed(PAIRS, dispatch_cycles=5).explainer.explain(0).chain()) == (
        "29 cycles: 5 held by dispatch, 24 in 1 task\n   0 ..  5    held by the dispatch of 0\n   5 .. 29  0 step[b=0]")


WINDOWS: list[dict[str, object]] = [{}, {"window": 1}, {"window": 3}, {"window": 4, "window_unit": WindowUnit.ENTRIES}]
COSTS: list[dict[str, object]] = [{}, {"submit_cycles": 5}, {"submit_cycles": 40, "dispatch_cycles": 3},
                                  {"submit_cycles": 2, "dispatch_cycles": 4, "retire_cycles": 6}]
TIMINGS: list[dict[str, object]] = [{}, {"release": Release.BATCHED, "release_n": 2}, {"release": Release.RATE, "release_every": (31, 2)}]
STARTS: list[dict[str, object]] = [{}, {"start_after": 2}, {"start_after": None}]
EXECUTORS: list[dict[str, object]] = [{}, {"shared": True}, {"steals": True}, {"pool_size": (2,)}]
RULES = [{**window, **costs, **timing, **start, **executors}
         for window, costs, timing, start, executors in itertools.product(WINDOWS, COSTS, TIMINGS, STARTS, EXECUTORS)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("start_after", [2, 9, None])
def test_the_chain_of_a_start_policy_has_no_gap_where_dispatches_come_first_and_tasks_take_nothing(start_after: int | None) -> None:
    free = main_of_pipe().task_graph(start=StartPolicy.after_orchestration() if start_after is None else StartPolicy.threshold(start_after),
                                     trace=TracePolicy.cycles(lambda t: t.params[0] * 7 % 5))
    for submit, dispatch, retire in itertools.product((0, 3, 7), (0, 2, 5), (0, 4)):
        machine = builtin_arch("unit").with_aicpu(submit_cycles=submit, dispatch_cycles=dispatch, retire_cycles=retire)
        found = PIPED.simulate(free, machine, overheads=True)
        chain = list(found.explain().chain())
        assert chain[0].begin == 0 and chain[-1].end == found.total_cycles, (submit, dispatch, retire)
        assert all(before.end == after.begin for before, after in itertools.pairwise(chain)), (submit, dispatch, retire)


@pytest.mark.parametrize("program", [PAIRS, PIPED], ids=["pairs", "piped"])
def test_a_chain_has_no_gap_whatever_holds_a_task(program: Program) -> None:
    for rules in RULES[::11]:
        run = timed(program, **rules)
        explainer, times = run.explainer, run.sim.tasks
        assert times is not None
        for task in range(run.sim.n_tasks):
            found = list(explainer.explain(task).chain())
            assert found[0].begin == 0 and found[-1].end == times.complete[task], rules
            assert all(before.end == after.begin for before, after in itertools.pairwise(found)), rules


def schedules(w: Workload) -> list[Scheduled]:
    """One of each kind that moves tasks, holds them, or lets them share something."""
    two = DispatchPolicy.round_robin(2)
    return [w.dispatch(two), w.dispatch(DispatchPolicy.work_steal(3)), w.dispatch(two).task_graph(pools=Pools.by_exec_unit()),
            w.dispatch(two).task_graph(ready=ReadyPolicy.work_steal(), window=TaskWindow(3, "tasks", WindowMode.STALL)),
            w.streams(2).timing(TimingPolicy.batched(4)), w.task_graph(start=StartPolicy.threshold(4))]


@pytest.mark.parametrize("overheads", [False, True])
def test_chains_bounds_and_idleness_hold_under_schedules_on_a_machine_with_little_bandwidth(overheads: bool) -> None:
    machine = builtin_arch("ascend_910b").with_memory("GM", bandwidth_bytes_per_cycle=0.25)
    for schedule in schedules(main_of_pairs()):
        found = PAIRS.simulate(schedule, machine, overheads=overheads)
        chain, stats = list(found.explain().chain()), found.stats
        assert chain[0].begin == 0 and chain[-1].end == stats.total_cycles
        assert all(before.end == after.begin for before, after in itertools.pairwise(chain))
        assert found.critical_path.cycles == stats.critical_path <= stats.lower_bound <= stats.total_cycles
        idle = [(e.busy, e.waiting, e.late, e.idle) for e in stats.executors]
        assert all(sum(parts) == stats.total_cycles and min(parts) >= 0 for parts in idle)


def test_the_critical_path_is_that_of_the_simulator() -> None:
    for program, tasks in ((PAIRS, (0, 1)), (PIPED, (0, 2, 4, 6, 7))):
        path = program.critical_path
        assert path.tasks == tasks and path.cycles == program.stats.critical_path == len(tasks) * C
    assert str(PAIRS.critical_path) == f"critical path: {2 * C} cycles, 2 tasks\n{C:>8}  0 step[b=0]\n{C:>8}  1 step[b=0]  " \
        "RAW on Y[0, 0:8], order"
    assert PAIRS.critical_path[1].reason == "RAW on Y[0, 0:8], order" and len(PAIRS.critical_path[0:2]) == 2


def test_figures_of_executors_pools_and_channels() -> None:
    """Two executors a worker of one pool; the channel of one slot holds a token from its send until it is taken, at once."""
    found = timed(PAIRS, pool_size=(2,), dispatch_cycles=5).stats
    assert [(pool.pool, pool.executors, pool.work) for pool in found.pools] == [(0, 6, 6 * C)] and found.control.dispatch == 5
    assert all(e.busy + e.waiting + e.late + e.idle == found.total_cycles for e in found.executors)
    assert [(c.name, c.depth, c.tokens, c.high_water) for c in PIPED.stats.channels] == [("tokens", 1, 4, 1)]


def test_executors_are_counted_pool_by_pool_and_aicpu_by_aicpu() -> None:
    assert [(home.pool, home.aicpu) for home in timed(PAIRS, pool_size=(2,)).trace.homes] == [(0, k // 2) for k in range(6)]
    two = timed(PAIRS, pool_size=(1, 2)).trace
    assert [(home.pool, home.aicpu) for home in two.homes] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 0), (1, 1), (1, 1), (1, 2), (1, 2)]
    causes = timed(PIPED).trace.causes
    assert causes is not None and causes.task.tolist() == [-1, 0, 0, 1, 2, 3, 4, 6]     # of two that end at once the first


def test_what_names_no_task_is_refused() -> None:
    with pytest.raises(ArgumentKindError, match="there is no task 6"):
        PAIRS.explain(6)
    assert PAIRS.explain().ended == PAIRS.stats.total_cycles == PAIRS.simulate().explain(5).ended
