"""Buffers that two processes share: rings behind channels, credits, double buffers, stages between; proved, or shown with a race."""

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
    Symbol,
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

F32 = DType.F32
N = 12
X, Y = (Tensor(np.arange(4.0 * N, dtype=np.float32).reshape(N, 4)) for _ in range(2))


@kernel
def copy(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]):
    pto.store(y, x)


def ring(slots: int) -> Tensor:
    return Tensor(np.zeros((slots, 4), np.float32), name="RING")


def at(buffer: Tensor, i: object, slots: int) -> object:
    return buffer[i % slots:i % slots + 1]


def row(tensor: Tensor, i: object) -> object:
    return tensor[i:i + 1]


def one_channel(slots: int, depth: int, n: object = N, *, unordered: bool = False) -> Workload:
    """Return a producer that fills a ring and a consumer that empties it."""
    buffer, full = ring(slots), Channel("full", depth)

    def fill() -> None:
        for i in P(n) if unordered else P.seq(n):
            send(full, copy[i](row(X, i % N), at(buffer, i, slots)))

    def empty() -> None:
        with consume(full) as i:
            copy[i](at(buffer, i, slots), row(Y, i % N))
    return connect([process("fill").produces(full).body(fill), process("empty").consumes(full).body(empty)], [full])


def credits(slots: int, credits: int, n: object = N) -> Workload:
    """Return a ring whose producer takes a credit before it writes, and whose consumer gives it back: a slot of `free` that a receive
    frees. What is full waits in a deep channel."""
    buffer, full, free = ring(slots), Channel("full", 64), Channel("free", credits)

    def fill() -> None:
        for i in P.seq(n):
            send(free, i)
            send(full, copy[i](row(X, i), at(buffer, i, slots)))

    def empty() -> None:
        with consume(full) as i:
            copy[i](at(buffer, i, slots), row(Y, i))
            receive(free)
    return connect([process("fill").produces(full, free).body(fill), process("empty").consumes(full, free).body(empty)], [full, free])


def token_back(slots: int, ahead: int) -> Workload:
    """Return a ring whose consumer tells when a place is free, and whose producer makes `ahead` places more than it was told."""
    buffer, full, free = ring(slots), Channel("full", 64), Channel("free", 64)

    def fill() -> None:
        for i in P.seq(ahead):
            copy[i](row(X, i), at(buffer, i, slots))
        for i in P.seq(N - ahead):
            send(full, i)
            receive(free)
            copy[i](row(X, i + ahead), at(buffer, i + ahead, slots))

    def empty() -> None:
        with consume(full) as i:
            send(free, copy[i](at(buffer, i, slots), row(Y, i)))
    return connect([process("fill").produces(full).consumes(free).body(fill),
                    process("empty").consumes(full).produces(free).body(empty)], [full, free])


def double_buffer(n: object = N, buffers: int = 2) -> Workload:
    """Return two processes that meet once a round: one fills a buffer while the other reads the one before."""
    buffer, meet = ring(buffers), Channel("meet", 0)

    def fill() -> None:
        for i in P.seq(n):
            copy[i](row(X, i), at(buffer, i, buffers))
            send(meet, i)

    def empty() -> None:
        with consume(meet) as i:
            copy[i](at(buffer, i, buffers), row(Y, i))
    return connect([process("fill").produces(meet).body(fill), process("empty").consumes(meet).body(empty)], [meet])


def three(slots: int, depths: tuple[int, int], *, replicas: int = 1, last_reads: bool = True) -> Workload:
    """Return a ring that the first of three stages writes, and the last reads (or the second alone)."""
    buffer, between = ring(slots), ring(N)
    one, two = Channel("one", depths[0]), Channel("two", depths[1])

    def first() -> None:
        for i in P.seq(N):
            send(one, copy[i](row(X, i), at(buffer, i, slots)))

    def second() -> None:
        with consume(one) as i:
            send(two, copy[i](row(X, i) if last_reads else at(buffer, i, slots), row(between, i)))

    def third() -> None:
        with consume(two) as i:
            copy[i](at(buffer, i, slots) if last_reads else row(between, i), row(Y, i))
    middle = process("second").consumes(one).produces(two).body(second)
    return connect([process("first").produces(one).body(first), replicate(middle, replicas) if replicas > 1 else middle,
                    process("third").consumes(two).body(third)], [one, two])


def tiles_of_blocks(slots: int) -> Workload:
    """Return a ring of blocks of three tiles, a token a tile: positions are 3*b + i."""
    buffer, full = ring(3 * slots), Channel("full", 3)

    def fill() -> None:
        for b in P.seq(4):
            for i in P.seq(3):
                send(full, copy[b, i](row(X, 3 * b + i), row(buffer, (b % slots) * 3 + i)))

    def empty() -> None:
        for b in P.seq(4):
            for i in P.seq(3):
                _, _ = receive(full)
                copy[b, i](row(buffer, (b % slots) * 3 + i), row(Y, 3 * b + i))
    return connect([process("fill").produces(full).body(fill), process("empty").consumes(full).body(empty)], [full])


