"""Schedules drawn at random, frozen: every task starts again when it did, whatever held it until then."""

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
    Pools,
    Program,
    PtoError,
    ReadyPolicy,
    Scalar,
    StartPolicy,
    TaskWindow,
    Tensor,
    Tile,
    TimingPolicy,
    TracePolicy,
    Workload,
    kernel,
    pto,
    workload,
)
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.run.simulator import LastWait

F32, N = DType.F32, 6
A, B, C = (Tensor(np.zeros((N, 4), np.float32), name=name) for name in "ABC")
ARCHS = (builtin_arch("unit").with_aicpu(count=16, submit_cycles=2, dispatch_cycles=5, retire_cycles=3), builtin_arch("ascend_910b"))


@kernel
def more(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]], n: Scalar[DType.I64]) -> None:
    for _ in pto.range(n):
        pto.store(y, x + 1.0)


@kernel
def add(x: In[Tile[1, 4, F32]], y: InOut[Tile[1, 4, F32]]) -> None:
    pto.store(y, y + x)


@workload
def two_steps() -> None:
    for i in P(N):
        more[i](x=A[i], y=B[i], n=i % 3 + 1)
    for i in P.seq(N):
        add[i](x=B[i], y=C[i // 2])


W = two_steps().task_graph(deps=Deps.infer_bytes_overlap())


@pytest.fixture(scope="module")
def program() -> Program:
    return W.compile(target="interp").run()


def drawn(rng: random.Random) -> Workload:
    """Return the workload under a schedule.

    Raises: S105 for directives that contradict each other.
    """
    n = rng.randint(1, 4)
    w = rng.choice((lambda: W, lambda: W.dispatch(DispatchPolicy.round_robin(n)), lambda: W.dispatch(DispatchPolicy.work_steal(n)),
                    lambda: W.dispatch(DispatchPolicy.affinity("i", n)), lambda: W.dispatch(DispatchPolicy.hash("i", n))))()
    w = w.streams(rng.randint(1, 4)) if rng.random() < 0.5 else w
    w = w.stream_by(lambda t: t.i * 5 % 3) if rng.random() < 0.4 else w
    timing = rng.choice((None, TimingPolicy.batched(rng.randint(1, 7)), TimingPolicy.rate_limit(rng.choice((2e5, 1e6, 5e7))),
                         TimingPolicy.interleaved(rng.randint(1, 3))))
    w = w if timing is None else w.timing(timing)
    start = StartPolicy.after_orchestration() if rng.random() < 0.5 else StartPolicy.threshold(rng.randint(1, 8))
    for said in ({"window": TaskWindow(rng.randint(1, 9))}, {"ready": ReadyPolicy.work_steal()}, {"start": start},
                 {"ready": ReadyPolicy.priority(lambda t: t.i % 3)}, {"trace": TracePolicy.cycles(lambda t: t.i * 7 % 4)},
                 {"pools": Pools.custom(lambda t: t.i % 2)}, {"pools": Pools.by_exec_unit()}):
        w = w.task_graph(**said) if rng.random() < 0.3 else w  # type: ignore[arg-type]
    return w


def check(program: Program, seeds: range) -> None:
    """Raise AssertionError where a frozen schedule starts a task at another time, or where the starts were never what held one."""
    held: set[str] = set()
    for seed in seeds:
        rng = random.Random(seed)
        overheads, arch = rng.random() < 0.5, rng.choice(ARCHS)
        try:
            found = program.simulate(drawn(rng), arch, overheads=overheads)
        except PtoError as error:
            assert error.code in ("S105", "C110"), error       # what contradicts, and more AICPUs than there are
            continue
        again = program.simulate(found.freeze(), arch, overheads=overheads)
        assert again.trace.start.tolist() == found.trace.start.tolist(), (seed, found.schedule)
        assert again.trace.executor.tolist() == found.trace.executor.tolist(), (seed, found.schedule)
        pools = found.schedule.task_graph.pools if found.schedule.task_graph is not None else None
        shares = overheads and pools is not None and pools.kind != "single"       # an AICPU that retires for several executors
        assert again.total_cycles == found.total_cycles or (shares and again.total_cycles < found.total_cycles), (seed, found.schedule)
        assert again.timed.sim.tasks is not None
        held |= {LastWait(number).name for number in again.timed.sim.tasks.held.tolist()}
    assert {"CALENDAR", "EDGE", "NOT"} <= held


@pytest.mark.slow
def test_many_frozen_schedules_do(program: Program) -> None:
    check(program, range(1_000, 1_120))
