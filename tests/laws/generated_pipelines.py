"""Small random networks of processes, and what they mean, said once more in plain Python: results, cycles, and where they stop."""

from __future__ import annotations

import random
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pto_wsp import Channel, DType, InOut, Scalar, Tensor, Tile, Workload, connect, kernel, process, pto, receive, send
from pto_wsp.api.pipelines import Process

WIDTHS = (1, 2, 3, 5)


@kernel
def fold_1(x: InOut[Tile[1, 1, DType.I64]], n: Scalar[DType.I64]) -> None:
    """Note a number: what has been noted, and in which order, can be read from the result. A wider one takes longer."""
    pto.store(x, x * 31 + n)


@kernel
def fold_2(x: InOut[Tile[1, 2, DType.I64]], n: Scalar[DType.I64]) -> None:
    pto.store(x, x * 31 + n)


@kernel
def fold_3(x: InOut[Tile[1, 3, DType.I64]], n: Scalar[DType.I64]) -> None:
    pto.store(x, x * 31 + n)


@kernel
def fold_5(x: InOut[Tile[1, 5, DType.I64]], n: Scalar[DType.I64]) -> None:
    pto.store(x, x * 31 + n)


FOLD = {1: fold_1, 2: fold_2, 3: fold_3, 5: fold_5}


@dataclass(frozen=True)
class Op:
    """One statement of a process: a task that notes, a send, or a receive. The number is made of the last one received and `constant`."""

    what: str
    channel: int = 0
    constant: int = 0
    width: int = 1


@dataclass(frozen=True)
class Network:
    """Scripts of processes, and for each channel its depth, producers and consumers."""

    scripts: tuple[tuple[Op, ...], ...]
    depths: tuple[int, ...]
    producers: tuple[tuple[int, ...], ...]
    consumers: tuple[tuple[int, ...], ...]


def random_network(seed: int, *, merges: bool) -> Network:
    """Return a network whose scripts are cut from one order of all statements: with room enough it ends, unless it merges or splits."""
    rng = random.Random(seed)
    n = rng.randint(2, 4)
    ends = []
    for _ in range(rng.randint(1, 4)):
        source = rng.randrange(n)
        target = rng.choice([p for p in range(n) if p != source])
        makers, takers = [source], [target]
        if merges and rng.random() < 0.3:
            makers = sorted({source, rng.choice([p for p in range(n) if p != target])})
        if merges and rng.random() < 0.3:
            takers = sorted({target, rng.choice([p for p in range(n) if p not in makers])} if len(makers) < n else {target})
        ends.append((tuple(makers), tuple(takers)))
    pending = [0] * len(ends)
    sent, taken = [0] * len(ends), [0] * len(ends)
    scripts: list[list[Op]] = [[] for _ in range(n)]

    def take(c: int) -> None:
        scripts[ends[c][1][taken[c] % len(ends[c][1])]].append(Op("receive", c))
        taken[c] += 1
        pending[c] -= 1

    for _ in range(rng.randint(4, 24)):
        c = rng.randrange(len(ends))
        kind = rng.random()
        if kind < 0.4:
            scripts[ends[c][0][sent[c] % len(ends[c][0])]].append(Op("send", c, rng.randint(-5, 5)))
            sent[c] += 1
            pending[c] += 1
        elif kind < 0.7:
            scripts[rng.randrange(n)].append(Op("task", 0, rng.randint(-9, 9), rng.choice(WIDTHS)))
        elif pending[c]:
            take(c)
    for c, left in enumerate(tuple(pending)):
        for _ in range(left):
            take(c)
    depths = tuple(rng.choice((0, 1, 1, 2, 3)) for _ in ends)
    return Network(tuple(map(tuple, scripts)), depths, tuple(e[0] for e in ends), tuple(e[1] for e in ends))


