"""What a schedule says of each task, as expressions, and of all of them, as rules."""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp import (
    Deps,
    DispatchPolicy,
    DType,
    In,
    Out,
    P,
    Pools,
    ReadyPolicy,
    Scalar,
    StartPolicy,
    Symbol,
    TaskWindow,
    Tensor,
    Tile,
    TimingPolicy,
    WindowMode,
    Workload,
    kernel,
    pto,
    workload,
)
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.arch.model import Arch
from pto_wsp.errors import ArchError, KeyTraceError
from pto_wsp.ir.execution_rules import ExecutionRules, FullWindow, Release, TaskField, WindowUnit, print_rules
from pto_wsp.ir.plan import CheckKind, Submit, TaskPlan
from pto_wsp.ir.plan_walk import submits
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.passes.context import Context
from pto_wsp.passes.lower import lower
from pto_wsp.passes.passes import PASSES
from pto_wsp.passes.pipeline import run_passes

F32 = DType.F32
UNIT = builtin_arch("unit")
SMALL = UNIT.with_aicpu(count=4).with_cores(cube=4, vector=9)
NO_CUBE = UNIT.with_cores(cube=0, vector=8)
NO_CLOCK = UNIT.model_copy(update={"clock_ghz": None})
X, Y = Tensor(np.zeros((4, 6, 4), np.float32), name="X"), Tensor(np.zeros((4, 6, 4), np.float32), name="Y")
A = Tensor(np.zeros((16, 16), np.float32), name="A")


@kernel
def move(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]) -> None:
    pto.store(y, x)


@kernel
def product(a: In[Tile[16, 16, F32]], b: In[Tile[16, 16, F32]], c: Out[Tile[16, 16, F32]]) -> None:
    pto.store(c, pto.matmul(a, b))


@workload
def one() -> None:
    for b in P(4):
        for h in P(6):
            move[h, b](X[b, h], Y[b, h])


@workload
def both() -> None:
    move(X[0, 0], Y[0, 0])
    product(A, A, Tensor.empty((16, 16), F32))


def plan_of(w: Workload, arch: Arch = UNIT) -> TaskPlan:
    """Return the plan of a workload under its schedule."""
    return run_passes(lower(w.node), Context(w.schedule, arch), PASSES)


def task_of(w: Workload) -> Submit:
    """Return the one task of a workload's plan."""
    (task,) = submits(plan_of(w))
    return task


def rules_of(w: Workload, arch: Arch = UNIT) -> ExecutionRules:
    """Return what the plan says of all tasks together."""
    return plan_of(w, arch).rules


# ---- lanes and homes ----

@pytest.mark.parametrize("w, lane, worker, n_workers", [
    (one(), "0", "0", 1),
    (one().streams(3), "task_index % 3 + 1", "task_index % 3", 3),
    (one().stream_by("b"), "b + 1", "0", 1),
    (one().streams(2).stream_by(lambda t: t.params[0]), "h % 2 + 1", "h % 2", 2),
    (one().streams(2).dispatch(DispatchPolicy.affinity("b", 3)), "task_index % 2 + 1", "b % 3", 3),
    (one().dispatch(DispatchPolicy.work_steal()), "0", "0", 4),
    (one().dispatch(DispatchPolicy.work_steal(7)), "0", "0", 7),
], ids=["none", "streams", "stream_by", "both", "dispatch", "steal", "steal 7"])
def test_lanes_and_homes(w: Workload, lane: str, worker: str, n_workers: int) -> None:
    task, rules = task_of(w), rules_of(w)
    assert (print_scalar(task.lane), print_scalar(task.worker), rules.n_workers) == (lane, worker, n_workers)
    assert (TaskField.LANE in rules.columns) is (lane != "0")


def test_one_queue_has_as_many_executors_as_the_arch_has_aicpus() -> None:
    w = one().dispatch(DispatchPolicy.work_steal())
    assert (rules_of(w).n_workers, rules_of(w, SMALL).n_workers) == (4, 4)
    assert rules_of(w, UNIT.with_aicpu(count=9)).n_workers == 9
    assert rules_of(w).shared and not rules_of(one()).shared


@pytest.mark.parametrize("w", [
    one().streams(5), one().dispatch(DispatchPolicy.round_robin(5)), one().dispatch(DispatchPolicy.work_steal(5)),
], ids=["streams", "round_robin", "work_steal"])
def test_more_aicpus_than_the_arch_has_are_refused(w: Workload) -> None:
    with pytest.raises(ArchError, match="more AICPUs") as caught:
        plan_of(w, SMALL)
    assert "at most 4" in str(caught.value)


