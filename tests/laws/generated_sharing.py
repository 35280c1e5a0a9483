"""Small random pipelines whose processes share buffers, and what they compute, said in plain Python: a token goes through all stages.

What varies is what decides whether a buffer is overwritten too early: its places, depths of channels, credits, replicas, what is sent
before or behind its task, loops without an order, several statements that send, events.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from pto_wsp import (
    Channel,
    DType,
    Event,
    In,
    Out,
    P,
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

BLOCK = 3        # tiles of a block, where the first stage has two loops


@kernel
def stage(x: In[Tile[1, 2, DType.I64]], y: Out[Tile[1, 2, DType.I64]]) -> None:
    """Make of a token's number another one, so that a token of another place or stage shows."""
    pto.store(y, x * 3 + 1)


@dataclass(frozen=True)
class Sharing:
    """A pipeline of `len(slots) + 1` stages. Stage k writes a ring of slots[k] places, which stage k + 1 reads, behind a channel of
    depths[k]; the last one reads the first ring too where it `looks_back`. `credits`: of a channel back to the first stage, 0 for none;
    `first`: with how many tokens that channel begins, which the first stage then takes and the last one gives back; 0: the first stage
    sends there, and the last one takes.

    source: how the first stage loops, "seq", "free", "nested" or "two" statements; sends: "task", "behind" it or "ahead" of it;
    takes: "consume" or "receive"; replicas: of the second stage, where it is not the last; events: tell what tokens tell.
    """

    n_tokens: int
    slots: tuple[int, ...]
    depths: tuple[int, ...]
    credits: int
    replicas: int
    source: str
    sends: str
    takes: str
    looks_back: bool
    symbolic: bool
    events: bool
    first: int


def random_sharing(seed: int) -> Sharing:
    """Return a pipeline, of which about half race."""
    rng = random.Random(seed)
    n_rings = rng.choice((1, 1, 2, 2, 3))
    depths = tuple(rng.choice((0, 1, 1, 2, 3)) for _ in range(n_rings))
    slots = tuple(max(1, depth + rng.choice((0, 1, 2, 2, 3, 4))) for depth in depths)
    return Sharing(
        n_tokens=rng.choice((6, 9)), slots=slots, depths=depths, credits=(n_credits := rng.choice((0, 0, 1, 2, 3))),
        replicas=rng.choice((1, 1, 2)) if n_rings > 1 else 1, source=rng.choice(("seq", "seq", "seq", "nested", "free", "two")),
        sends=rng.choice(("task", "task", "behind", "behind", "ahead")), takes=rng.choice(("consume", "receive")),
        looks_back=n_rings > 1 and rng.random() < 0.3, symbolic=rng.random() < 0.3, events=n_rings == 1 and rng.random() < 0.15,
        first=min(n_credits, rng.choice((0, 1, 2, 3))))


def workload_of(net: Sharing, given: Tensor, made: Tensor) -> Workload:
    """Return the pipeline; `given` and `made` have a row for each token. A symbolic number of tokens is called n."""
    rings = [Tensor(np.zeros((count, 2), np.int64), name=f"R{k}") for k, count in enumerate(net.slots)]
    if net.events:
        return _rounds(net, given, made, rings[0])
    channels = [Channel(f"c{k}", depth) for k, depth in enumerate(net.depths)]
    free = Channel("free", net.credits, initial=[0] * net.first)
    n: Any = Symbol("n") if net.symbolic else net.n_tokens
    last = len(rings)

    def place(k: int, i: Any) -> Any:
        return rings[k][i % net.slots[k]:i % net.slots[k] + 1]

    def work(k: int, i: Any) -> None:
        """What stage k does for token i."""
        x = given[i:i + 1] if k == 0 else place(k - 1, i)
        if k == 0 and net.first:
            receive(free)
        elif k == 0 and net.credits:
            send(free, i)
        if k == last:
            if net.first and net.sends == "ahead":
                send(free, i)
            done = stage[i](x, made[i:i + 1])
            if net.looks_back:
                done = stage[i](place(0, i), made[i + net.n_tokens:i + net.n_tokens + 1])
            if net.first and net.sends != "ahead":
                send(free, done if net.sends == "task" else i)
            elif net.credits and not net.first:
                receive(free)
            return
        match net.sends:
            case "task":
                send(channels[k], stage[i](x, place(k, i)))
            case "behind":
                stage[i](x, place(k, i))
                send(channels[k], i)
            case _:
                send(channels[k], i)
                stage[i](x, place(k, i))

    def first() -> None:
        match net.source:
            case "nested":
                for b in P.seq(n // BLOCK):
                    for t in P.seq(BLOCK):
                        work(0, b * BLOCK + t)
            case "two":
                for i in P.seq(n // 2):
                    work(0, i)
                for i in P.seq(n - n // 2):
                    work(0, i + n // 2)
            case source:
                for i in P(n) if source == "free" else P.seq(n):
                    work(0, i)

    def later(k: int) -> None:
        if net.takes == "consume" or (k == 1 and net.replicas > 1):
            with consume(channels[k - 1]) as i:
                work(k, i)
        else:
            for _ in P.seq(n):
                i = receive(channels[k - 1])
                work(k, i)

    parts = []
    for k in range(last + 1):
        makes, takes = channels[k:k + 1], channels[max(0, k - 1):k]
        if net.credits:
            sends, receives = (last, 0) if net.first else (0, last)
            makes, takes = [*makes, *([free] if k == sends else [])], [*takes, *([free] if k == receives else [])]
        part = process(f"p{k}").consumes(*takes).produces(*makes).body(first if k == 0 else lambda k=k: later(k))
        parts.append(replicate(part, net.replicas) if k == 1 < last and net.replicas > 1 else part)
    return connect(parts, [*channels, *([free] if net.credits else [])])


def _rounds(net: Sharing, given: Tensor, made: Tensor, ring: Tensor) -> Workload:
    """Return two processes that tell each other by events: that a place is made, and (with credits) that it is free again."""
    ready, done = Event("ready"), Event("done")

    def place(i: Any) -> Any:
        return ring[i % net.slots[0]:i % net.slots[0] + 1]

    def fill() -> None:
        for i in P.seq(net.n_tokens):
            if net.sends == "ahead":
                record(ready)
            stage[i](given[i:i + 1], place(i))
            if net.sends != "ahead":
                record(ready)
            if net.credits:
                synchronize(done)

    def empty() -> None:
        for i in P.seq(net.n_tokens):
            synchronize(ready)
            if net.credits == 1:
                record(done)
            stage[i](place(i), made[i:i + 1])
            if net.credits > 1:
                record(done)
    return connect([process("fill").body(fill), process("empty").body(empty)], [])


def expected(net: Sharing, given: np.ndarray) -> np.ndarray:
    """Return what the last stage makes where every token goes through all stages before the next one comes."""
    made = np.zeros((2 * net.n_tokens, 2), np.int64)
    made[:net.n_tokens] = given
    for _ in range(len(net.slots) + 1):
        made[:net.n_tokens] = made[:net.n_tokens] * 3 + 1
    if net.looks_back:
        made[net.n_tokens:] = (given * 3 + 1) * 3 + 1
    return made
