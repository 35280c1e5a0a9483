"""What `stats.dominated_by` says, held against the chain of causes and against the executors of each pool, under random schedules."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

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
    Ring,
    StartPolicy,
    TaskWindow,
    Tensor,
    Tile,
    TimingPolicy,
    TracePolicy,
    Workload,
    builtin_arch,
    consume,
    kernel,
    produce,
    pto,
    workload,
)
from pto_wsp.schedule.schedule import Scheduled
from pto_wsp.timing.stats import Stats
from pto_wsp.timing.timed_run import TimedRun
from pto_wsp.timing.verdict import KIND_OF_CAUSE, KINDS

F32 = DType.F32
N = 8
ASCEND = builtin_arch("ascend_910b").with_clock(1.0)

# what a verdict may be, by the largest share of the chain of causes
OF_CAUSE = {"executor": ("work", "cores", "imbalance", "lateness"), "edge": ("critical path", "waiting")}
AT_BOUND = ("critical path", "work", "cores", "memory", "submission", "dispatch", "empty channels", "full channels")


@kernel
def product(a: In[Tile[64, 64, F32]], c: Out[Tile[64, 64, F32]]) -> None:
    pto.store(c, a @ a)


@kernel
def add(a: In[Tile[64, 64, F32]], c: InOut[Tile[64, 64, F32]]) -> None:
    pto.store(c, c + a)


@kernel
def move(a: In[Tile[64, 64, F32]], c: Out[Tile[64, 64, F32]]) -> None:
    pto.store(c, a)


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
    """Raise AssertionError where the verdict says something else than the chain and the executors do; return its kind."""
    verdict, chain = stats.verdict, timed.explain().chain()  # type: ignore[union-attr]
    causes = chain.causes
    assert sum(causes.values()) == sum(chain.cycles.values()) == stats.total_cycles
    assert stats.dominated_by == verdict.text and verdict.kind in KINDS and verdict.helps
    if stats.total_cycles == stats.lower_bound:
        assert verdict.kind in AT_BOUND, (verdict, causes)
    else:
        largest = [cause for cause, cycles in causes.items() if cycles == max(causes.values())]
        allowed = {kind for cause in largest for kind in OF_CAUSE.get(cause) or (KIND_OF_CAUSE[cause],)}
        assert verdict.kind in allowed or verdict.kind == "memory", (verdict, causes)
        assert verdict.cycles == causes.get("memory" if verdict.kind == "memory" else largest[0])
    if not chain.cycles.keys() - {"task"} and not stats.stalls:      # tasks alone: each one's cycles are put down to what held the next one
        by_hand: Counter[str] = Counter()
        for one, following in pairwise(chain):
            by_hand[following.held] += one.end - one.begin
        by_hand[chain.steps[-1].held if len(chain) > 1 else "task"] += chain.steps[-1].end - chain.steps[-1].begin
        assert dict(by_hand) == causes or "memory" in causes
    if verdict.kind in ("imbalance", "lateness") or "evenly" in verdict.text:
        busy = [one.busy for one in stats.executors if one.pool == verdict.pool]
        assert (max(busy) * len(busy) >= 1.05 * sum(busy)) == (verdict.kind == "imbalance"), (verdict, busy)
    if verdict.kind == "cores":
        assert stats.cores_used < stats.n_cores
    return verdict.kind


@pytest.mark.parametrize("first", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 5))])
def test_the_verdict_is_the_largest_share_of_the_chain(first: int) -> None:
    said: set[str] = set()
    for seed in range(100 * first, 100 * first + 3):
        draw = random.Random(seed)
        whole, n_tasks = random_program(draw)
        program = whole.compile(target="interp").run()  # type: ignore[attr-defined]
        for _ in range(6):
            arch, overheads = draw.choice((("unit", None), (ASCEND, True), (ASCEND, False)))
            simulated = program.simulate(random_schedule(draw, whole), arch, overheads=overheads)
            assert simulated.stats.task_count == n_tasks
            said.add(check(simulated.stats, simulated))
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


def rows_of_adds(n_tasks: int, n_rows: int = 1) -> Workload:
    a, d = (Tensor(np.zeros((n * 64, 64), np.float32)) for n in (1, n_tasks))

    @workload
    def rows() -> None:
        for i in P(n_tasks):
            for _ in P.seq(n_rows):
                add[i](a, d[64 * i:64 * i + 64])

    return rows()


def test_a_small_window_is_named_though_executors_are_out_of_balance() -> None:
    found = rows_of_adds(46).dispatch(DispatchPolicy.round_robin(8)).task_graph(window=TaskWindow(4)).compile(target="interp").run()
    assert found.stats.window.stalls == 11 and found.stats.verdict.kind == "window"
    assert found.explain().chain().causes == {"window": found.stats.total_cycles} and found.stats.verdict.cycles == found.stats.total_cycles


def test_cores_that_nothing_runs_on_come_first() -> None:
    stats = rows_of_adds(9).dispatch(DispatchPolicy.round_robin(1)).compile(target="interp", arch="ascend_910b").run().stats
    assert stats.dominated_by == "few cores: the work is on 1 of 72 cores; more executors would help"
    assert str(stats).startswith("1 of 72 cores used")


def test_one_task_that_is_longer_than_all_before_it() -> None:
    """Two tasks of 10,000,000 cycles, the second one released a millisecond after the first: 1,000,000 cycles of a GHz."""
    late = rows_of_adds(2).task_graph(trace=TracePolicy.cycles(lambda t: 10_000_000)).timing(TimingPolicy.rate_limit(1))
    found = late.dispatch(DispatchPolicy.round_robin(2)).compile(target="interp", arch=ASCEND).run()
    assert found.explain().chain().causes == {"task": 10_000_000, "release": 1_000_000}
    assert found.stats.dominated_by == "one task: the last one alone takes 91% of the time"


def test_memory_is_named_where_tasks_of_the_chain_take_longer_for_others() -> None:
    memory = ASCEND.with_memory("GM", bandwidth_bytes_per_cycle=64.0)
    found = rows_of_adds(48).dispatch(DispatchPolicy.round_robin(6)).task_graph(pools=Pools.by_exec_unit()).compile(
        target="interp", arch=memory).run().stats
    assert found.memory_cycles and found.verdict.kind == "memory"


@pytest.mark.parametrize("slots, kind", [(1, "empty channels"), (2, "critical path")])
def test_a_ring_with_too_few_slots(slots: int, kind: str) -> None:
    """With one slot a buffer is filled when the one before has been read; with two the longer process is all that is waited for."""
    a, c = (Tensor(np.zeros((8 * 64, 64), np.float32)) for _ in range(2))
    buffers = Ring((64, 64), F32, slots=slots, name="buffers")

    @workload
    def pipe() -> None:
        with P.pipe():
            for k in P.seq(8):
                with produce(buffers, k) as tile:
                    move[k](a[64 * k:64 * k + 64], tile)
            with consume(buffers) as (tile, k):
                move[k](tile, c[64 * k:64 * k + 64])

    found = pipe().compile(target="interp").run()
    check(found.stats, found)
    assert found.stats.verdict.kind == kind