def workload_of(network: Network, acc: Tensor) -> Workload:
    """Return the network as a workload; row p of `acc` is where process p notes."""
    used = sorted({op.channel for script in network.scripts for op in script if op.what != "task"})
    channels = {c: Channel(f"c{c}", network.depths[c]) for c in used}

    def body(p: int, script: tuple[Op, ...]) -> None:
        last: Any = 1
        for op in script:
            match op.what:
                case "task":
                    FOLD[op.width](x=acc[p:p + 1, 0:op.width], n=last + op.constant)
                case "send":
                    send(channels[op.channel], last * 2 + op.constant)
                case "receive":
                    last = receive(channels[op.channel])

    parts: list[Process] = []
    for p, script in enumerate(network.scripts):
        takes = dict.fromkeys(channels[op.channel] for op in script if op.what == "receive")
        gives = dict.fromkeys(channels[op.channel] for op in script if op.what == "send")
        parts.append(process(f"p{p}").consumes(*takes).produces(*gives).body(lambda p=p, script=script: body(p, script)))
    return connect(parts, list(channels.values()))


@dataclass
class _Chan:
    depth: int
    makers: list[int]
    takers: list[int]
    tokens: list[tuple[int, int]] = field(default_factory=list)     # (value, when it is there)
    taken: list[int] = field(default_factory=list)                   # when
    came: int | None = None                                          # depth 0: when the next token's consumer came
    make_turn: int = 0
    take_turn: int = 0


class Never(Exception):
    """A token that never comes, or that nobody takes."""


def expected(network: Network, cost: Mapping[int, int], latency: int) -> tuple[str, list[list[int]], int]:
    """Return how it ends (ended, W111 or W112), what each process has noted, and the cycles."""
    chans = [_Chan(d, [p for p in m if any(op.what == "send" and op.channel == c for op in network.scripts[p])],
                   [p for p in t if any(op.what == "receive" and op.channel == c for op in network.scripts[p])])
             for c, (d, m, t) in enumerate(zip(network.depths, network.producers, network.consumers, strict=True))]
    n = len(network.scripts)
    ended, clock, last_task = [False] * n, [0] * n, 0
    notes: list[list[int]] = [[0] * 8 for _ in range(n)]
    moved = [0]

    def turn(streams: list[int], at: int) -> tuple[int | None, int]:
        for _ in streams:
            at %= len(streams)
            if not ended[streams[at]]:
                return streams[at], at
            at += 1
        return None, 0

    def run(p: int) -> Generator[None, None, None]:
        nonlocal last_task
        last = 1
        for op in network.scripts[p]:
            if op.what == "task":
                for k in range(op.width):
                    notes[p][k] = notes[p][k] * 31 + last + op.constant
                clock[p] += cost[op.width]
                last_task = max(last_task, clock[p])
                continue
            chan = chans[op.channel]
            if op.what == "send":
                while True:
                    whose, chan.make_turn = turn(chan.makers, chan.make_turn)
                    if turn(chan.takers, chan.take_turn)[0] is None:
                        raise Never
                    room = chan.came is not None if chan.depth == 0 else len(chan.tokens) - len(chan.taken) < chan.depth
                    if whose == p and room:
                        break
                    yield
                number = len(chan.tokens)
                if chan.depth == 0:
                    assert chan.came is not None
                    clock[p] = max(clock[p], chan.came) + latency
                    chan.came = None
                    chan.tokens.append((last * 2 + op.constant, clock[p]))
                else:
                    if number >= chan.depth:
                        clock[p] = max(clock[p], chan.taken[number - chan.depth])
                    chan.tokens.append((last * 2 + op.constant, clock[p] + latency))
                chan.make_turn += 1
            else:
                while True:
                    whose, chan.take_turn = turn(chan.takers, chan.take_turn)
                    there = len(chan.tokens) > len(chan.taken)
                    if not there and turn(chan.makers, chan.make_turn)[0] is None:
                        raise Never
                    if whose == p and there:
                        break
                    if whose == p and chan.depth == 0 and chan.came is None:
                        chan.came = clock[p]
                        moved[0] += 1
                    yield
                value, when = chan.tokens[len(chan.taken)]
                clock[p] = max(clock[p], when)
                chan.taken.append(clock[p])
                chan.take_turn += 1
                last = value
            moved[0] += 1

    running = {p: run(p) for p in range(n)}
    try:
        while running:
            before = moved[0]
            for p in list(running):
                if next(running[p], "ended") == "ended":
                    ended[p] = True
                    del running[p]
                    moved[0] += 1
            if moved[0] == before:
                return "W111", notes, 0
        if any(len(chan.tokens) > len(chan.taken) for chan in chans):
            raise Never
    except Never:
        return "W112", notes, 0
    return "ended", notes, last_task
