"""Channels that begin with tokens: results, what may be left, what is proved of buffers, what is refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pto_wsp import (
    Channel,
    DType,
    In,
    Out,
    P,
    PtoError,
    Ring,
    Tensor,
    Tile,
    Workload,
    connect,
    consume,
    kernel,
    parse,
    process,
    produce,
    pto,
    receive,
    replicate,
    send,
    workload,
)
from pto_wsp.check.races.tokens import network_of
from pto_wsp.ir.flow import Pipeline, walk

F32 = DType.F32


@kernel
def load(x: In[Tile[2, 8, F32]], y: Out[Tile[2, 8, F32]]) -> None:
    pto.store(y, x + 1)


@kernel
def scale(x: In[Tile[2, 8, F32]], y: Out[Tile[2, 8, F32]]) -> None:
    pto.store(y, x * 2)


class Stages:
    """Load and scale with a buffer of `rows` tiles, and credits for `ahead` of them."""

    def __init__(self, n: int, rows: int, ahead: object, depth: int = 3, more: int = 0) -> None:
        self.x = np.random.default_rng(n).standard_normal((max(n, 1), 2, 8)).astype(np.float32)
        self.y = np.zeros_like(self.x)
        x, y, buffer = Tensor(self.x, name="x"), Tensor(self.y, name="y"), Tensor(np.zeros((rows, 2, 8), np.float32), name="buffer")
        free, full = Channel("free", depth, initial=ahead), Channel("full", depth)  # type: ignore[arg-type]

        @workload
        def stages() -> None:
            with P.pipe():
                for i in P.seq(n):
                    receive(free)
                    send(full, load[i](x[i], buffer[i % rows]))
                for i in P.seq(n):
                    receive(full)
                    send(free, scale[i](buffer[i % rows], y[i]))
                    for _ in range(more):
                        send(free, i)

        self.value: Workload = stages()

    def is_right(self, n: int) -> bool:
        return bool((self.y[:n] == 2 * (self.x[:n] + 1)).all())


@pytest.mark.parametrize("target", ["interp", "cpu_sim"])
@pytest.mark.parametrize("ahead", [1, 2, [5], [7, 9]], ids=str)
@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.sampled(4)
def test_credits_that_come_back_may_be_left(n: int, ahead: Any, target: str) -> None:
    stages = Stages(n, 2, ahead)
    program = stages.value.compile(target=target).run()
    assert stages.is_right(n)
    assert program.stats.task_count == 2 * n
    free = next(channel for channel in program.stats.channels if channel.name == "free")
    assert free.tokens == n + (ahead if isinstance(ahead, int) else len(ahead))


@pytest.mark.slow
def test_targets_agree_in_cycles_and_with_a_ring() -> None:
    cycles = [Stages(6, 2, 2, depth=2).value.compile(target=target).run().stats.total_cycles for target in ("interp", "cpu_sim")]
    x, y = Tensor(np.zeros((6, 2, 8), np.float32)), Tensor(np.zeros((6, 2, 8), np.float32))
    ring = Ring((2, 8), F32, slots=2)

    @workload
    def with_ring() -> None:
        with P.pipe():
            for i in P.seq(6):
                with produce(ring, i) as tile:
                    load[i](x[i], tile)
            with consume(ring) as (tile, i):
                scale[i](tile, y[i])

    assert cycles == [with_ring().compile().run().stats.total_cycles] * 2


@pytest.mark.slow
@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 6))
def test_a_buffer_is_proved_exactly_where_credits_fit_it(rows: int, ahead: int, n: int) -> None:
    """Tile i is written once credit i - ahead is back, so tiles of `ahead` iterations are in the buffer at once."""
    stages = Stages(n, rows, ahead, depth=4)
    if ahead <= rows or n <= rows:
        checks = stages.value.compile(target="interp").checks
        assert any(check.startswith("proved: races on `buffer`") for check in checks) or n == 0
    else:
        with pytest.raises(PtoError) as caught:
            stages.value.compile(target="interp")
        assert caught.value.code == "W201"


def test_tokens_come_first_and_in_order() -> None:
    """The buffer's rows go round in the tokens: 2, 0, 1 at first, then as they come back."""
    x, y = Tensor(np.arange(96, dtype=np.float32).reshape(6, 2, 8)), Tensor(np.zeros((6, 2, 8), np.float32))
    buffer = Tensor(np.zeros((3, 2, 8), np.float32))
    free, full = Channel("free", 3, initial=[(2,), 0, [1]]), Channel("full", 3)
    taken: list[str] = []

    @workload
    def rows() -> None:
        with P.pipe():
            for i in P.seq(6):
                row = receive(free)
                send(full, load[row, i](x[i], buffer[row]))
            with consume(full) as (row, i):
                scale[i](buffer[row], y[i])
                send(free, row)

    with pytest.warns(UserWarning, match="nothing proves"):
        program = rows().compile(target="interp").run()
    taken = [name for name in program.trace.names if name.startswith("load")]
    assert [name.partition(",")[0] for name in taken] == [f"load[row={row}" for row in (2, 0, 1, 2, 0, 1)]
    assert (y.data == 2 * (x.data + 1)).all()


