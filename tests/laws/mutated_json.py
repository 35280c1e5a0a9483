"""Workloads as JSON, mutated: keys dropped, doubled and swapped, values of other types, numbers at their ends, hostile text.

Whatever comes of it must be refused with a coded error, or be a workload that means the same on both targets and touches nothing but
its arrays. Arrays lie between guard zones.
"""

from __future__ import annotations

import copy
import json
import math
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from pto_wsp import (
    Channel,
    Dense,
    DType,
    In,
    InOut,
    Out,
    P,
    Program,
    PtoError,
    Ragged,
    Scalar,
    Symbol,
    Tensor,
    Tile,
    Workload,
    combine,
    consume,
    kernel,
    minimum,
    pto,
    receive,
    send,
    slot_set_u64,
    slot_u64,
    workload,
)
from pto_wsp.ir.rewrite import nodes
from pto_wsp.ir.scalar import Const
from tests.laws import generated_mixes as mixes
from tests.tolerances import Array

F32, I32, I64, F16 = DType.F32, DType.I32, DType.I64, DType.F16
GUARD_BYTES = 4096
MOST_BYTES = 1 << 20
PATTERN = 0xA5


# ---- what is mutated ----

@kernel
def loops(n: Scalar[I64], x: In[Tile[2, 8, F32]], y: InOut[Tile[2, 8, F32]]) -> None:
    total = pto.alloc((2, 8), F32, init=0)
    for i in pto.range(n):
        with pto.when(i < 2):
            total += x * 2.0
        with pto.otherwise():
            total += pto.abs(x - pto.rowmax(x))
    pto.store(y, total + y[:, 0:1])


@kernel
def pieces(rows: Scalar[I32], src: In[Tensor], order: In[Tile[4, 1, I32]], dst: Out[Tensor]) -> None:
    piece = pto.load(src, (0, 0), shape=(4, 8), valid=(rows, None), fill=1.5)
    found = pto.gather(src, order, cols=(0, 8), valid=rows)
    best, _ = pto.topk(pto.cast(piece, F16), 3)
    wide = pto.pad(pto.cast(best, F32), shape=(4, 8))
    pto.print("piece", wide)
    pto.store(dst, pto.concat(piece + found, wide, axis=1)[:, 4:12], valid=(rows, 8))


@kernel
def product(a: In[Tile[4, 8, F16]], b: In[Tile[8, 4, F16]], c: Out[Tile[4, 4, F32]]) -> None:
    pto.store(c, pto.where(pto.tril(a @ b) > 0, a @ b, 0.0))


@kernel
def twice(x: In[Tile[2, 8, F32]], y: Out[Tile[2, 8, F32]]) -> None:
    pto.store(y, x + x)


@kernel
def bump(n: Scalar[I64], y: InOut[Tile[1, 8, F32]]) -> None:
    pto.store(y, y + n)


def tensor(name: str, dtype: DType, *shape: int) -> Tensor:
    """Return a tensor that a run binds."""
    return Tensor(shape=shape, dtype=dtype, name=name)


X, Y = tensor("X", F32, 6, 2, 8), tensor("Y", F32, 6, 2, 8)
LENS = tensor("lens", I32, 6)


@workload
def branching() -> None:
    n, rows = Symbol("n"), Ragged(Dense[6](), LENS)
    for b in P(6):
        with P.when(b < n):
            loops[b](n=LENS[b], x=X[b], y=Y[b])
        with P.elif_(LENS[b] > 1):
            for i in P.seq(rows[b]):
                loops[b, i](n=i, x=X[i], y=Y[b])
        with P.otherwise():
            bump(n=b * 2 + 1, y=Y[b, 0:1])


@workload
def moving() -> None:
    S, D = tensor("S", F32, 5, 8), tensor("D", F32, 8, 16)
    A, B, C = tensor("A", F16, 4, 8), tensor("B", F16, 4, 8), tensor("C", F32, 4, 4)
    order = tensor("order", I32, 4)
    pieces(rows=3, src=S, order=order.reshape(4, 1), dst=D[2:6, 4:12])
    done = product(a=A, b=B.T, c=C)
    bump(n=2, y=D[0:].clip(1, 8), after=done)


