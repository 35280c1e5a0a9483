"""Random workloads in which features meet, and what they compute, said once more in NumPy: statement after statement, in program order.

Kernels read items of tiles, write parts of buffers, take tiles of rank 3 and of named sizes, accumulate, scatter and gather. Statements
are loops of every kind around them, bounds that tasks compute, scratch tensors of a size of the run, blocks of a bounded size, rings, and
channels that begin with tokens. Numbers are of i64 and wrap alike everywhere; kernels do not commute, so that a wrong order shows.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from pto_wsp import (
    Acc,
    Channel,
    DType,
    In,
    Injective,
    InOut,
    Out,
    P,
    Ring,
    Scalar,
    Symbol,
    Tensor,
    Tile,
    Workload,
    consume,
    kernel,
    minimum,
    produce,
    pto,
    receive,
    send,
    workload,
)
from tests.tolerances import Array

I32, I64 = DType.I32, DType.I64
N, R, C = 6, 4, 8               # blocks of a tensor; rows and columns of a block
SHAPES = {"X": (N, R, C), "V": (N, R, C), "W": (N, R, C), "S": (4, 1, C), "M": (4, 1, C), "CACHE": (N * R, C), "FLAT": (N * R, C)}
WRITTEN = ("V", "W", "S", "M", "CACHE", "FLAT", "COUNTS")

# ---- kernels, each with its meaning ----


@kernel
def picked(x: In[Tile[R, C, I64]], at: In[Tile[1, 4, I32]], y: InOut[Tile[R, C, I64]]) -> None:
    b = pto.alloc((R, C), I64, init=0)
    b[:] = y * 3
    row = pto.item(at, 0, 1)
    b[row:row + 1] += x[row]
    with pto.when(at.item(0, 0) > 1):
        b[0:2, 2:6] = x[2:4, 2:6]
    with pto.otherwise():
        b[row] = x[0:1] + row
    for j in pto.range(at.item(0, 2).min(3)):
        b[j:j + 2, 0:4] += x[1:3, 4:8] * (j + 1)
    pto.store(y, b)


def picked_by_hand(x: Array, at: Array, y: Array) -> None:
    b = y * 3
    row = int(at[0, 1])
    b[row] += x[row]
    if at[0, 0] > 1:
        b[0:2, 2:6] = x[2:4, 2:6]
    else:
        b[row] = x[0] + row
    for j in range(min(int(at[0, 2]), 3)):
        b[j:j + 2, 0:4] += x[1:3, 4:8] * (j + 1)
    y[...] = b


@kernel
def added(x: In[Tile["R", C, I64]], n: Scalar[I64], total: Acc[Tile[1, C, I64]]) -> None:
    pto.store(total, pto.colsum(x) * n)


@kernel
def topped(x: In[Tile["R", C, I64]], at: In[Tile[1, 4, I32]], top: Acc[Tile[1, C, I64], "max"]) -> None:
    row = pto.item(at, 0, 3)
    with pto.when(row > 0):
        pto.store(top, pto.colmax(x))


@kernel
def folded(x: In[Tile[2, R, C, I64]], y: InOut[Tile[2, R, C, I64]]) -> None:
    b = pto.alloc((2, R, C), I64, init=0)
    b[:] = y * 2 + x[::-1]
    b[0] += x.sum(axis=0)
    pto.store(y, b)


def folded_by_hand(x: Array, y: Array) -> None:
    b = y * 2 + x[::-1]
    b[0] += x.sum(axis=0)
    y[...] = b


@kernel
def scattered(x: In[Tile[R, C, I64]], slots: In[Tile[1, R, I32]], cache: InOut[Tensor]) -> None:
    pto.scatter(cache, slots.T, x)


@kernel
def scattered_add(x: In[Tile[R, C, I64]], slots: In[Tile[1, R, I32]], cache: InOut[Tensor]) -> None:
    pto.scatter_add(cache, slots.T, x)


@kernel
def fetched(cache: In[Tensor], at: In[Tile[1, 4, I32]], y: InOut[Tile[R, C, I64]]) -> None:
    row = pto.item(at, 0, 3)
    pto.store(y, y + pto.load(cache, (row * R + 1, 0), shape=(R, C)) * 2)


@kernel
def counted(x: In[Tile[R, C, I64]], n: Out[Tile[1, 1, I32]]) -> None:
    pto.store(n, pto.cast(x[1:2, 1:2] & 3, I32))


@kernel
def copied(x: In[Tile["R", C, I64]], y: Out[Tile["R", C, I64]]) -> None:
    pto.store(y, x * 5 + 1)


@kernel
def mixed(x: In[Tile["R", C, I64]], y: InOut[Tile["R", C, I64]]) -> None:
    pto.store(y, y * 7 + x)


@kernel
def put(n: Scalar[I64], y: InOut[Tile[1, C, I64]]) -> None:
    pto.store(y, y * 7 + n)


# ---- statements ----

Body = Callable[[], None]


class Names:
    """The tensors, symbols and tables that statements name."""

    def __init__(self, arrays: dict[str, Array]) -> None:
        self.tensors = {name: Tensor(array, name=name) for name, array in arrays.items()}
        self.slots = Injective(Tensor(arrays["SLOTS"], name="SLOTS"))
        self.n, self.t = Symbol("n"), Symbol("t")

    def __getitem__(self, name: str) -> Any:
        return self.slots if name == "SLOTS" else self.tensors[name]


@dataclass(frozen=True)
class Part:
    """A statement: what the workload says, and what that does to the arrays."""

    name: str
    trace: Callable[[Names], None]
    by_hand: Callable[[dict[str, Array], dict[str, int]], None]


def arrays_of(seed: int) -> dict[str, Array]:
    """Return the arrays of a workload: what is given, and what is written."""
    rng = np.random.default_rng(seed)
    made: dict[str, Array] = {name: rng.integers(-9, 10, shape) for name, shape in SHAPES.items()}
    made["AT"] = rng.integers(0, 3, (N, 1, 4)).astype(np.int32)
    made["COUNTS"] = rng.integers(0, 4, (N, 1, 1)).astype(np.int32)
    made["SLOTS"] = rng.permutation(N * R).astype(np.int32).reshape(N, R)
    made["LENS"] = rng.integers(0, R + 1, N)
    return made


def _extent(rng: random.Random) -> tuple[Callable[[Names], Any], Callable[[dict[str, int]], int]]:
    if rng.random() < 0.4:
        return lambda names: names.n, lambda given: given["n"]
    count = rng.choice((0, 1, 3, 5, 6))
    return lambda names: count, lambda given: count


def maps(rng: random.Random) -> Part:
    """Blocks of one tensor, each from a block of another, by kernels that read items."""
    extent, number = _extent(rng)
    source, target = rng.choice((("X", "V"), ("X", "W"), ("V", "W"), ("W", "V")))
    step, ordered = rng.choice((1, 5)), rng.random() < 0.3

    def trace(names: Names) -> None:
        for i in (P.seq if ordered else P)(extent(names)):
            picked[i](names[source][(i * step + 1) % N], names["AT"][i], names[target][i])

    def by_hand(a: dict[str, Array], given: dict[str, int]) -> None:
        for i in range(number(given)):
            picked_by_hand(a[source][(i * step + 1) % N], a["AT"][i], a[target][i])
    return Part(f"maps {source} {target} {step} {ordered}", trace, by_hand)


def sums(rng: random.Random) -> Part:
    """Sums of rows of ragged lengths, and maxima under conditions of items."""
    extent, number = _extent(rng)
    source, from_data = rng.choice("VWX"), rng.random() < 0.5

    def trace(names: Names) -> None:
        for i in P(extent(names)):
            to = names["AT"][i, 0, 1] if from_data else i % 4
            for j in P(names["LENS"][i]):
                added[i, j](names[source][i, j:j + 1], j + 1, names["S"][to])
            added[i, 9](names[source][i].clip(minimum(R, names["LENS"][i]), None), 2, names["S"][to])
            topped[i](names[source][i, 1:3], names["AT"][i], names["M"][to])

    def by_hand(a: dict[str, Array], given: dict[str, int]) -> None:
        for i in range(number(given)):
            to = a["AT"][i, 0, 1] if from_data else i % 4
            for j in range(a["LENS"][i]):
                a["S"][to, 0] += a[source][i, j] * (j + 1)
            a["S"][to, 0] += a[source][i, :a["LENS"][i]].sum(axis=0) * 2
            if a["AT"][i, 0, 3] > 0:
                a["M"][to, 0] = np.maximum(a["M"][to, 0], a[source][i, 1:3].max(axis=0))
    return Part(f"sums {source} {from_data}", trace, by_hand)


def stacks(rng: random.Random) -> Part:
    """Tiles of rank 3: two blocks a task."""
    source, target = rng.choice((("X", "V"), ("V", "W"), ("W", "V")))

    def trace(names: Names) -> None:
        for i in P(N // 2):
            folded[i](names[source][2 * i:2 * i + 2], names[target][2 * i:2 * i + 2])

    def by_hand(a: dict[str, Array], given: dict[str, int]) -> None:
        for i in range(N // 2):
            folded_by_hand(a[source][2 * i:2 * i + 2], a[target][2 * i:2 * i + 2])
    return Part(f"stacks {source} {target}", trace, by_hand)


def scatters(rng: random.Random) -> Part:
    """Rows scattered through a table without doubles."""
    extent, number = _extent(rng)
    source, adds = rng.choice("VWX"), rng.random() < 0.5

    def trace(names: Names) -> None:
        for i in P(extent(names)):
            (scattered_add if adds else scattered)[i](names[source][i], names["SLOTS"][i:i + 1], names["CACHE"])

    def by_hand(a: dict[str, Array], given: dict[str, int]) -> None:
        for i in range(number(given)):
            rows = a["SLOTS"][i]
            a["CACHE"][rows] = a[source][i] + (a["CACHE"][rows] if adds else 0)
    return Part(f"scatters {source} {adds}", trace, by_hand)


def fetches(rng: random.Random) -> Part:
    """Blocks of a tensor at rows that items name."""
    extent, number = _extent(rng)
    source, target = rng.choice(("CACHE", "FLAT")), rng.choice("VW")

    def trace(names: Names) -> None:
        for i in P(extent(names)):
            fetched[i](names[source], names["AT"][i], names[target][i])

    def by_hand(a: dict[str, Array], given: dict[str, int]) -> None:
        for i in range(number(given)):
            row = int(a["AT"][i, 0, 3]) * R + 1
            a[target][i] += a[source][row:row + R] * 2
    return Part(f"fetches {source} {target}", trace, by_hand)


def counts(rng: random.Random) -> Part:
    """Bounds that tasks compute."""
    source, target = rng.choice((("V", "V"), ("V", "W"), ("W", "V")))
    ordered, sized = rng.random() < 0.5, rng.random() < 0.5

    def trace(names: Names) -> None:
        for i in P(N):
            counted[i](names[source][i], names["COUNTS"][i])
        for i in (P.seq if ordered else P)(N):
            for j in P(names["COUNTS"][i, 0, 0]):
                put[i, j](j + names["COUNTS"][i, 0, 0], names[target][i, j:j + 1])
            with P.when(names["COUNTS"][i, 0, 0] > 1):
                if sized:
                    k = names["COUNTS"][i, 0, 0]
                    half = Tensor.empty((minimum(3, k), C), I64)
                    copied[i](names["X"][i, 0:3].clip(minimum(3, k), None), half.clip(minimum(3, k), None))
                    mixed[i](half.clip(minimum(3, k), None), names[target][i, 0:3].clip(minimum(3, k), None))
                else:
                    mixed[i](names["X"][i], names[target][i])

    def by_hand(a: dict[str, Array], given: dict[str, int]) -> None:
        for i in range(N):
            a["COUNTS"][i] = a[source][i, 1, 1] & 3
        for i in range(N):
            k = int(a["COUNTS"][i, 0, 0])
            for j in range(k):
                a[target][i, j] = a[target][i, j] * 7 + j + k
            if k > 1:
                rows = min(3, k) if sized else R
                x = a["X"][i, :rows] * 5 + 1 if sized else a["X"][i]
                a[target][i, :rows] = a[target][i, :rows] * 7 + x
    return Part(f"counts {source} {target} {ordered} {sized}", trace, by_hand)


def scratches(rng: random.Random) -> Part:
    """A tensor for each iteration, as large as an element says; what stands in it is summed up or put back."""
    source, target = rng.choice((("X", "V"), ("V", "V"), ("V", "W"), ("W", "V")))
    sum_up = rng.random() < 0.5

    def trace(names: Names) -> None:
        for i in P(N):
            half = Tensor.empty((names["LENS"][i], C), I64)
            for j in P(names["LENS"][i]):
                copied[i, j](names[source][i, j:j + 1], half[j:j + 1])
            for j in P.seq(names["LENS"][i]):
                if sum_up:
                    added[i, j](half[j:j + 1], i + 1, names["S"][i % 3])
                else:
                    mixed[i, j](half[j:j + 1], names[target][i, 0:1])

    def by_hand(a: dict[str, Array], given: dict[str, int]) -> None:
        for i in range(N):
            half = a[source][i, :a["LENS"][i]] * 5 + 1
            for row in half:
                if sum_up:
                    a["S"][i % 3, 0] += row * (i + 1)
                else:
                    a[target][i, 0] = a[target][i, 0] * 7 + row
    return Part(f"scratches {source} {target} {sum_up}", trace, by_hand)


def blocks(rng: random.Random) -> Part:
    """Blocks of a tensor up to a size of the run, the last of which is short."""
    source, target = rng.choice((("CACHE", "FLAT"), ("FLAT", "CACHE")))
    rows = rng.choice((5, 8))

    def trace(names: Names) -> None:
        for i in P(N * R // rows):
            rest = minimum(rows, names.t - i * rows)
            mixed[i](names[source][i * rows:].clip(rest, None), names[target][i * rows:].clip(rest, None))

    def by_hand(a: dict[str, Array], given: dict[str, int]) -> None:
        stop = min(given["t"], N * R // rows * rows)
        a[target][:stop] = a[target][:stop] * 7 + a[source][:stop]
    return Part(f"blocks {source} {target} {rows}", trace, by_hand)


def rings(rng: random.Random) -> Part:
    """Two processes and a ring of buffers; the second sums up, scatters, or reads items."""
    extent, number = _extent(rng)
    source, depth, what = rng.choice("XV"), rng.choice((1, 2, 3)), rng.choice(("picked", "added", "scattered", "counted"))

    def trace(names: Names) -> None:
        ring = Ring((R, C), I64, slots=depth, name="ring")
        with P.pipe():
            for i in P.seq(extent(names)):
                with produce(ring, i) as tile:
                    copied[i](names[source][i], tile)
            with consume(ring) as (tile, i):
                match what:
                    case "picked":
                        picked[i](tile, names["AT"][i], names["W"][(i + 2) % N])
                    case "added":
                        added[i](tile, i, names["S"][i % 2])
                        topped[i](tile, names["AT"][i], names["M"][1])
                    case "scattered":
                        scattered[i](tile, names["SLOTS"][i:i + 1], names["CACHE"])
                    case _:
                        counted[i](tile, names["COUNTS"][i])
                        for j in P(names["COUNTS"][i, 0, 0]):
                            mixed[i, j](tile[j:j + 1], names["W"][i, j:j + 1])

    def by_hand(a: dict[str, Array], given: dict[str, int]) -> None:
        for i in range(number(given)):
            tile = a[source][i] * 5 + 1
            match what:
                case "picked":
                    picked_by_hand(tile, a["AT"][i], a["W"][(i + 2) % N])
                case "added":
                    a["S"][i % 2, 0] += tile.sum(axis=0) * i
                    if a["AT"][i, 0, 3] > 0:
                        a["M"][1, 0] = np.maximum(a["M"][1, 0], tile.max(axis=0))
                case "scattered":
                    a["CACHE"][a["SLOTS"][i]] = tile
                case _:
                    a["COUNTS"][i] = k = int(tile[1, 1] & 3)
                    a["W"][i, :k] = a["W"][i, :k] * 7 + tile[:k]
    return Part(f"rings {source} {depth} {what}", trace, by_hand)


def credits(rng: random.Random) -> Part:
    """A ring by hand: places are numbers that come back on a channel that begins with them."""
    extent, number = _extent(rng)
    places, depth, order = rng.choice((1, 2, 3)), rng.choice((0, 1, 4)), rng.random() < 0.5
    first = list(range(places)) if order else list(range(places))[::-1]

    def trace(names: Names) -> None:
        full, free = Channel("full", depth), Channel("free", places, initial=first)
        ring = Tensor.empty((places, R, C), I64, name="ring")
        n = extent(names)
        with P.pipe():
            for i in P.seq(n):
                slot = receive(free)
                copied[i](names["V"][i], ring[slot])
                send(full, i, slot)
            with consume(full) as (i, slot):
                mixed[i](ring[slot], names["W"][(i * 5) % N])
                send(free, slot)

    def by_hand(a: dict[str, Array], given: dict[str, int]) -> None:
        for i in range(number(given)):
            a["W"][i * 5 % N] = a["W"][i * 5 % N] * 7 + a["V"][i] * 5 + 1
    return Part(f"credits {places} {depth} {order}", trace, by_hand)


PARTS = (maps, sums, stacks, scatters, fetches, counts, scratches, blocks, rings, credits)


class Mix:
    """A workload of a few statements, some in a loop or under a condition."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.parts = [(rng.choice(PARTS)(rng), rng.choice(("", "", "", "twice", "when"))) for _ in range(rng.randint(2, 4))]
        self.given = arrays_of(seed)
        self.arrays = {name: array.copy() for name, array in self.given.items()}
        self.symbols = {"n": rng.randint(0, N), "t": rng.choice((0, 3, 7, 8, 16, 23, 24))}
        self.names = Names(self.arrays)

    def __str__(self) -> str:
        return f"{[(part.name, how) for part, how in self.parts]} {self.symbols}"

    def trace(self) -> Workload:
        """Return the workload, on the tensors of `arrays`."""
        names = self.names

        @workload
        def mix() -> None:
            put[0](names.n + names.t, names["S"][3])     # so that both are symbols of every workload
            for part, how in self.parts:
                match how:
                    case "twice":
                        for _ in P.seq(2):
                            part.trace(names)
                    case "when":
                        with P.when(names.n > 2):
                            part.trace(names)
                    case _:
                        part.trace(names)
        return mix()

    def by_hand(self) -> dict[str, Array]:
        """Return what the written arrays hold afterwards."""
        a = {name: array.copy() for name, array in self.given.items()}
        with np.errstate(over="ignore"):
            a["S"][3] = a["S"][3] * 7 + self.symbols["n"] + self.symbols["t"]
            for part, how in self.parts:
                for _ in range({"twice": 2, "when": int(self.symbols["n"] > 2)}.get(how, 1)):
                    part.by_hand(a, self.symbols)
        return {name: a[name] for name in WRITTEN}

    @contextmanager
    def fresh(self) -> Iterator[None]:
        """Run on the numbers that were given, and compare what is left with what NumPy leaves."""
        for name, array in self.arrays.items():
            array[...] = self.given[name]
        yield
        for name, expected in self.by_hand().items():
            np.testing.assert_array_equal(self.arrays[name], expected, err_msg=name)
