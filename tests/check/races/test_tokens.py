"""Order through tokens and events, by hand: what is proved of two processes, and what must not be."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pto_wsp import (
    Channel,
    Deps,
    DType,
    Event,
    In,
    Out,
    P,
    PtoError,
    Tensor,
    Tile,
    Workload,
    connect,
    consume,
    kernel,
    process,
    pto,
    receive,
    record,
    replicate,
    send,
    synchronize,
)
from pto_wsp.check.races.check import check_races
from pto_wsp.check.verdict import Verdict
from pto_wsp.ir.rewrite import canonical
from pto_wsp.passes.lower import lower

F32 = DType.F32
N = 8
X, G, H, Y = (Tensor(np.zeros((2 * N, 4), np.float32)) for _ in range(4))


@kernel
def copy(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]):
    pto.store(y, x)


def row(tensor: Tensor, i: object) -> object:
    return tensor[i:i + 1]


def two(producing: Callable[[Channel], None], consuming: Callable[[Channel], None], replicas: int = 1) -> Workload:
    """Return a producer and a consumer of one channel."""
    ch = Channel("ch", 2)
    return connect([process("make").produces(ch).body(lambda: producing(ch)),
                    replicate(process("take").consumes(ch).body(lambda: consuming(ch)), replicas)], [ch])


def writes_then_sends(payload: Callable[[object], object] = lambda i: i, *, ordered: bool = False) -> Callable[[Channel], None]:
    def body(ch: Channel) -> None:
        for i in (P.seq(N) if ordered else P(N)):
            copy[i](x=row(X, i), y=row(H, i))
            send(ch, payload(i))
    return body


def reads(place: Callable[[object], object] = lambda i: i) -> Callable[[Channel], None]:
    def body(ch: Channel) -> None:
        with consume(ch) as i:
            copy[i](x=row(H, place(i)), y=row(Y, i))
    return body


def sends_then_writes(ch: Channel) -> None:
    for i in P(N):
        send(ch, i)
        copy[i](x=row(X, i), y=row(H, i))


def writes_on_either_side(ch: Channel) -> None:
    for i in P(N):
        copy[i](x=row(X, i), y=row(H, i))
        send(ch, i)
        copy[i](x=row(H, i), y=row(G, i))


def sends_twice(ch: Channel) -> None:
    for i in P(N):
        copy[i](x=row(X, i), y=row(H, i))
        send(ch, i)
    for i in P(N):
        send(ch, i)


def reads_then_sends(ch: Channel) -> None:
    for i in P(N):
        copy[i](x=row(H, i), y=row(G, i))
        send(ch, i)


def writes(ch: Channel) -> None:
    with consume(ch) as i:
        copy[i](x=row(X, i), y=row(H, i))


def takes_one_each_turn(ch: Channel) -> None:
    for _ in P.seq(N):
        i = receive(ch)
        copy[i](x=row(H, i), y=row(Y, i))


def a_branch_each(ch: Channel) -> None:
    for i in P(N):
        with P.when(i < 4):
            copy[i](x=row(X, i), y=row(H, i))
        with P.otherwise():
            copy[i](x=row(G, i), y=row(H, i))
        send(ch, i)


def three(first: Callable[[object], object] = lambda i: i, middle: Callable[[object], object] = lambda i: i, replicas: int = 1,
          *, both: bool = True) -> Workload:
    """Return three stages: H is made and sent as first(i), G is made and sent as middle(i), and read, `both` too."""
    one, other = Channel("one", 2), Channel("other", 2)

    def make() -> None:
        for i in P(N):
            copy[i](x=row(X, i), y=row(H, i))
            send(one, first(i))

    def change() -> None:
        with consume(one) as i:
            copy[i](x=row(X, i), y=row(G, middle(i)))
            send(other, middle(i))

    def read() -> None:
        with consume(other) as i:
            copy[i](x=row(G, i), y=row(Y, i))
            if both:
                copy[i](x=row(H, i), y=row(Y, i + N))

    return connect([process("make").produces(one).body(make),
                    replicate(process("change").consumes(one).produces(other).body(change), replicas),
                    process("read").consumes(other).body(read)], [one, other])


def events(*, recorded_first: bool = False, again: bool = False, used_first: bool = False) -> Workload:
    """Return a process that makes H and records it, and one that waits for that before it reads H."""
    done = Event("done")

    def make() -> None:
        if recorded_first or again:
            record(done)
        for i in P(N):
            copy[i](x=row(X, i), y=row(H, i))
        if not recorded_first:
            record(done)

    def use() -> None:
        if not used_first:
            synchronize(done)
        for i in P(N):
            copy[i](x=row(H, i), y=row(Y, i))
        if used_first:
            synchronize(done)

    return connect([process("make").body(make), process("use").body(use)], [])


def verdict(pipeline: Workload, name: str = "") -> Verdict:
    """Return the worst verdict over all tensors."""
    found = check_races(lower(canonical(pipeline.node).workload)).findings
    ranked = (Verdict.COUNTEREXAMPLE, Verdict.NOT_PROVED, Verdict.PROVED)
    return min((finding.verdict for finding in found), key=ranked.index)


PROVED: dict[str, Callable[[], Workload]] = {
    "a token says which iteration is over": lambda: two(writes_then_sends(), reads()),
    "so to several replicas": lambda: two(writes_then_sends(), reads(), replicas=3),
    "any payload that tells iterations apart": lambda: two(writes_then_sends(lambda i: 2 * i + 1), reads(lambda i: (i - 1) // 2)),
    "earlier iterations of an ordered loop": lambda: two(writes_then_sends(ordered=True), reads(lambda i: i // 2)),
    "an earlier iteration than that of the token": lambda: two(writes_then_sends(lambda i: i // 2), reads()),
    "earlier iterations of a loop without order": lambda: two(writes_then_sends(), reads(lambda i: i // 2)),
    "read before, written behind": lambda: two(reads_then_sends, writes),
    "one token each turn": lambda: two(writes_then_sends(), takes_one_each_turn),
    "written in either branch": lambda: two(a_branch_each, reads()),
    "through three stages": lambda: three(),
    "through replicas of the stage between": lambda: three(replicas=2),
    "an event": lambda: events(),
}
OPEN: dict[str, Callable[[], Workload]] = {
    "sent before it is written": lambda: two(sends_then_writes, reads()),
    "another element than the payload's": lambda: two(writes_then_sends(), reads(lambda i: i + 1)),
    "later iterations of an ordered loop": lambda: two(writes_then_sends(ordered=True), reads(lambda i: i + 1)),
    "read again after the send": lambda: two(writes_on_either_side, writes),
    "two statements that send": lambda: two(sends_twice, reads()),
    "a payload that the stage between repeats": lambda: three(middle=lambda i: i // 2),
    "an element that two turns of a consumer write": lambda: three(middle=lambda i: i // 2, both=False),
    "a payload that the first stage repeats": lambda: three(first=lambda i: i // 2),
    "replicas that write one element": lambda: three(middle=lambda i: i // 2, replicas=2),
    "an event before the tasks": lambda: events(recorded_first=True),
    "an event that happens twice": lambda: events(again=True),
    "used before the event": lambda: events(used_first=True),
}


@pytest.mark.parametrize("pipeline", PROVED.values(), ids=PROVED)
def test_order_is_proved(pipeline: Callable[[], Workload]) -> None:
    assert verdict(pipeline()) is Verdict.PROVED


@pytest.mark.parametrize("pipeline", OPEN.values(), ids=OPEN)
def test_order_is_not_proved(pipeline: Callable[[], Workload]) -> None:
    assert verdict(pipeline()) is not Verdict.PROVED


@pytest.mark.slow
def test_structure_alone_runs_a_pipeline_whose_order_is_proved() -> None:
    X.data[:N] = np.arange(N)[:, None]
    H.data[:], Y.data[:] = -1, -1
    program = three(replicas=2).task_graph(deps=Deps.explicit()).compile(threads=2)
    for seed in (1, 2, 3):
        program.replay(seed)
        assert (Y.data[:N, 0] == np.arange(N)).all() and (Y.data[N:, 0] == np.arange(N)).all()
        Y.data[:] = -1


def test_structure_alone_is_refused_where_order_is_not_proved() -> None:
    with pytest.raises(PtoError, match="W203") as caught:
        two(sends_twice, reads()).task_graph(deps=Deps.explicit()).compile()
    assert "hybrid() takes" in str(caught.value.help)