@workload
def piped() -> None:
    T, Z, tokens = tensor("T", F32, 4, 8), tensor("Z", F32, 4, 8), Channel("tokens", 2)
    slot_set_u64(3, LENS[0])
    with P.pipe():
        for i in P.seq(4):
            send(tokens, bump[i](n=i + slot_u64(3), y=T[i:i + 1]))
        with consume(tokens) as i:
            bump[i](n=i, y=Z[i:i + 1])


@workload
def row(b: int) -> None:
    for i in P.seq(range(b, 4, 2)):
        half = Tensor.empty((2, 8), F32)
        twice(x=X[b], y=half)
        loops(n=2, x=half, y=Y[b])
        bump(n=i.max(1), y=Y[b, 1:2])


@workload
def meeting() -> None:
    """Items, parts of buffers, tiles of rank 3, sums, scratch of a size of the run, and a channel that begins with tokens."""
    V, W, S = tensor("V", I64, 4, 4, 8), tensor("W", I64, 4, 4, 8), tensor("S", I64, 3, 1, 8)
    AT, T = tensor("AT", I32, 4, 1, 4), Symbol("t")
    mixes.folded(V[0:2], W[2:4])
    for i in P(4):
        mixes.picked[i](V[i], AT[i], W[i])
        mixes.added[i](V[i].clip(minimum(4, T), None), 2, S[AT[i, 0, 1]])
        with P.when(LENS[i] > 1):
            half = Tensor.empty((LENS[i], 8), I64)
            for j in P.seq(LENS[i]):
                mixes.copied[i, j](W[i, j:j + 1], half[j:j + 1])
            mixes.added[i, 1](half[0:1], i, S[1])
    free, places = Channel("free", 2, initial=[1, 0]), Tensor.empty((2, 4, 8), I64)
    full = Channel("full", 1)
    with P.pipe():
        for i in P.seq(4):
            receive(free)
            mixes.copied[i](V[i], places[i % 2])
            send(full, i)
        with consume(full) as i:
            mixes.mixed[i](places[i % 2], W[i])
            send(free, i)


SEEDS: Mapping[str, Callable[[], Workload]] = {"branching": branching, "moving": moving, "piped": piped, "meeting": meeting,
                                               "sides": lambda: combine(row(0), row(1)) >> row(2)}

# ---- mutations ----

NUMBERS = (0, 1, -1, 2, 3, 7, 8, 9, 255, 256, 1 << 31, -(1 << 31) - 1, (1 << 62), (1 << 63) - 1, -(1 << 63), 1 << 63, 1 << 64, 10 ** 30,
           0.0, -0.0, 0.5, 1e308)
TEXTS = ("", "x", "y", "n", "dst", "add", "exp", "topk", "gather", "int", "F64", "ADD", "IN", "OUT", "I8", "BOOL", "FP8E4M3", "NEG", "é",
         "*/ system(1); /*", "a\\", '"; }', "\n#error\n", "??/", "\ud800", "\0", "{{ 7 * 7 }}", "__import__('os')", "../../x", "a b",
         "$(rm)")
Path = tuple[str | int, ...]


def paths(data: Any, at: Path = ()) -> Iterator[Path]:
    """Yield the way to every part of JSON data, the whole first."""
    yield at
    parts: Any = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, part in parts:
        yield from paths(part, (*at, key))


def part_at(data: Any, path: Path) -> Any:
    """Return the part of the data that a path leads to."""
    for key in path:
        data = data[key]
    return data


def mutated(data: Any, seeds: list[Any], rng: random.Random) -> Any:
    """Return a copy of JSON data with one to three changes; parts of `seeds` are put where they do not belong."""
    data = copy.deepcopy(data)
    for _ in range(rng.choice((1, 1, 1, 1, 2, 3))):
        found = [path for path in paths(data) if path]
        if not found:
            return data
        path = rng.choice(found)
        holder, key = part_at(data, path[:-1]), path[-1]
        holder[key] = changed(holder[key], data, seeds, rng)
        if holder[key] is DROPPED:
            del holder[key]
    return data


DROPPED = object()


