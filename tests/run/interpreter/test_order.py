"""The order in which the interpreter runs a pipeline: drawn by a seed, allowed by tokens and structure, the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from pto_wsp import Channel, Deps, DType, In, Out, P, Program, PtoError, Scalar, Tensor, Tile, consume, kernel, pto, send, workload
from pto_wsp.run.interpreter import OrderRules, drawn_order, stream_of
from pto_wsp.run.orchestrator import MarkInstance, TaskInstance

F32 = DType.F32
N = 6
X, T, Y = (Tensor(np.arange(4.0 * N, dtype=np.float32).reshape(N, 4), name=name) for name in "XTY")


@kernel
def say(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]], who: Scalar[DType.I32]):
    pto.print("who", who)
    pto.store(y, x + 1)


@kernel
def root(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]):
    pto.store(y, pto.sqrt(x))


def pipe(depth: int = 2, middle: bool = False) -> Callable[[], object]:
    tiles = Channel("tiles", depth)

    @workload
    def two() -> None:
        for i in P.seq(2):
            say[i](X[i:i + 1], Y[i:i + 1], who=-1)
        with P.pipe():
            for i in P.seq(N):
                send(tiles, say[i](X[i:i + 1], T[i:i + 1], who=i))
            with consume(tiles) as i:
                if middle:
                    M = Tensor.empty((1, 4), F32)
                    say[i](T[i:i + 1], M, who=20 + i)
                    say[i](M, Y[i:i + 1], who=10 + i)
                else:
                    say[i](T[i:i + 1], Y[i:i + 1], who=10 + i)
        for i in P.seq(2):
            say[i](Y[i:i + 1], X[i:i + 1], who=-2)
    return two


def executed(program: Program, monkeypatch: pytest.MonkeyPatch, seed: int) -> list[int]:
    """Return the numbers that tasks carry in the order in which they run."""
    order: list[int] = []
    runner = program.compiled.runner
    original = runner.run_task

    def note(number: int, task: TaskInstance, *rest: object) -> None:
        order.append(int(task.scalars[0]))
        original(number, task, *rest)
    monkeypatch.setattr(runner, "run_task", note)
    X.data[:] = 1
    if seed:
        program.replay(seed)
    else:
        program.run()
    monkeypatch.undo()
    return order


def test_a_seed_gives_an_order_that_tokens_allow(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    program = pipe()().compile(target="interp")
    orders = [executed(program, monkeypatch, seed) for seed in (0, 1, 2, 3, 4, 5)]
    printed = capsys.readouterr().out.split("who = ")
    assert executed(program, monkeypatch, 3) == orders[3]
    assert len({tuple(order) for order in orders}) > 2
    for order in orders:
        assert order[:2] == [-1, -1] and order[-2:] == [-2, -2]       # the main program is not part of the draw
        at = {number: place for place, number in enumerate(order)}
        assert all(at[i] < at[10 + i] for i in range(N)) and all(at[i] < at[i + 1] for i in range(N - 1))
        assert all(at[10 + i] < at[i + 4] for i in range(N - 4))      # two in the channel, one made, one taken and worked on
    assert any(order.index(3) < order.index(10) for order in orders)  # and no less
    told = [int(text.split("\n")[0]) for text in printed[1:]]
    assert len(told) == 6 * (4 + 2 * N) and all(told[k:k + 16] == told[:16] for k in range(0, len(told), 16))   # in program order


def test_tensors_of_a_body_are_there_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    program = pipe(middle=True)().compile(target="interp")
    for seed in range(5):
        executed(program, monkeypatch, seed)
        assert (Y.data[2:] == 4).all()


def test_without_structure_each_process_keeps_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    program = pipe()().task_graph(deps=Deps.infer_bytes_overlap()).compile(target="interp")
    for seed in range(5):
        order = executed(program, monkeypatch, seed)
        assert [number for number in order if 0 <= number < 10] == list(range(N))
        assert [number for number in order if number >= 10] == list(range(10, 10 + N))


def test_the_first_failure_in_program_order_is_reported() -> None:
    tiles = Channel("tiles", 8)

    @workload
    def two() -> None:
        with P.pipe():
            for i in P.seq(N):
                send(tiles, root[i](X[i:i + 1], T[i:i + 1]))
            with consume(tiles) as i:
                root[i](T[i:i + 1], Y[i:i + 1])

    X.data[:] = 1
    X.data[1:4] = -1
    program = two().compile(target="interp", check_finite=True)
    for seed in range(1, 8):
        with pytest.raises(PtoError, match="R105") as caught:
            program.replay(seed)
        assert "[i=1]" in str(caught.value)


@pytest.mark.parametrize("seed", range(5))
def test_a_draw_has_every_node_once_behind_what_it_waits_for(seed: int) -> None:
    program = pipe(middle=True)().compile(target="interp")
    nodes = stream_of(program.plan, program.bind())
    rules = OrderRules(True, range(len(program.plan.tensors)), [(False, True)] * len(program.plan.kernels))
    order = list(drawn_order(nodes, 0, len(nodes), rules, random.Random(seed)))
    assert sorted(order) == list(range(len(nodes)))
    at = {node: place for place, node in enumerate(order)}
    for number, node in enumerate(nodes):
        before = node if isinstance(node, tuple) else (*node.order, *node.after) if isinstance(node, TaskInstance) else (
            (*node.before, *node.order) if isinstance(node, MarkInstance) else ())
        assert all(at[earlier] < at[number] for earlier in before)