def test_host_threads_follow_homes_by_a_key_and_nothing_that_only_spreads_tasks() -> None:
    by_key = [DispatchPolicy.affinity("b", 3), DispatchPolicy.hash("b", 3), DispatchPolicy.dispatch_by("b", 3)]
    assert all(rules_of(one().dispatch(policy)).execute_options() == {"places": 1, "by_priority": 0} for policy in by_key)
    spread = [one(), one().streams(3), one().dispatch(DispatchPolicy.round_robin(3)), one().dispatch(DispatchPolicy.work_steal(3)),
              one().dispatch(DispatchPolicy.affinity("b", 1))]
    assert all(rules_of(w).execute_options() == {"places": 0, "by_priority": 0} for w in spread)
    assert rules_of(one().calendar(lambda t: (t.b, 0))).execute_options() == {"places": 2, "by_priority": 0}
    assert rules_of(one().task_graph(ready=ReadyPolicy.priority("b"))).execute_options() == {"places": 0, "by_priority": 1}


# ---- keys ----

def test_a_key_may_take_symbols() -> None:
    n = Symbol("n")

    @workload
    def sized() -> None:
        for i in P(n):
            move[i](X[i, 0], Y[i, 0])
    m = Symbol("m")
    plan = plan_of(sized().stream_by(lambda t: t.i * n + m))
    assert [symbol.name for symbol in plan.symbols] == ["n", "m"]
    (task,) = submits(plan)
    assert print_scalar(task.lane) == "i * n + m + 1"
    assert len({symbol.id for symbol in plan.symbols}) == 2


def test_a_symbol_that_the_workload_takes_for_a_float_is_no_key() -> None:
    scale = Symbol("scale", F32)

    @workload
    def sized() -> None:
        for i in P(4):
            add[i](X[i, 0], scale, Y[i, 0])
    with pytest.raises(KeyTraceError, match="takes for a float"):
        plan_of(sized().stream_by(lambda t: t.i + Symbol("scale")))


@kernel
def add(x: In[Tile[1, 4, F32]], n: Scalar[F32], y: Out[Tile[1, 4, F32]]) -> None:
    pto.store(y, x + n)