def test_tokens_given_by_their_number_carry_zeros() -> None:
    x, y = Tensor(np.zeros((3, 2, 8), np.float32)), Tensor(np.zeros((3, 2, 8), np.float32))
    tokens = Channel("tokens", 2, initial=2)

    @workload
    def numbers() -> None:
        with P.pipe():
            send(tokens, 7, 8)
            with consume(tokens) as (i, j):
                load[i, j](x[0], y[0])

    program = numbers().compile(target="interp").run()
    assert list(program.trace.names) == ["load[i=0, j=0]"] * 2 + ["load[i=7, j=8]"]


def test_the_proof_counts_tokens_from_the_first() -> None:
    """Send p of the loop gives token p + 2, and waits for the receive of token p + 2 - 3."""
    plan = Stages(5, 2, 2).value.compile(target="interp").plan
    (pipeline,) = [item for item in walk(plan.body) if isinstance(item, Pipeline)]
    network = network_of(pipeline, [channel.depth for channel in plan.channels], [channel.initial for channel in plan.channels])
    shifts = {(hop.leaves.process.name, hop.arrives.process.name, type(hop.leaves.statement).__name__): hop.shift for hop in network.hops}
    assert shifts == {("scale", "load", "Send"): 2, ("load", "scale", "Receive"): 1, ("load", "scale", "Send"): 0,
                      ("scale", "load", "Receive"): 3}


@pytest.mark.parametrize("target", ["interp", "cpu_sim"])
def test_more_tokens_than_at_the_start_are_lost_ones(target: str) -> None:
    with pytest.raises(PtoError) as caught:
        Stages(3, 3, 1, depth=9, more=1).value.compile(target=target).run()
    assert caught.value.code == "W112"


def test_it_reads_back_and_says_so() -> None:
    for ahead in (2, [4, 5]):
        value = Stages(4, 2, ahead).value
        assert f"Channel('free', 3, initial={ahead})" in str(value)
        assert Workload.from_json(value.to_json()) == value
        assert parse(str(value.ir)) == value.ir
        assert parse(str(value.compile(target="interp").plan)) is not None
    assert "initial" not in Stages(4, 2, 0).value.to_json()


@pytest.mark.parametrize("tokens", ["[[1, 2], [3]]", "[[1], [1], [1], [1]]", '[["a"]]', "[[1e400]]", "7", "[[9223372036854775808]]"])
def test_json_of_tokens_that_there_are_none_of(tokens: str) -> None:
    text = Stages(4, 2, [4, 5]).value.to_json()
    assert "[4]" in text.replace(" ", "")

    def changed(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: (json.loads(tokens) if key == "initial" else changed(value)) for key, value in node.items()}
        return [changed(item) for item in node] if isinstance(node, list) else node

    with pytest.raises(PtoError) as caught:
        Workload.from_json(json.dumps(changed(json.loads(text))))
    assert caught.value.code == "W113"


@pytest.mark.parametrize("initial", [-1, True, None, "ab", 1.5, [0.5], [(1, 2), 3], [True], [1 << 63], [(1,) * 9], 257, {0, 1}], ids=str)
def test_what_are_no_tokens_is_refused(initial: Any) -> None:
    with pytest.raises(PtoError) as caught:
        Channel("c", 1 << 10, initial=initial)
    assert caught.value.code == "W109" and "begins with tokens that there are none of" in str(caught.value)


@pytest.mark.parametrize(("depth", "initial"), [(0, 1), (1, 2), (2, [1, 2, 3])])
def test_no_more_tokens_than_the_channel_holds(depth: int, initial: Any) -> None:
    with pytest.raises(PtoError, match="more tokens than it holds"):
        Channel("c", depth, initial=initial)


def two_senders(replicas: int) -> Workload:
    tokens = Channel("tokens", 4, initial=2)

    def give() -> None:
        for i in P.seq(2):
            send(tokens, i)

    def take() -> None:
        with consume(tokens):
            pass

    senders = [replicate(process("give").produces(tokens).body(give), replicas)]
    senders += [process("other").produces(tokens).body(give)] if replicas == 1 else []
    return connect([*senders, process("take").consumes(tokens).body(take)], [tokens])


@pytest.mark.parametrize("replicas", [1, 2])
def test_one_process_sends_the_first_tokens(replicas: int) -> None:
    with pytest.raises(PtoError) as caught:
        two_senders(replicas).compile(target="interp")
    assert caught.value.code == "W110" and "several processes send to it" in str(caught.value)


def test_tokens_have_as_many_numbers_as_those_that_are_sent() -> None:
    tokens = Channel("tokens", 4, initial=[(1, 2)])

    @workload
    def odd() -> None:
        with P.pipe():
            for i in P.seq(2):
                send(tokens, i)
            with consume(tokens):
                pass

    with pytest.raises(PtoError, match="2 numbers, as the tokens that it begins with"):
        odd().compile(target="interp")