def changed(part: Any, data: Any, seeds: list[Any], rng: random.Random) -> Any:
    """Return what takes the place of one part: mostly something of its own type."""
    if rng.random() < 0.15:
        return DROPPED
    if rng.random() < 0.15:
        return rng.choice((None, True, False, 3, 0.5, "x", [], {}, [[]], {"kind": "Const", "value": 1}))
    if rng.random() < 0.2:
        other = rng.choice([*seeds, data])
        return copy.deepcopy(part_at(other, rng.choice(list(paths(other)))))
    match part:
        case bool():
            return not part
        case int() | float():
            return rng.choice((*NUMBERS, part + 1, part - 1, part * 2, -part))
        case str():
            return rng.choice(TEXTS)
        case list() if part:
            at = rng.randrange(len(part))
            match rng.randrange(4):
                case 0:
                    return part[:at] + part[at + 1:]
                case 1:
                    return [*part, copy.deepcopy(part[at])]
                case 2:
                    return part[::-1]
                case _:
                    return part[at:] + part[:at]
        case dict() if len(part) > 1:
            a, b = rng.sample(sorted(part), 2)
            return {**part, a: part[b], b: part[a]}
        case _:
            return rng.choice(TEXTS)


# ---- what comes of them ----

def read(data: Any) -> Workload | PtoError:
    """Return what from_json makes of data: a workload, or the coded error."""
    try:
        return Workload.from_json(json.dumps(data))
    except PtoError as refused:
        assert refused.code != "E000" and str(refused)
        return refused


def is_small(found: Workload) -> bool:
    """Tell whether running a workload takes no long time: all its numbers are small."""
    return all(abs(node.value) <= 64 or isinstance(node.value, float) for node in nodes(found.node)
               if isinstance(node, Const) and not (isinstance(node.value, float) and math.isnan(node.value)))


class Guarded:
    """Arrays for the tensors of a program, each between two zones that nothing may write to."""

    def __init__(self, program: Program, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self._blocks: list[tuple[Array, int]] = []
        self.arrays: dict[str, Array] = {}
        for slot in program.plan.tensors:
            ref = slot.ref
            size_bytes = max(1, math.prod(ref.shape) * ref.dtype.np.itemsize)
            block = np.full(size_bytes + 2 * GUARD_BYTES, PATTERN, np.uint8)
            view = np.ndarray(ref.shape, ref.dtype.np, block, GUARD_BYTES)
            view[...] = rng.integers(0, 3, ref.shape).astype(ref.dtype.np)
            self._blocks.append((block, size_bytes))
            if not slot.fresh:
                self.arrays[ref.shown] = view

    def check(self) -> None:
        """Raise AssertionError where a guard zone was written to."""
        for block, size_bytes in self._blocks:
            assert (block[:GUARD_BYTES] == PATTERN).all() and (block[GUARD_BYTES + size_bytes:] == PATTERN).all(), "a write outside"


def run(found: Workload, target: str, seed: int, **options: Any) -> dict[str, Array] | str:
    """Return what a run on small arrays leaves, or the code of the error that it, or compiling, ends with."""
    try:
        program = found.compile(target=target, **options)
        if sum(math.prod(slot.ref.shape) * 8 for slot in program.plan.tensors) > MOST_BYTES:
            return "large"
        guarded = Guarded(program, seed)
        numbers = {symbol.name: 2 for symbol in program.plan.symbols}
        try:
            program.run(**guarded.arrays, **numbers)
        finally:
            guarded.check()
        return guarded.arrays
    except PtoError as problem:
        assert problem.code != "E000" and str(problem)
        return problem.code


def check_both_targets(found: Workload, seed: int) -> None:
    """Raise AssertionError unless both targets leave the same bits, or end with the same error.

    Scratch memory that no task has written holds anything: bits may differ where the sanitizer finds such a read.
    """
    expected, native = run(found, "interp", seed), run(found, "cpu_sim", seed)
    if isinstance(expected, str) or isinstance(native, str):
        assert expected == native, (expected if isinstance(expected, str) else "runs", native if isinstance(native, str) else "runs")
        return
    for name, array in expected.items():
        assert array.tobytes() == native[name].tobytes() or run(found, "cpu_sim", seed, sanitize=True) == "R202", name