@pytest.mark.parametrize("key, checked", [
    (lambda t: t.b, False), (lambda t: t.b * 2 + t.h // 3, False), (lambda t: (t.b - 1).max(0), False), (lambda t: (t.b - 9) % 4, False),
    (lambda t: t.b < 2, False), (lambda t: t.b - 1, True), (lambda t: t.b + Symbol("n"), True), (lambda t: -t.b, True),
    (lambda t: (t.b - 5).max(t.h - 2), True),
], ids=["loop", "sum", "max", "mod", "condition", "less one", "symbol", "negative", "max of both"])
def test_a_stream_that_may_be_negative_is_checked(key: object, checked: bool) -> None:
    task = task_of(one().stream_by(key))  # type: ignore[arg-type]
    assert any(check.kind is CheckKind.KEY for check in task.note.checks) is checked


def test_what_is_taken_mod_n_needs_no_check() -> None:
    w = one().dispatch(DispatchPolicy.affinity(lambda t: t.b - 3, 2)).task_graph(ready=ReadyPolicy.priority(lambda t: -t.b))
    assert not [check for check in task_of(w).note.checks if check.kind is CheckKind.KEY]
    assert print_scalar(task_of(w).priority) == "-b"


# ---- pools ----

@pytest.mark.parametrize("w, arch, sizes", [
    (both(), UNIT, (1,)),
    (both().task_graph(pools=Pools.by_exec_unit()), UNIT, (1, 1)),
    (both().task_graph(pools=Pools.by_exec_unit()), SMALL, (4, 9)),
    (both().dispatch(DispatchPolicy.round_robin(2)).task_graph(pools=Pools.by_exec_unit()), SMALL, (2, 4)),
    (one().task_graph(pools=Pools.by_exec_unit()), NO_CUBE, (0, 8)),
    (one().task_graph(pools=Pools.custom("b")), SMALL, None),
], ids=["single", "unit", "whole", "shares", "not needed", "custom"])
def test_the_executors_of_an_aicpu(w: Workload, arch: Arch, sizes: tuple[int, ...] | None) -> None:
    rules = rules_of(w, arch)
    assert rules.pool_size == sizes
    assert (TaskField.POOL in rules.columns) is (sizes != (1,))


def test_a_task_is_in_the_pool_of_its_unit_or_of_its_key() -> None:
    assert [print_scalar(task.pool) for task in submits(plan_of(both().task_graph(pools=Pools.by_exec_unit())))] == ["1", "0"]
    assert print_scalar(task_of(one().task_graph(pools=Pools.custom(lambda t: t.b % 2))).pool) == "b % 2"


@pytest.mark.parametrize("w, arch, found", [
    (both().task_graph(pools=Pools.by_exec_unit()), NO_CUBE, "found:    0"),
    (both().dispatch(DispatchPolicy.round_robin(3)).task_graph(pools=Pools.by_exec_unit()),
     UNIT.with_cores(cube=2, vector=9), "found:    2"),
], ids=["none", "no share"])
def test_a_unit_without_a_core_is_refused(w: Workload, arch: Arch, found: str) -> None:
    with pytest.raises(ArchError, match="cube core") as caught:
        plan_of(w, arch)
    assert found in str(caught.value)


# ---- limits and the order of ready tasks ----

@pytest.mark.parametrize("w, field, value", [
    (one().timing(TimingPolicy.batched(3)), "release", (Release.BATCHED, 3, (0, 1))),
    (one().streams(2).timing(TimingPolicy.interleaved(2)), "release", (Release.INTERLEAVED, 2, (0, 1))),
    (one().timing(TimingPolicy.rate_limit(2.5)), "release", (Release.RATE, 0, (400_000, 1))),
    (one().timing(TimingPolicy.rate_limit(3)), "release", (Release.RATE, 0, (1_000_000, 3))),
    (one().timing(TimingPolicy.immediate), "release", (Release.IMMEDIATE, 0, (0, 1))),
    (one(), "window", (8192, WindowUnit.TASKS, FullWindow.STALL)),
    (one().task_graph(window=TaskWindow(64, "bytes", WindowMode.ABORT)), "window", (64, WindowUnit.BYTES, FullWindow.ABORT)),
    (one().task_graph(window=TaskWindow(3, "entries", WindowMode.BENCHMARK)), "window", (3, WindowUnit.ENTRIES, FullWindow.BENCHMARK)),
    (one(), "start", (0,)), (one().task_graph(start=StartPolicy.threshold(5)), "start", (5,)),
    (one().task_graph(start=StartPolicy.after_orchestration()), "start", (None,)),
    (one().task_graph(ready=ReadyPolicy.work_steal()), "ready", (True, False)),
    (one().task_graph(ready=ReadyPolicy.priority("b")), "ready", (False, True)), (one(), "ready", (False, False)),
])
def test_rules(w: Workload, field: str, value: tuple[object, ...]) -> None:
    rules = rules_of(w)
    found: dict[str, tuple[object, ...]] = {
        "release": (rules.release, rules.release_n, rules.release_every), "start": (rules.start_after,),
        "window": (rules.window, rules.window_unit, rules.full_window), "ready": (rules.steals, TaskField.PRIORITY in rules.columns)}
    assert found[field] == value


def test_a_rate_needs_a_clock() -> None:
    with pytest.raises(ArchError, match="no clock") as caught:
        plan_of(one().timing(TimingPolicy.rate_limit(2)), NO_CLOCK)
    assert "clock_ghz" in str(caught.value)


def test_rules_print() -> None:
    w = (one().streams(2).dispatch(DispatchPolicy.work_steal(3)).timing(TimingPolicy.rate_limit(3))
         .task_graph(window=TaskWindow(9, "bytes", WindowMode.ABORT), pools=Pools.by_exec_unit(), start=StartPolicy.threshold(2),
                     ready=ReadyPolicy.work_steal(), deps=Deps.hybrid()))
    assert list(print_rules(rules_of(w, SMALL))) == [
        "3 executors", "each with 1 + 3 cores", "one queue", "idle ones steal", "released every 1000000/3 cycles", "start after 2 tasks",
        "window 9 bytes, abort when full"]


def test_only_what_is_enforced_acts() -> None:
    w = one().dispatch(DispatchPolicy.round_robin(3)).task_graph(deps=Deps.explicit(), window=TaskWindow(5))
    plan = run_passes(lower(w.node), Context(w.schedule, UNIT, enforced=w.schedule.keeping(["task_graph.window.tasks.stall"])), PASSES)
    assert (plan.rules.n_workers, plan.rules.window, plan.infer, plan.structure) == (1, 5, True, False)


# ---- what counts in a window of bytes ----

def test_intermediates_are_kept_and_results_are_not() -> None:
    result, between = Tensor.empty((4, 4), F32), Tensor.empty((4, 4), F32)

    @workload
    def through() -> None:
        for i in P(4):
            scratch = Tensor.empty((1, 4), F32)
            move[i](X[i, 0], scratch)
            move[i](scratch, between[i])
            move[i](between[i], result[i])
    program = through().task_graph(window=TaskWindow(16, "bytes")).compile(target="interp")
    assert [slot.kept for slot in program.plan.tensors] == [True, False, True, False]     # scratch, X, between, result
    tasks = program.run().stats
    assert tasks.window.high_water == 16 and tasks.task_count == 12


def test_bytes_that_move_are_asked_for_where_cores_share_a_memory() -> None:
    narrow = UNIT.with_memory("GM", bandwidth_bytes_per_cycle=8.0)
    (plain,), (shared,) = submits(plan_of(one())), submits(plan_of(one(), narrow))
    assert print_scalar(plain.traffic) == "0" and "X.shape[2]" in print_scalar(shared.traffic)
    assert TaskField.BYTES in rules_of(one(), narrow).columns and rules_of(one(), narrow).bytes_per_cycle == 8.0
