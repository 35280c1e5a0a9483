"""Small workloads drawn at random: nested loops, conditions, ragged rows, sides, and views of one matrix in many forms."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from pto_wsp import DType, In, InOut, Out, P, Tensor, Workload, combine, kernel, pto, sequential, workload

I64 = DType.I64
SIDE = 12


@kernel
def change(x: In[Tensor], y: InOut[Tensor]) -> None:
    """Read all of one region, element by element, and change all of another."""
    total = pto.alloc((1, 1), I64, init=0)
    for r in pto.range(x.shape[0]):
        for c in pto.range(x.shape[1]):
            total += pto.load(x, (r, c), shape=(1, 1))
    for r in pto.range(y.shape[0]):
        for c in pto.range(y.shape[1]):
            pto.store(y, pto.load(y, (r, c), shape=(1, 1)) + total, (r, c))


@kernel
def put(x: In[Tensor], y: Out[Tensor]) -> None:
    """Read all of one region, row by row, and write all of another, in pieces of two columns."""
    total = pto.alloc((1, 1), I64, init=0)
    for r in pto.range(x.shape[0]):
        total += pto.rowsum(pto.load(x, (r, 0), shape=(1, SIDE * SIDE), valid=(1, x.shape[1])))
    for r in pto.range(y.shape[0]):
        for c in pto.range(0, y.shape[1], 2):
            pto.store(y, pto.expand(total, (1, 2)), (r, c), valid=(1, y.shape[1] - c))


class Drawing:
    """One workload. `data`: its tensors; the lengths of rows and a table are small numbers."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.A = Tensor(np.zeros((SIDE, SIDE), np.int64), name="A")
        self.B = Tensor(np.zeros((SIDE, SIDE), np.int64), name="B")
        self.lens = Tensor(np.array([self.rng.randint(0, 3) for _ in range(4)]), name="lens")
        pick = self.rng.sample if self.rng.random() < 0.5 else self.rng.choices
        self.table = Tensor(np.array(pick(range(5), k=4)), name="table")
        self.room = self.rng.randint(2, 6)      # sites

    def trace(self) -> Workload:
        """Return the workload."""
        @workload
        def drawn() -> None:
            self._body((), 0)
        return drawn()

    def _body(self, loops: tuple[tuple[Any, int], ...], depth: int) -> None:
        for _ in range(self.rng.randint(1, 2)):
            self._part(loops, depth)

    def _part(self, loops: tuple[tuple[Any, int], ...], depth: int) -> None:
        kind = self.rng.choice(("call", "for", "for", "for", "when", "sides") if depth < 3 else ("call",))
        if kind == "for":
            self._loop(loops, depth)
        elif kind == "when" and loops:
            var, extent = self.rng.choice(loops)
            limit = self.rng.randint(0, extent)
            condition = self.rng.choice((lambda: var < limit, lambda: var == limit, lambda: (var % 2) == 0,
                                         lambda: self.table[var] > limit))
            with P.when(condition()):
                self._body(loops, depth + 1)
            if self.rng.random() < 0.5:
                with P.otherwise():
                    self._body(loops, depth + 1)
        elif kind == "sides":
            sides = [workload(lambda: self._body(loops, depth + 1)) for _ in range(2)]
            self.rng.choice((combine, combine, sequential))(*[side() for side in sides])
        else:
            self._call(loops)

    def _loop(self, loops: tuple[tuple[Any, int], ...], depth: int) -> None:
        walk = self.rng.choice((P, P, P.seq))
        kind = self.rng.random()
        extent = self.rng.randint(1, 4)
        axis: Any = extent
        if loops and kind < 0.2:
            axis = self.lens[self.rng.choice(loops)[0]]
            extent = 3
        elif kind < 0.3:
            step = self.rng.randint(2, 3)
            axis, extent = range(0, extent, step), extent
        elif loops and kind < 0.4:
            var, most = self.rng.choice(loops)
            axis, extent = var + 1, most
        for var in walk(axis, names=(f"i{depth}",)):
            self._body((*loops, (var, min(extent, 4))), depth + 1)

    def _call(self, loops: tuple[tuple[Any, int], ...]) -> None:
        kernel = self.rng.choice((change, put))
        kernel(x=self._view(loops), y=self._view(loops))

    def _index(self, loops: tuple[tuple[Any, int], ...], most: int) -> Any:
        """Return an index in 0 .. most, a sum of loop variables by factors."""
        made: Any = 0
        left = most
        for var, extent in self.rng.sample(loops, min(len(loops), self.rng.randint(0, 3))):
            factor = self.rng.randint(0, min(4, left // max(1, extent - 1)))
            if factor:
                made = made + var * factor if not isinstance(made, int) or made else var * factor
                left -= factor * (extent - 1)
        if loops and self.rng.random() < 0.15:
            var, _ = self.rng.choice(loops)
            return self.rng.choice((lambda: self.table[var], lambda: var % 2, lambda: var // 2, lambda: 3 - var))()
        return made + self.rng.randint(0, left) if self.rng.random() < 0.5 else made

    def _view(self, loops: tuple[tuple[Any, int], ...]) -> Any:
        tensor = self.rng.choice((self.A, self.A, self.B))
        rows, cols = self.rng.randint(1, 4), self.rng.randint(1, 4)
        form: Callable[[], Any] = self.rng.choice((
            lambda: self._box(tensor, loops, rows, cols),
            lambda: self._box(tensor, loops, rows, cols).T,
            lambda: tensor[self._index(loops, SIDE - 1)],
            lambda: tensor[:, self._index(loops, SIDE - 1)],
            lambda: self._strided(tensor, loops),
            lambda: tensor[self._index(loops, SIDE - 1), self._index(loops, 4):].clip(cols),
            lambda: tensor.reshape(2, 6, SIDE)[self._index(loops, 1), self._index(loops, 5)],
            lambda: tensor.reshape(SIDE * SIDE)[self._flat(loops):][:cols],
            lambda: tensor[self._index(loops, SIDE - 1)].reshape(3, 4)[:, self._index(loops, 3)],
        ))
        return form()

    def _flat(self, loops: tuple[tuple[Any, int], ...]) -> Any:
        return self._index(loops, 100)

    def _box(self, tensor: Tensor, loops: tuple[tuple[Any, int], ...], rows: int, cols: int) -> Any:
        row, col = self._index(loops, SIDE - rows), self._index(loops, SIDE - cols)
        return tensor[row:row + rows, col:col + cols]

    def _strided(self, tensor: Tensor, loops: tuple[tuple[Any, int], ...]) -> Any:
        step, row = self.rng.randint(2, 3), self._index(loops, 3)
        return tensor[row:row + 3 * step:step, self._index(loops, SIDE - 1)]
