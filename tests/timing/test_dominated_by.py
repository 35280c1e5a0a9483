"""What `stats.dominated_by` says, held against the chain of causes and against the executors of each pool, under random schedules."""

from __future__ import annotations

import random

import numpy as np
import pytest

from pto_wsp import (
    DispatchPolicy,
    DType,
    In,
    InOut,
    Out,
    P,
    Pools,
    Program,
    StartPolicy,
    TaskWindow,
    Tensor,
    Tile,
    TimingPolicy,
    builtin_arch,
    kernel,
    pto,
    workload,
)
from pto_wsp.schedule.schedule import Scheduled
from pto_wsp.timing.stats import Stats
from pto_wsp.timing.timed_run import TimedRun

F32 = DType.F32
N = 8
ASCEND = builtin_arch("ascend_910b").with_clock(1.0)

# the verdict's first words, by the kind that has the most cycles of the chain
OF_KIND = {
    "task": ("the critical path", "memory", "work", "imbalance", "waiting", "lateness", "the window"), "edge": ("latency",),
    "executor": ("lateness",),
    "window": ("the window",), "mark": ("marks", "reads", "events", "empty channels", "full channels"), "release": ("timing",),
    "start": ("the start policy",), "submit": ("submission",), "dispatch": ("dispatch",), "retire": ("dispatch",),
}


@kernel
def product(a: In[Tile[64, 64, F32]], c: Out[Tile[64, 64, F32]]) -> None:
    pto.store(c, a @ a)


@kernel
def add(a: In[Tile[64, 64, F32]], c: InOut[Tile[64, 64, F32]]) -> None:
    pto.store(c, c + a)


def random_program(draw: random.Random) -> tuple[object, int]:
    """Return a workload of cube and vector tasks, some in a row."""
    a, c, d = (Tensor(np.zeros((n * 64, 64), np.float32)) for n in (1, N, N))
    n_cube, n_vector, n_rows = draw.randrange(1, N), draw.randrange(1, N), draw.choice((1, 2, 8))

    @workload
    def mixed() -> None:
        for i in P(n_cube):
            product[i](a, c[64 * i:64 * i + 64])
        for i in P(n_vector):
            for _ in P.seq(n_rows):
                add[i](a, d[64 * i:64 * i + 64])

    return mixed(), n_cube + n_vector * n_rows


def random_schedule(draw: random.Random, whole: object) -> Scheduled:
    policies = (DispatchPolicy.round_robin(4), DispatchPolicy.work_steal(4), DispatchPolicy.round_robin(1), DispatchPolicy.round_robin(6))
    found: Scheduled = whole.dispatch(draw.choice(policies))  # type: ignore[attr-defined]
    found = found.task_graph(window=TaskWindow(draw.choice((4, 16, 4096))), pools=draw.choice((Pools.single(), Pools.by_exec_unit())),
                             start=draw.choice((StartPolicy(), StartPolicy.threshold(3))))
    at_once = TimingPolicy.immediate
    return found.timing(draw.choice((at_once, at_once, TimingPolicy.batched(4), TimingPolicy.rate_limit(1000))))


def check(stats: Stats, timed: TimedRun | Program) -> str:
    """Raise AssertionError where the verdict says something else than the chain and the executors do; return its first words."""
    verdict = stats.dominated_by
    cycles = timed.explain().chain().cycles  # type: ignore[union-attr]
    most = max(cycles.values())
    kinds = [kind for kind, found in cycles.items() if found == most]
    assert any(verdict.startswith(OF_KIND[kind]) for kind in kinds), (verdict, cycles)
    busiest = max(stats.executors, key=lambda executor: executor.busy)
    mine = [executor.busy for executor in stats.executors if executor.pool == busiest.pool]
    if verdict.startswith("imbalance"):
        assert max(mine) * len(mine) >= 1.05 * sum(mine), (verdict, mine)
    if verdict.startswith("work, spread evenly"):
        assert max(mine) * len(mine) < 1.05 * sum(mine), (verdict, mine)
    if verdict.startswith("the window") and "window" not in kinds:      # tasks of the chain ran when it had room
        assert stats.window.stall_cycles > 0.5 * stats.total_cycles
    if verdict.startswith("waiting"):
        assert sum(executor.waiting for executor in stats.executors) > 0
    return verdict.partition(":")[0].partition(",")[0]


@pytest.mark.parametrize("first", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 5))])
def test_the_verdict_is_the_largest_share_of_the_chain(first: int) -> None:
    said: dict[str, int] = {}
    for seed in range(100 * first, 100 * first + 3):
        draw = random.Random(seed)
        whole, n_tasks = random_program(draw)
        program = whole.compile(target="interp").run()  # type: ignore[attr-defined]
        for _ in range(6):
            arch, overheads = draw.choice((("unit", None), (ASCEND, True), (ASCEND, False)))
            simulated = program.simulate(random_schedule(draw, whole), arch, overheads=overheads)
            assert simulated.stats.task_count == n_tasks
            words = check(simulated.stats, simulated)
            said[words] = said.get(words, 0) + 1
    assert len(said) >= 4, said


def test_a_pool_that_is_busy_all_the_time_is_not_told_to_be_out_of_balance() -> None:
    """24 cube cores with 240 products, and one addition on 48 vector cores."""
    a, c, d = (Tensor(np.zeros((n * 64, 64), np.float32)) for n in (1, 240, 1))

    @workload
    def pools() -> None:
        for i in P(240):
            product[i](a, c[64 * i:64 * i + 64])
        add(a, d)

    found = pools().dispatch(DispatchPolicy.work_steal(6)).task_graph(pools=Pools.by_exec_unit()).compile(
        target="interp", arch="ascend_910b").run().stats
    assert found.gap == 0.0 and found.dominated_by == "work, spread evenly: only more executors of pool 0 would help"


@pytest.mark.parametrize("overheads, verdict", [(False, "work, spread evenly"), (True, "submission")])
def test_what_holds_the_last_task_is_named_though_no_executor_waits(overheads: bool, verdict: str) -> None:
    a, c = (Tensor(np.zeros((n * 64, 64), np.float32)) for n in (1, 144))

    @workload
    def cubes() -> None:
        for i in P(144):
            product[i](a, c[64 * i:64 * i + 64])

    found = cubes().dispatch(DispatchPolicy.round_robin(6)).task_graph(pools=Pools.by_exec_unit()).compile(
        target="interp", arch="ascend_910b", overheads=overheads).run().stats
    assert sum(executor.waiting for executor in found.executors) == 0 and found.dominated_by.startswith(verdict)
