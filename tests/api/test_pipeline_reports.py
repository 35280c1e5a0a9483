"""What a program with a pipeline shows of its last run: stalls by reason, windows of its processes, the graph through its channels."""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp import Channel, Deps, DType, In, Out, P, Program, TaskWindow, Tensor, Tile, WindowMode, consume, kernel, pto, send, workload
from pto_wsp.timing.figures import StallStats

F32 = DType.F32
N = 6


@kernel
def step(x: In[Tile[1, 8, F32]], o: Out[Tile[1, 8, F32]]) -> None:
    """Take as long as every other task here."""
    pto.store(o, x + 1)


def piped(depth: int, window: int, target: str) -> Program:
    """Run N tokens through a channel: one step before it, two behind it."""
    W, X, Y, Z = (Tensor(np.zeros((N, 8), np.float32), name=name) for name in "WXYZ")
    tokens = Channel("tokens", depth)

    @workload
    def give() -> None:
        for k in P.seq(N):
            send(tokens, step[k](W[k], X[k]))

    @workload
    def take() -> None:
        with consume(tokens) as k:
            step[k](X[k], Y[k])
            step[k](Y[k], Z[k])

    @workload
    def pipe() -> None:
        with P.pipe():
            give()
            take()

    program = pipe().task_graph(deps=Deps.hybrid(), window=TaskWindow(window, "tasks", WindowMode.STALL)).compile(target=target)
    program.run()
    assert (Z.data == 3).all()
    return program


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target", ["cpu_sim", "interp"])
@pytest.mark.parametrize("window", [1, 64])
def test_stalls_tell_who_waited_for_the_channel(target: str, window: int) -> None:
    """By hand, in steps: tokens are there at 1, 2 .. 6 and taken at 1, 3 .. 11. Send 5 stands from 6 to 7, when token 3 is taken; the sends
    before it find a slot when their task is done. The taker stands for token 0 alone; then it works until each next one."""
    stats = piped(2, window, target).stats
    cycles = stats.total_cycles // 13
    assert stats.total_cycles == 13 * cycles and stats.task_count == 3 * N and stats.critical_path == 13 * cycles
    assert stats.stalls == (StallStats("CHANNEL_EMPTY_WAIT", 1, cycles), StallStats("CHANNEL_FULL_WAIT", 1, cycles))
    assert [executor.tasks for executor in stats.executors] == [N, 2 * N]


@pytest.mark.parametrize("target", ["cpu_sim", "interp"])
def test_each_process_has_a_window(target: str) -> None:
    """One slot each: 12 tasks of the taker, of which all but the first of a token wait for the one before."""
    window = piped(2, 1, target).stats.window
    assert window.high_water == 1 and window.stalls >= N


@pytest.mark.parametrize("target", ["cpu_sim", "interp"])
def test_the_graph_goes_through_the_channel(target: str) -> None:
    """The first task of a token waits for the task that was sent; a task sent after a full channel waits for what its slot waited for."""
    program = piped(2, 64, target)
    made, used = ([k for k, executor in enumerate(program.trace.executor) if executor == process] for process in (0, 1))
    reasons = {(edge.source, edge.target): edge.reasons for edge in program.graph.edges}
    assert all({"RAW", "channel"} <= {*reasons[made[k], used[2 * k]]} for k in range(N))
    assert "channel" in reasons[used[3], made[5]]      # send 4 waited for token 2, which was taken after the tasks of token 1
    assert len(reasons) == 4 * N       # and not what these wait for in turn, a channel after the other