def rounds(*, again: bool) -> Workload:
    """Return a process that makes one buffer each round and says so by an event; the other waits, and says when it is done (`again`)."""
    buffer, made, done = ring(1), Event("made"), Event("done")

    def fill() -> None:
        for i in P.seq(4):
            copy[i](row(X, i), buffer)
            record(made)
            if again:
                synchronize(done)

    def empty() -> None:
        for i in P.seq(4):
            synchronize(made)
            copy[i](buffer, row(Y, i))
            if again:
                record(done)
    return connect([process("fill").body(fill), process("empty").body(empty)], [])


def fed_back(*, unordered: bool) -> Workload:
    """Return a consumer that writes a ring which the producer reads: whether a place is new is told by credits, if iterations wait."""
    buffer, full = ring(4), Channel("full", 2)

    def fill() -> None:
        for i in P(N) if unordered else P.seq(N):
            send(full, copy[i](at(buffer, i, 4), row(X, i)))

    def empty() -> None:
        with consume(full) as i:
            copy[i](row(X, i), at(buffer, i, 4))
    return connect([process("fill").produces(full).body(fill), process("empty").consumes(full).body(empty)], [full])


def earlier_tokens(*, unordered: bool) -> Workload:
    """Return a consumer that reads what an earlier token told, in a loop whose iterations wait for each other, or do not."""
    made, full = ring(N), Channel("full", 2)

    def fill() -> None:
        for i in P(N):
            send(full, copy[i](row(X, i), row(made, i)))

    def empty() -> None:
        for _ in P(N) if unordered else P.seq(N):
            i = receive(full)
            copy[i](row(made, i // 2), row(Y, i))
    return connect([process("fill").produces(full).body(fill), process("empty").consumes(full).body(empty)], [full])


def behind_the_last_token(*, sent: bool) -> Workload:
    """Return a first stage that writes once more behind its loop of sends; the last is told when the second has taken them all."""
    buffer, one, two = ring(1), Channel("one", 2), Channel("two", 2)

    def first() -> None:
        if sent:
            copy(row(X, 0), buffer)
        for i in P.seq(4):
            send(one, i)
        if not sent:
            copy(row(X, 0), buffer)

    def second() -> None:
        for _ in P.seq(4):
            receive(one)
        send(two, 0)

    def third() -> None:
        receive(two)
        copy(buffer, row(Y, 0))
    return connect([process("first").produces(one).body(first), process("second").consumes(one).produces(two).body(second),
                    process("third").consumes(two).body(third)], [one, two])


def n() -> Symbol:
    return Symbol("n")


PROVED: dict[str, Callable[[], Workload]] = {
    "a ring of two places more than the channel": lambda: one_channel(4, 2),
    "of any number of tokens": lambda: one_channel(4, 2, n()),
    "a larger ring": lambda: one_channel(7, 2, n()),
    "two buffers behind a rendezvous": lambda: double_buffer(),
    "two buffers for any number of rounds": lambda: double_buffer(n()),
    "as many credits as places": lambda: credits(3, 3),
    "credits for any number": lambda: credits(3, 3, n()),
    "one credit for one place": lambda: credits(1, 1),
    "a token back for each place": lambda: token_back(3, 3),
    "through a stage between": lambda: three(6, (2, 1)),
    "through replicas of it": lambda: three(9, (2, 1), replicas=2),
    "two readers of a ring": lambda: three(4, (2, 1), last_reads=False),
    "blocks of tiles": lambda: tiles_of_blocks(3),
    "an event each round, and one back": lambda: rounds(again=True),
    "fed back in order": lambda: fed_back(unordered=False),
    "earlier tokens in order": lambda: earlier_tokens(unordered=False),
}
RACES: dict[str, tuple[Callable[[], Workload], str]] = {
    "one buffer": (lambda: one_channel(1, 2), "RING[0, 0:4] is written where i = 1, and read where i = 0"),
    "one buffer behind a rendezvous": (lambda: double_buffer(buffers=1), "RING[0, 0:4] is written where i = 1, and read where i = 0"),
    "as many places as the channel": (lambda: one_channel(2, 2), "RING[0, 0:4] is written where i = 2, and read where i = 0"),
    "one place too few": (lambda: one_channel(3, 2), "RING[0, 0:4] is written where i = 3, and read where i = 0"),
    "one place too few for any number": (lambda: one_channel(3, 2, n()), "RING[0, 0:4] is written where i = 3, and read where i = 0"),
    "a loop without order": (lambda: one_channel(4, 2, unordered=True), "RING[0, 0:4] is written where i = 0, and again where i = 4"),
    "a credit too many": (lambda: credits(3, 4), "RING[0, 0:4] is written where i = 3, and read where i = 0"),
    "a credit too many for any number": (lambda: credits(3, 4, n()), "RING[0, 0:4] is written where i = 3, and read where i = 0"),
    "one place too few for a stage between": (lambda: three(5, (2, 1)), "RING[0, 0:4] is written where i = 5, and read where i = 0"),
    "blocks of tiles, one too few": (lambda: tiles_of_blocks(1), "RING[0, 0:4] is written where b = 1, i = 0, and read where b = 0, i = 0"),
    "fed back without order": (lambda: fed_back(unordered=True), "RING[0, 0:4] is read where i = 4, and written where i = 0"),
    "earlier tokens without order": (lambda: earlier_tokens(unordered=True),
                                     "RING[0, 0:4] is written where i = 0, and read where i = 1"),
    "behind the last token": (lambda: behind_the_last_token(sent=False), "RING[0, 0:4] is written by one and read by the other"),
    "an event each round alone": (lambda: rounds(again=False), "RING[0, 0:4] is written where i = 1, and read where i = 0"),
}


@pytest.mark.parametrize("pipeline", PROVED.values(), ids=PROVED)
def test_a_ring_is_proved(pipeline: Callable[[], Workload]) -> None:
    verdicts = [line for line in pipeline().compile(target="interp").checks if "races" in line]
    assert verdicts and all(line.startswith("proved: ") for line in verdicts), verdicts


@pytest.mark.parametrize(("pipeline", "expected"), RACES.values(), ids=RACES)
def test_a_race_is_shown(pipeline: Callable[[], Workload], expected: str) -> None:
    with pytest.raises(PtoError, match="W201") as caught:
        pipeline().compile(target="interp")
    assert caught.value.found == expected


@pytest.mark.parametrize("schedule", [
    lambda w: w.task_graph(deps=Deps.infer_bytes_overlap()), lambda w: w.streams(1), lambda w: w.task_graph(deps=Deps.explicit())],
    ids=["data", "one stream", "structure"])
def test_no_schedule_hides_a_race(schedule: Callable[[Workload], Workload]) -> None:
    with pytest.raises(PtoError, match="W201"):
        schedule(one_channel(3, 2)).compile(target="interp")


@pytest.mark.slow
def test_structure_alone_runs_a_ring() -> None:
    Y.data[:] = -1
    one_channel(4, 2).task_graph(deps=Deps.explicit()).compile(threads=2).run()
    assert (Y.data == X.data).all()


@pytest.mark.slow
def test_without_structure_a_token_waits_for_its_task_alone() -> None:
    """What the consumer has read is not over when it takes the next token, so the ring is left to edges from data."""
    Y.data[:] = -1
    with pytest.warns(UserWarning, match="do not race on `RING`") as caught:
        program = one_channel(4, 2).task_graph(deps=Deps.infer_bytes_overlap()).compile(target="interp")
    assert len(caught) == 1 and "sanitize=True" in str(caught[0].message)
    for seed in range(1, 6):
        program.replay(seed)
        assert (Y.data == X.data).all()
        Y.data[:] = -1
    one_channel(4, 2).task_graph(deps=Deps.infer_bytes_overlap()).compile(sanitize=True)      # it watches: there is nothing to say


def sends_in_two_statements() -> Workload:
    buffer, full = ring(4), Channel("full", 2)

    def fill() -> None:
        for i in P.seq(4):
            send(full, copy[i](row(X, i), at(buffer, i, 4)))
        for i in P.seq(4):
            send(full, copy[i](row(X, i + 4), at(buffer, i, 4)))

    def empty() -> None:
        with consume(full) as i:
            copy[i](at(buffer, i, 4), row(Y, i))
    return connect([process("fill").produces(full).body(fill), process("empty").consumes(full).body(empty)], [full])


def test_what_cannot_be_counted_warns_of_each_pair_once() -> None:
    """Four places are enough here too, but tokens of two statements are not counted."""
    with pytest.warns(UserWarning) as caught:
        sends_in_two_statements().compile(target="interp")
    texts = [str(one.message) for one in caught]
    assert len(texts) == len(set(texts)) == 2
    assert all("copy(y) at " in text and "copy(x) at " in text and "compile(sanitize=True)" in text for text in texts)
    assert all(one.filename == __file__ for one in caught)


def test_a_pipeline_too_large_to_run_here_is_not_proved() -> None:
    with pytest.warns(UserWarning, match="communicates too much"):
        one_channel(3, 2, 8000).compile(target="interp")
