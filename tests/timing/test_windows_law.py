"""Laws of several windows at once, on drawn programs and drawn windows of every unit."""

from __future__ import annotations

import random

import numpy as np
import pytest

from pto_wsp import (
    Deps,
    DispatchPolicy,
    DType,
    In,
    InOut,
    Out,
    P,
    Program,
    PtoError,
    ReadyPolicy,
    StartPolicy,
    TaskWindow,
    Tensor,
    Tile,
    TimingPolicy,
    TracePolicy,
    WindowMode,
    Workload,
    kernel,
    pto,
    workload,
)
from pto_wsp.run.simulator import WAITS_FOR_ROOM, LastWait
from pto_wsp.schedule.directives import Affinity

I64 = DType.I64
N = 24
LARGEST_NEED = {"tasks": 1, "bytes": 8, "entries": 3, "edges": 4, "ready": 1}
TABLE = Tensor(np.random.default_rng(7).integers(0, 6, (N, 2)), name="table")
Z = Tensor(np.zeros((6, 1), np.int64), name="Z")


@kernel
def step(x: In[Tile[1, 1, I64]], y: InOut[Tile[1, 1, I64]]) -> None:
    pto.store(y, x + y + 1)


@kernel
def twice(x: In[Tile[1, 1, I64]], y: Out[Tile[1, 1, I64]]) -> None:
    pto.store(y, x * 2)


@workload
def mixed() -> None:
    """Tasks that read and write elements picked by a table, half of them through a tensor of their own."""
    for k in P(N):
        own = Tensor.empty((1, 1), I64)
        twice[k](x=Z[TABLE[k, 0]], y=own)
        step[k](x=own, y=Z[TABLE[k, 1]])


UNITS = ("tasks", "bytes", "entries", "edges", "ready")


def in_turns(n: int) -> Affinity:
    """Return the dispatch of six rounds of the loop to one home, then six to the next: others have nothing to do meanwhile."""
    return DispatchPolicy.affinity(lambda t: t.k // 6, n)


def drawn(rng: random.Random) -> Workload:
    """Return the workload under a schedule without windows."""
    w = mixed().task_graph(deps=Deps.infer_bytes_overlap(), trace=TracePolicy.cycles(lambda t: (t.k * 7 + 3) % 5))
    w = w.dispatch(rng.choice((DispatchPolicy.round_robin, DispatchPolicy.work_steal, in_turns))(rng.randint(1, 4)))
    w = w.task_graph(start=rng.choice((StartPolicy(), StartPolicy.after_orchestration(), StartPolicy.threshold(9))))
    w = w.timing(TimingPolicy.batched(rng.randint(2, 6))) if rng.random() < 0.3 else w
    return w.task_graph(ready=ReadyPolicy.priority(lambda t: t.k % 3)) if rng.random() < 0.3 else w


def windows(rng: random.Random, mode: WindowMode = WindowMode.STALL) -> tuple[TaskWindow, ...]:
    """Return windows of several units, in any order; a task alone finds room in each of them."""
    units = rng.sample(UNITS, rng.randint(1, len(UNITS)))
    return tuple(TaskWindow(LARGEST_NEED[unit] + rng.randint(0, 9), unit, mode) for unit in units)     # type: ignore[arg-type]


def run(w: Workload, target: str) -> tuple[Program, list[int]]:
    """Return the program after a run, and what it computed."""
    Z.data[:] = np.arange(6)[:, None]
    return w.compile(target=target).run(), Z.data[:, 0].tolist()


def submissions(program: Program) -> list[int]:
    causes = program.trace.causes
    assert causes is not None
    return [int(time) for time in causes.submit]


EXPECTED = run(mixed(), "interp")[1]


@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(60, 132), marks=pytest.mark.slow)], ids=["a few", "many"])
def test_windows_stall_by_reason_and_change_no_result(seeds: range) -> None:
    seen: set[str] = set()
    delays: set[str] = set()
    for seed in seeds:
        rng = random.Random(seed)
        w = drawn(rng)
        bounded = w.task_graph(window=windows(rng))
        program, found = run(bounded, "interp")
        assert found == EXPECTED, seed
        # one stream, which submits in no time: it has stood still as long as the last submission is late
        assert sum(window.stall_cycles for window in program.stats.windows) == submissions(program)[-1], seed
        assert all(window.high_water <= window.size or window.unit.name == "READY" for window in program.stats.windows), seed
        seen |= {resource.name for resource in program.stats.resources if resource.stalls}
        chain = program.explain().chain()
        ends = [step.end for step in chain]
        assert [step.begin for step in chain] == [0, *ends[:-1]] and ends[-1] == program.stats.total_cycles, (seed, str(chain))
        assert program.trace.causes is not None
        delays |= set(program.trace.causes.held)
        again = program.simulate(w).simulate(bounded)
        assert (again.stats.windows, list(again.trace)) == (program.stats.windows, list(program.trace)), seed
        frozen = program.simulate(program.freeze())
        assert frozen.trace.start.tolist() == program.trace.start.tolist(), seed
    if len(seeds) > 8:
        assert delays >= {held.name.lower() for held in WAITS_FOR_ROOM if held is not LastWait.READY}, delays    # edges come after it here
        assert seen == {"TASK_RING_FULL", "HEAP_ARENA_FULL", "TENSORMAP_POOL_FULL", "DEPLIST_POOL_FULL", "READY_QUEUE_FULL"}
    assert len(seen) > 2


