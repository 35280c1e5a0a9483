"""Whole workloads made at random: drawn kernels, one after the other, on tensors that lie in every way, in loops with ragged ends.

Numbers are small and whole wherever kernels are exact, so what runs must give what `interp` gives, to the bit.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pto_wsp import Deps, DType, Kernel, P, Symbol, Tensor, Workload, ceildiv, combine, workload
from tests.npu.kernels.test_drawn import drawn, moving
from tests.npu.package import Array
from tests.npu.split.generated_mixed import BLOCKS, INNER, SIMPLE, STATE, Recipe, S, Step

F32, I32 = DType.F32, DType.I32
DTYPES = (F32, F32, I32, DType.I16, DType.F16, DType.BF16)


@dataclass
class Drawn:
    """A workload, the symbols it is run with, and how near its results are."""

    workload: Workload
    params: dict[str, int]
    exact: bool


def drawn_workload(seed: int) -> Drawn:
    """Return the workload of a seed."""
    rng = random.Random(seed)
    made = rng.choice((_rows, _rows, _rows, _moves, _mixed))(rng)
    if rng.random() < 0.3:
        made.workload = made.workload.task_graph(deps=Deps.infer_bytes_overlap())
    return made


class _Memory:
    """Tensors by name, on whole numbers, each lying in a way of its own."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.numbers = np.random.default_rng(rng.randrange(1 << 30))
        self.count = 0

    def tensor(self, shape: tuple[int, ...], dtype: DType, stem: str = "t") -> Tensor:
        """Return a tensor of small numbers."""
        self.count += 1
        return Tensor(self.numbers.integers(-6, 7, shape).astype(dtype.np), name=f"{stem}{self.count}")

    def plane(self, rows: int, cols: int, dtype: DType) -> Any:
        """Return a view of that shape into a tensor that lies in one of several ways; the first dimension may be cut."""
        match self.rng.randrange(9):
            case 0:
                return self.tensor((cols, rows), dtype).T
            case 1:
                return self.tensor((2 * rows, cols), dtype)[::2]
            case 2:
                return self.tensor((rows, 2 * cols), dtype)[:, 1::2]
            case 3:
                return self.tensor((rows * cols,), dtype).reshape(rows, cols)
            case 4:
                return self.tensor((3, rows, cols), dtype)[self.rng.randrange(3)]
            case 5:
                return self.tensor((rows, 3, cols), dtype)[:, self.rng.randrange(3)]
            case 6:
                return self.tensor((rows + 3, cols + 5), dtype)[2:2 + rows, 5:]
            case _:
                return self.tensor((rows, cols), dtype)


