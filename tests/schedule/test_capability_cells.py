"""Each directive on the host: what it does to the simulated run, worked out by hand, in both targets alike."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pto_wsp import (
    DispatchPolicy,
    DType,
    Out,
    P,
    Program,
    Scalar,
    Symbol,
    Tensor,
    Tile,
    TracePolicy,
    Workload,
    kernel,
    pto,
    workload,
)
from pto_wsp.errors import KeyRangeError

I64 = DType.I64
Y = Tensor(np.zeros((8, 1), np.int64), name="Y")


@kernel
def fill(n: Scalar[I64], y: Out[Tile[1, 1, I64]]) -> None:
    pto.store(y, pto.full((1, 1), n, I64))


@workload
def eight() -> None:
    """Eight tasks that share nothing, k = 0 … 7."""
    for k in P(8):
        fill[k](k, Y[k])


COST = TracePolicy.cycles(lambda t: t.k + 1)     # 1 … 8 cycles: 36 in all


def costed(w: Workload) -> Workload:
    """Return the workload with tasks of 1 … 8 cycles, without the order of the program."""
    return w.task_graph(trace=COST)


# Each: the schedule, the makespan.
CELLS: dict[str, tuple[Callable[[], Workload], int]] = {
    "trace.cycles": (lambda: costed(eight()), 36),
    # k = 0 2 4 6 and 1 3 5 7: 1 + 3 + 5 + 7 and 2 + 4 + 6 + 8
    "round_robin": (lambda: costed(eight()).dispatch(DispatchPolicy.round_robin(2)), 20),
    "affinity": (lambda: costed(eight()).dispatch(DispatchPolicy.affinity(lambda t: t.k // 6, 2)), 21),
    # stream k on executor k: k mod 3 = 0 has 1 + 4 + 7, 1 has 2 + 5 + 8, 2 has 3 + 6
    "streams": (lambda: costed(eight()).streams(3), 15),
    # one executor all the same
    "stream_by": (lambda: costed(eight()).stream_by(lambda t: t.k // 4), 36),
    # streams 0 … 3 of two tasks each on two executors: those of a stream one after another
    "streams and stream_by": (lambda: costed(eight()).streams(2).stream_by(lambda t: t.k // 2), 22),     # 1+2+5+6 and 3+4+7+8
    # with dispatch, a stream only adds order: all in one stream is one after another on 8 executors
    "stream_by and dispatch": (lambda: costed(eight()).stream_by(lambda t: 0).dispatch(DispatchPolicy.round_robin(8)), 36),
    "symbol": (lambda: costed(eight()).streams(2).stream_by(lambda t: t.k // Symbol("n")), 26),     # n = 4: 10 and 26
}


def program(name: str, target: str) -> Program:
    """Return a cell's program after a run."""
    return CELLS[name][0]().compile(target=target).run(**({"n": 4} if name == "symbol" else {}))


@pytest.mark.parametrize("name", CELLS)
def test_the_makespan_is_that_worked_out_by_hand(name: str) -> None:
    assert program(name, "interp").stats.total_cycles == CELLS[name][1]


@pytest.mark.parametrize("name", ["streams", "stream_by and dispatch", "symbol"])
def test_generated_code_says_the_same(name: str) -> None:
    Y.data[:] = 0
    found = program(name, "cpu_sim")
    assert found.stats.total_cycles == CELLS[name][1]
    assert Y.data[:, 0].tolist() == list(range(8))


def test_a_stream_below_zero_ends_the_run_before_anything_is_touched() -> None:
    Y.data[:] = -1
    for target in ("interp", "cpu_sim"):
        built = eight().stream_by(lambda t: t.k - Symbol("n")).compile(target=target)
        with pytest.raises(KeyRangeError, match=r"stream_by: k - n") as caught:
            built.run(n=3)
        assert "k - n = -3" in str(caught.value) and set(Y.data[:, 0]) == {-1}
        assert built.run(n=0).stats.task_count == 8
        Y.data[:] = -1


def test_a_cost_below_zero_is_found_when_compiling() -> None:
    with pytest.raises(KeyRangeError, match=r"TracePolicy\.cycles: -k \+ 3") as caught:
        eight().task_graph(trace=TracePolicy.cycles(lambda t: 3 - t.k)).compile(target="interp")
    assert "where k = 7" in str(caught.value) and "-4" in str(caught.value)
