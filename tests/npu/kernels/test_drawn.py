"""Kernels drawn at random: values of every shape that broadcasts, buffers in loops and branches, ragged rows, ways to lie in memory."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from pto_wsp import DType, In, InOut, Kernel, Out, Scalar, Tensor, Tile, ceildiv, kernel, pto
from tests.npu.harness import A2A3_FAST, A5_FAST
from tests.npu.kernels.batch import Array, Bound, Case, check

F32, I32 = DType.F32, DType.I32
Shape = tuple[int, int]


def drawn(seed: int, rows: int, cols: int, dtype: DType) -> Kernel:
    """Return a kernel of some twenty operations; whole numbers stay small, so that results are exact in any order."""
    shapes = {"x": (rows, cols), "y": (rows, 1), "z": (1, cols), "w": (1, 1)}

    @kernel
    def drawn_(x: In[Tile[rows, cols, dtype]], y: In[Tile[rows, 1, dtype]], z: In[Tile[1, cols, dtype]], w: In[Tile[1, 1, dtype]],
               n: Scalar[I32], out: Out[Tile[rows, cols, dtype]], stat: Out[Tile[rows, 1, dtype]]) -> None:
        rng = random.Random(seed)
        values = [x, y, z, w]
        buffers = [pto.alloc(shape, dtype, init=k) for k, shape in enumerate(shapes.values())]

        def combine(pool: list[object]) -> object:
            def one() -> object:
                return rng.choice([*pool, *buffers, rng.randint(-3, 3), n]) if rng.random() < 0.9 else rng.choice(pool)

            kind = rng.randrange(7)
            first = rng.choice(pool)
            if kind < 4:
                op: Callable[..., object] = rng.choice([pto.add, pto.sub, pto.maximum, pto.minimum])
                pair = (first, one()) if rng.random() < 0.6 else (one(), first)
                return op(*pair)
            if kind == 4:
                return rng.choice([pto.neg, pto.abs, pto.relu])(first)
            if kind == 5:
                return rng.choice([pto.rowmax, pto.rowmin, pto.colmax, pto.colmin])(first)
            return pto.minimum(pto.maximum(first * rng.choice([2, -1]), -20), 20)

        def keep(value: object) -> None:
            """Write to the first buffer that takes the value."""
            for buffer in rng.sample(buffers, len(buffers)):
                if buffer.shape == value.shape:
                    buffer[:] = pto.minimum(pto.maximum(value, -30), 30)
                    return

        def body(pool: list[object], depth: int, length: int) -> None:
            pool = list(pool)
            for _ in range(length):
                pick = rng.random()
                if depth and pick < 0.15:
                    for _j in pto.range(rng.choice([n, 3])):
                        body(pool, depth - 1, 4)
                        for buffer in buffers:      # one that a loop reads is written in it
                            buffer[:] = pto.maximum(buffer, -20)
                elif depth and pick < 0.3:
                    with pto.when(n > rng.randint(0, 4)):
                        body(pool, depth - 1, 3)
                    with pto.otherwise():
                        body(pool, depth - 1, 3)
                elif pick < 0.5:
                    keep(combine(pool))
                else:
                    pool.append(combine(pool))

        body(values, 2, 12)
        total = x
        for buffer in buffers:
            total = total + buffer
        pto.store(out, total)
        pto.store(stat, pto.rowmax(total) + y)

    return drawn_


def moving(seed: int, dtype: DType) -> Kernel:
    """Return a kernel that moves pieces of regions of 24 x 24, some of them only in part, some transposed, blocks of them in loops."""

    @kernel
    def moving_(x: In[Tensor], n: Scalar[I32], out: InOut[Tensor]) -> None:
        rng = random.Random(seed)

        def extent(most: int) -> object:
            return rng.choice([None, None, most, rng.randint(0, most), n, n - 2, x.shape[0] - 20])

        for k in range(3):
            rows, cols = rng.choice([(8, 8), (5, 3), (1, 8), (8, 1), (3, 8)])
            turned = rng.random() < 0.4
            at, to = (rng.randint(0, 12), rng.randint(0, 12)), (rng.randint(0, 8), 8 * k)
            valid = extent(rows), extent(cols)
            taken = valid if rng.random() < 0.5 else valid[::-1] if turned else (extent(rows), extent(cols))
            kind = rng.randrange(3)
            if kind == 0:
                piece = pto.load(x, at, shape=(rows, cols), valid=valid, fill=rng.choice([0, -7]), transpose=turned)
                pto.store(out, piece + k, to, valid=taken[::-1] if turned else taken)
            elif kind == 1:
                for j in pto.range(rng.choice([2, n])):
                    piece = pto.load(x, (at[0] + j, at[1]), shape=(rows, cols), valid=valid, fill=3, transpose=turned)
                    pto.store(out, piece * 2, (to[0] + j * 2, to[1]))
            else:
                step = pto.alloc((cols, rows) if turned else (rows, cols), dtype, init=0)
                for j in pto.range(ceildiv(x.shape[0] - at[0], rows)):
                    rest = x.shape[0] - at[0] - j * rows
                    step += pto.load(x, (at[0] + j * rows, at[1]), shape=(rows, cols), valid=(rest, None), transpose=turned)
                pto.store(out, step, to)

    return moving_


def moving_case(seed: int) -> Case:
    rng = random.Random(seed)
    dtype = rng.choice([F32, F32, I32, DType.I16, DType.F16, DType.BF16])
    x = np.random.default_rng(seed).integers(-9, 9, (24, 24)).astype(dtype.np)
    bound = {"x": lies(rng, x), "out": lies(rng, np.zeros((24, 24), dtype.np))}
    if rng.random() < 0.5:
        bound = {name: one.ragged(group=rng.choice([0, None])) for name, one in bound.items()}
    return Case(moving(seed, dtype), {**bound, "n": rng.randint(0, 4)}, {"x": dtype, "out": dtype})


def lies(rng: random.Random, found: Array) -> Bound:
    """Return a tensor in which the numbers lie in one of several ways."""
    kind = rng.randrange(4)
    if kind < 2:
        return Bound.plain(found)
    return Bound.turned(found) if kind == 2 else Bound.spread(found, rng.randint(1, 2), rng.randint(1, 2))


def case(seed: int) -> Case:
    rng = random.Random(seed)
    dtype = rng.choice([F32, F32, I32, DType.I16, DType.F16, DType.BF16])
    rows, cols = rng.choice([1, 3, 8, 17]), rng.choice([1, 2, 7, 16, 33])
    valid = rng.choice([rows, rng.randint(0, rows)])

    def array(shape: Shape, number: int) -> Array:
        return np.random.default_rng(10 * seed + number).integers(-6, 7, shape).astype(dtype.np)

    shapes = {"x": (valid, cols), "y": (valid, 1), "z": (1, cols), "w": (1, 1), "out": (valid, cols), "stat": (valid, 1)}
    bound = {name: lies(rng, array(shape, number)) for number, (name, shape) in enumerate(shapes.items())}
    if valid < rows or rng.random() < 0.2:
        group = rng.choice([0, None])
        bound.update({name: bound[name].ragged(group=group) for name in ("x", "y", "out", "stat")})
    return Case(drawn(seed, rows, cols, dtype), {**bound, "n": rng.randint(0, 5)})


SEEDS = pytest.mark.parametrize("seeds", [range(5), pytest.param(range(5, 16), marks=pytest.mark.slow)], ids=["some", "more"])


@pytest.mark.slow
@SEEDS
@pytest.mark.parametrize("family", A5_FAST)
def test_drawn_kernels(family: str, seeds: range) -> None:
    check([case(seed) for seed in seeds], family)


@pytest.mark.slow
@SEEDS
@pytest.mark.parametrize("family", A2A3_FAST)
def test_drawn_moves(family: str, seeds: range) -> None:
    check([moving_case(seed) for seed in seeds], family)