def _rows(rng: random.Random) -> Drawn:
    """Kernels on blocks of rows, one after the other; what one has written another reads, and what was read is written."""
    memory, dtype = _Memory(rng), rng.choice(DTYPES)
    n_rows, cols = rng.choice([5, 8, 24, 33]), rng.choice([1, 2, 7, 16, 33])
    planes = [memory.plane(n_rows, cols, dtype) for _ in range(3)]
    stats = [memory.plane(n_rows, 1, dtype) for _ in range(2)]
    row, one = memory.plane(1, cols, dtype), memory.plane(1, 1, dtype)
    lens = Tensor(np.array([rng.randint(0, n_rows) for _ in range(3)], np.int32), name="lens")
    turns, bound = Symbol("turns", I32), rng.random() < 0.3
    stages = [(drawn(rng.randrange(1 << 30), size, cols, dtype), size, rng.randrange(5), rng.random() < 0.4,
               *rng.sample(planes, 2), *rng.sample(stats, 2), rng.randint(0, 4)) for size in
              (rng.choice([1, 3, 8, 17]) for _ in range(rng.randint(1, 3)))]

    def tasks(stage: Any, start: Any, rest: Any, number: Any, after: list[Any], kinds: tuple[Any, ...]) -> Any:
        made, size, _, _, x, out, y, stat, n = stage

        def cut(view: Any, width: int) -> Any:
            part = view[:rest] if rest is not None else view
            return part[start:].clip(size, width)

        return made[(*kinds, number)](x=cut(x, cols), y=cut(y, 1), z=row, w=one, n=turns if bound else n, out=cut(out, cols),
                                      stat=cut(stat, 1), after=after)

    def stage_of(number: int, stage: Any, before: list[Any]) -> list[Any]:
        size, way, told = stage[1], stage[2], stage[3]
        after = before[-1:] if told else []
        loop = P.seq if rng.random() < 0.3 else P
        if way == 0:
            return [tasks(stage, 0, None, number, after, ())]
        if way == 1:
            for b in loop(3):
                for i in P(ceildiv(lens[b], size)):
                    last = tasks(stage, i * size, lens[b], number, after, (b, i))
            return [last]
        if way == 2:
            for i in loop(min(2, n_rows // size)):
                last = tasks(stage, i * size, None, number, after, (i,))
            return [last]
        for i in loop(ceildiv(n_rows, size)):
            last = tasks(stage, i * size, None, number, after, (i,))
        return [last]

    @workload
    def rows() -> None:
        handles: list[Any] = []
        for number, stage in enumerate(stages):
            handles = stage_of(number, stage, handles)

    return Drawn(rows(), {"turns": rng.randint(0, 3)} if bound else {}, exact=True)


def _moves(rng: random.Random) -> Drawn:
    """Kernels that move pieces of whole tensors, several in a row on the same ones."""
    memory, dtype = _Memory(rng), rng.choice(DTYPES)
    planes = [memory.plane(24, 24, dtype) for _ in range(3)]
    stages = [(moving(rng.randrange(1 << 30), dtype), *rng.sample(planes, 2), rng.randint(0, 4)) for _ in range(rng.randint(1, 3))]
    together = rng.random() < 0.3

    @workload
    def moves() -> None:
        sides = [workload(lambda made=made, x=x, out=out, n=n: made[0](x=x, n=n, out=out)) for made, x, out, n in stages]
        if together:
            combine(*(side() for side in sides))
        else:
            for number, (made, x, out, n) in enumerate(stages):
                made[number](x=x, n=n, out=out)

    return Drawn(moves(), {}, exact=True)


def mixed_steps(rng: random.Random, depth: int = 0) -> tuple[Step, ...]:
    """Draw steps of a kernel of both cores."""
    kinds = (*SIMPLE, *STATE, *(INNER if depth < 2 else ()))
    found = []
    for _ in range(rng.randint(1, 7 if depth == 0 else 5)):
        what = rng.choice(kinds)
        found.append(Step(what, rng.randint(0, 4), rng.randint(0, 4), mixed_steps(rng, depth + 1) if what in INNER else ()))
    return tuple(found)


def _mixed(rng: random.Random) -> Drawn:
    """Kernels of products and vector work on blocks of rows, with memory as their state."""
    recipe = Recipe(mixed_steps(rng), rng.randint(0, BLOCKS), rng.randint(1, S), rng.random() < 0.5)
    made: Kernel = recipe.build()
    numbers = np.random.default_rng(rng.randrange(1 << 30))
    n_tasks = rng.randint(1, 3)
    total = S * (n_tasks - 1) + recipe.rows

    def tensor(name: str, *shape: int) -> Tensor:
        return Tensor((numbers.standard_normal(shape) / 2).astype(np.float32), name=name)

    x, w, region, out = tensor("x", total, S), tensor("w", S, S), tensor("region", BLOCKS * S, S), tensor("out", total, S)
    both, state = tensor("both", n_tasks, (BLOCKS + 1) * S, S), tensor("state", S, S)
    order: Callable[..., Any] = rng.choice([P, P.seq])

    @workload
    def mixed() -> None:
        for i in order(n_tasks):
            made[i](x=x[i * S:].clip(S, S), w=w, region=region, n=recipe.n, piece=both[i, :BLOCKS * S],
                    state=both[i, BLOCKS * S:] if recipe.shared else state, out=out[i * S:].clip(S, S))

    return Drawn(mixed(), {}, exact=False)


def arrays_of(made: Workload) -> dict[str, Array]:
    """Return what the tensors of a workload wrap, by name."""
    return {tensor.name: tensor.data for tensor in made.tensors}