def test_a_task_that_a_full_ready_queue_kept_says_so() -> None:
    Y = Tensor(np.zeros((4, 1), np.int64), name="Y")

    @kernel
    def fill(y: Out[Tile[1, 1, I64]]) -> None:
        pto.store(y, pto.full((1, 1), 1, I64))

    @workload
    def four() -> None:
        for k in P(4):
            fill[k](y=Y[k])

    # tasks 0, 1, 2 at home 0, 3 at home 1: 2 is not submitted before 1 is taken at 10, nor 3 before 2 is at 20
    w = four().dispatch(DispatchPolicy.affinity(lambda t: t.k // 3, 2))
    program = w.task_graph(window=TaskWindow(1, "ready"), trace=TracePolicy.cycles(lambda t: 10)).compile(target="interp").run()
    assert program.trace.start.tolist() == [0, 10, 20, 20] and submissions(program) == [0, 0, 10, 20]
    text = str(program.explain(3))
    assert "delayed by the window of 1 ready task, in which 2 fill[k=2] made room when an executor took it at 20" in text, text
    assert [(step.begin, step.end, step.task) for step in program.explain(3).chain()] == [(0, 10, 0), (10, 20, 1), (20, 30, 3)]
    assert [(resource.name, resource.size, resource.stalls, resource.cycles) for resource in program.stats.resources if resource.size] == [
        ("READY_QUEUE_FULL", "1 ready task", 2, 20)]


@pytest.mark.slow
def test_windows_that_are_large_enough_never_stall() -> None:
    for seed in range(6):
        rng = random.Random(seed)
        w = drawn(rng)
        free, wide = run(w, "interp")[0], run(w.task_graph(window=tuple(TaskWindow(1 << 20, unit) for unit in UNITS)), "interp")[0]
        assert wide.trace.start.tolist() == free.trace.start.tolist()
        assert [window.stalls for window in wide.stats.windows] == [0] * 5
        counted = run(w.task_graph(window=windows(rng, WindowMode.BENCHMARK)), "interp")[0]
        assert counted.trace.start.tolist() == free.trace.start.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_targets_agree(seed: int) -> None:
    rng = random.Random(seed)
    bounded = drawn(rng).task_graph(window=windows(rng))
    (program, found), (other, expected) = run(bounded, "cpu_sim"), run(bounded, "interp")
    assert found == expected == EXPECTED
    assert program.stats.windows == other.stats.windows and program.trace.start.tolist() == other.trace.start.tolist()
    assert program.trace.causes is not None and other.trace.causes is not None
    assert program.trace.causes.held == other.trace.causes.held


@pytest.mark.parametrize("unit", ["bytes", "entries", "edges"])
def test_too_small_a_window_is_refused_beside_others(unit: str) -> None:
    room = tuple(TaskWindow(1 << 20, other) for other in UNITS if other != unit)     # type: ignore[arg-type]
    with pytest.raises(PtoError) as caught:
        # a tensor of 8 bytes, 2 arguments, up to 3 edges
        run(mixed().task_graph(window=(*room, TaskWindow(1, unit))), "interp")[0].stats     # type: ignore[arg-type] # noqa: B018
    assert caught.value.code == "R106"
