"""What simulating a run again takes: counted, not timed, but for one ratio. Columns are enough, so no kernel runs and no task is walked."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable

import numpy as np
import pytest

from pto_wsp import (
    Deps,
    DispatchPolicy,
    DType,
    Out,
    P,
    Pools,
    Program,
    ReadyPolicy,
    Scalar,
    StartPolicy,
    Symbol,
    TaskWindow,
    Tensor,
    Tile,
    TimingPolicy,
    TracePolicy,
    Workload,
    builtin_arch,
    kernel,
    pto,
    workload,
)
from pto_wsp.timing.stats import Stats

I64 = DType.I64
FEW, MANY = 100, 1000
Y = Tensor(np.zeros((8, 1), np.int64), name="Y")
BUSY = builtin_arch("unit").with_aicpu(submit_cycles=1, dispatch_cycles=3, retire_cycles=2)


@kernel
def fill(n: Scalar[I64], y: Out[Tile[1, 1, I64]]) -> None:
    pto.store(y, pto.full((1, 1), n, I64))


@workload
def main() -> None:
    for k in P(Symbol("n")):
        fill[k](k, Tensor.empty((1, 1), I64))
    fill[0](7, Y[0])


W = main()
SCHEDULES: dict[str, Workload] = {
    "as it is": W,
    "edges from data": W.task_graph(),
    "edges from structure": W.task_graph(deps=Deps.explicit()),
    "affinity": W.dispatch(DispatchPolicy.affinity(lambda t: t.params[0] // 3, 4)).task_graph(window=TaskWindow(64, "bytes")),
    "streams": W.streams(3).timing(TimingPolicy.interleaved(2)),
    "pools, priorities, costs": W.dispatch(DispatchPolicy.work_steal(2)).timing(TimingPolicy.batched(4)).task_graph(
        pools=Pools.custom(lambda t: t.params[0] % 5), ready=ReadyPolicy.priority(lambda t: t.params[0] % 7),
        start=StartPolicy.threshold(3), trace=TracePolicy.cycles(lambda t: t.params[0] % 9 + 1)),
}


@pytest.fixture(scope="module")
def program() -> Program:
    return W.compile()


def calls(work: Callable[[], object]) -> int:
    """Return how many functions are called, those in C that Python calls included."""
    n = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal n
        n += event in ("call", "c_call")

    gc.disable()      # finalizers and what others have hung onto the collector are no work of ours
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return n


@pytest.mark.parametrize("overheads", [False, True])
@pytest.mark.parametrize("name", SCHEDULES)
def test_no_task_is_walked_and_no_kernel_runs(program: Program, name: str, overheads: bool) -> None:
    taken: list[int] = []

    def simulate() -> Stats:
        return program.simulate(SCHEDULES[name], BUSY, overheads=overheads).stats

    for n in (FEW, MANY):
        program.run(n=n)
        Y.data[:] = -1
        assert simulate().task_count == n + 1
        taken.append(calls(simulate))
        assert (Y.data == -1).all()
    assert taken[1] <= taken[0] + 40, taken      # a sort may take more calls for more


def test_many_pools_of_a_slow_aicpu_take_no_longer_than_few() -> None:
    """Each of two thousand pools has a ready task and an idle executor: looking through all of them a task would take 50 times as long."""
    program = W.compile().run(n=8000)
    one = DispatchPolicy.round_robin(1)

    def shortest(n_pools: int) -> float:
        wanted = W.dispatch(one).task_graph(deps=Deps.infer_bytes_overlap(), pools=Pools.custom(lambda t: t.params[0] % n_pools),
                                            trace=TracePolicy.cycles(lambda t: t.params[0] * 0 + 20000))
        times = []
        for _ in range(3):
            begun = time.process_time()
            assert program.simulate(wanted, BUSY, overheads=True).stats.task_count == 8001
            times.append(time.process_time() - begun)
        return min(times)

    assert shortest(4000) < 8 * shortest(32)
