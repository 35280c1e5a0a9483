"""Workloads whose tasks accumulate into shared tiles, with their results by loops of NumPy in program order.

Every kernel computes element by element, in the tile's dtype, so NumPy has the same bits as any target, unless parts were combined in
another order. Values differ much in size, so that another order of floats has other bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from pto_wsp import (
    Acc,
    Dense,
    DenseDyn,
    DType,
    In,
    InOut,
    Kernel,
    Out,
    P,
    Scalar,
    Sparse,
    Symbol,
    Tensor,
    Tile,
    Workload,
    kernel,
    minimum,
    pto,
    workload,
)

ROWS, COLS, N_X = 3, 4, 6        # rows and columns of a tile; inputs
COMBINE = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}
DTYPES = (DType.F32, DType.F64, DType.F16, DType.BF16, DType.I8, DType.I32, DType.I64, DType.U16)
STORES = ("whole", "when", "one side", "piece", "valid")
LOOPS = ("dense", "dynamic", "range", "two", "ragged", "sparse", "condition", "nested seq")


@dataclass(frozen=True)
class SumRecipe:
    """`outs`: tiles summed into; `n`: iterations over `b`; `m`: of the loop inside; `to`: where the parts of each `b` go.

    `stores`: how each statement of the body stores; `before`: the tiles are written first, `after`: and updated behind the loops.
    `short`: the last tile has fewer rows than the kernel's.
    """

    dtype: DType
    combine: str
    loops: str
    stores: tuple[str, ...]
    n: int
    m: int
    outs: int
    to: tuple[int, ...]
    before: bool
    after: bool
    short: bool
    seed: int


@st.composite
def sum_recipes(draw: Callable[..., Any]) -> SumRecipe:
    """Draw a recipe."""
    outs = draw(st.integers(1, 2))
    stores = draw(st.lists(st.sampled_from(STORES), min_size=1, max_size=2))
    to = draw(st.lists(st.integers(0, outs - 1), min_size=3, max_size=3))
    return SumRecipe(draw(st.sampled_from(DTYPES)), draw(st.sampled_from(sorted(COMBINE))), draw(st.sampled_from(LOOPS)), tuple(stores),
                     draw(st.integers(0, 3)), draw(st.integers(0, 4)), outs, tuple(to), draw(st.booleans()), draw(st.booleans()),
                     draw(st.booleans()), draw(st.integers(0, 99)))


class Sums:
    """The arrays and kernels of a recipe."""

    def __init__(self, recipe: SumRecipe) -> None:
        self.recipe = recipe
        random = np.random.default_rng(recipe.seed)
        self.x = self._numbers(random, (N_X, ROWS, COLS))
        self.start = self._numbers(random, (recipe.outs, ROWS, COLS))
        self.table = np.array(recipe.to, np.int64)
        self.lens = random.integers(0, 4, 3)
        self.columns = [sorted(random.choice(N_X, size=k, replace=False).tolist()) for k in random.integers(0, 4, 3)]
        self.rows = ROWS - 1 if recipe.short else ROWS
        self.y = Tensor(self.start.copy(), name="Y")

    def _numbers(self, random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        dtype = self.recipe.dtype
        if dtype.is_float:
            return (random.standard_normal(shape) * 2.0 ** random.integers(-4, 5, shape)).astype(dtype.np)
        return random.integers(-100 if dtype.holds(-1) else 0, 100, shape).astype(dtype.np)

    # -- what a task adds ----------------------------------------------------------------------------------------------

    def adds(self, total: np.ndarray, x: np.ndarray, n: int, stores: str) -> None:
        """Combine what one task of a kernel stores with `total`, in place."""
        combine = COMBINE[self.recipe.combine]
        value = (x + x).astype(x.dtype)
        rows = slice(None)
        if stores == "when" and n % 2:
            return
        if stores == "one side" and n % 2:
            value = x
        if stores == "piece":
            rows, value = slice(1, 2), value[0:1]
        if stores == "valid":
            rows, value = slice(0, min(n, ROWS)), value[:min(n, ROWS)]
        part = total[rows]
        part[...] = combine(part, value[:len(part)]).astype(x.dtype)

    def kernel(self, stores: str) -> Kernel:
        """Return the kernel that stores in this way."""
        tile = Tile[ROWS, COLS, self.recipe.dtype]

        @kernel
        def part(x: In[tile], n: Scalar[DType.I64], y: Acc[tile, self.recipe.combine]) -> None:    # type: ignore[valid-type]
            match stores:
                case "when":
                    with pto.when(n % 2 == 0):
                        pto.store(y, x + x)
                case "one side":
                    with pto.when(n % 2 == 0):
                        pto.store(y, x + x)
                    with pto.otherwise():
                        pto.store(y, x)
                case "piece":
                    pto.store(y, (x + x)[0:1], (1, 0))
                case "valid":
                    pto.store(y, x + x, valid=(minimum(n, ROWS), None))
                case _:
                    pto.store(y, x + x)
        return part

    # -- the workload and its meaning ----------------------------------------------------------------------------------

    def turns(self) -> list[tuple[int, int]]:
        """Return b and the inner number of each iteration, in program order."""
        r = self.recipe
        match r.loops:
            case "ragged":
                return [(b, k) for b in range(3) for k in range(self.lens[b])]
            case "sparse":
                return [(b, k) for b in range(3) for k in self.columns[b]]
            case "condition":
                return [(b, k) for b in range(r.n) for k in range(r.m) if (b + k) % 2]
            case "two":
                return [(b, k) for b in range(r.n) for k in range(r.m)] + [(b, b) for b in range(r.n)]
            case _:
                return [(b, k) for b in range(r.n) for k in range(r.m)]

    def by_hand(self) -> np.ndarray:
        """Return what loops of NumPy leave."""
        total = self.start.copy()
        with np.errstate(all="ignore"):
            if self.recipe.before:
                for o in range(self.recipe.outs):
                    total[o, :self.rows] = self.x[o, :self.rows] + self.x[o, :self.rows]
            for b, k in self.turns():
                for stores in self.recipe.stores:
                    self.adds(total[self.recipe.to[b], :self.rows], self.x[k % N_X], b + k, stores)
            if self.recipe.after:
                for o in range(self.recipe.outs):
                    total[o, :self.rows] = total[o, :self.rows] + self.x[o, :self.rows]
        return total

    def trace(self) -> Workload:
        """Return the workload."""
        r, x, y = self.recipe, Tensor(self.x, name="X"), self.y
        kernels = [self.kernel(stores) for stores in r.stores]
        tile = Tile[ROWS, COLS, r.dtype]
        table = Tensor(self.table, name="TABLE")
        indptr = np.cumsum([0, *map(len, self.columns)])
        routing = Sparse(Dense[3](), indptr, np.array([k for row in self.columns for k in row], np.int64))
        lens, wide = Tensor(self.lens, name="LENS"), DenseDyn(r.m)

        @kernel
        def put(x: In[tile], y: Out[tile]) -> None:         # type: ignore[valid-type]
            pto.store(y, x + x)

        @kernel
        def grow(x: In[tile], y: InOut[tile]) -> None:      # type: ignore[valid-type]
            pto.store(y, y + x)

        def out(o: Any) -> Any:
            return y[o, 0:self.rows].clip(ROWS, COLS) if r.short else y[o]

        def body(b: Any, k: Any) -> None:
            for each in kernels:
                each[b, k](x[k % N_X], b + k, out(table[b]))

        @workload
        def sums() -> None:
            if r.before:
                for o in range(r.outs):
                    put[o](x[o, 0:self.rows].clip(ROWS, COLS) if r.short else x[o], out(o))
            match r.loops:
                case "dense":
                    for b, k in P(Dense[r.n](), Dense[r.m]()):
                        body(b, k)
                case "dynamic":
                    for b in P(r.n):
                        for k in P(wide):
                            body(b, k)
                case "range":
                    for b in P(range(r.n)):
                        for k in P(Symbol("m")):
                            body(b, k)
                case "two":
                    for b, k in P(r.n, r.m):
                        body(b, k)
                    for b in P(r.n):
                        body(b, b)
                case "ragged":
                    for b in P(3):
                        for k in P(lens[b]):
                            body(b, k)
                case "sparse":
                    for b in P(3):
                        for k in P.sel(routing[b]):
                            body(b, k)
                case "condition":
                    for b, k in P(r.n, r.m):
                        with P.when((b + k) % 2 == 1):
                            body(b, k)
                case _:
                    for b in P(r.n):
                        for k in P.seq(r.m):
                            body(b, k)
            if r.after:
                for o in range(r.outs):
                    grow[o](x[o, 0:self.rows].clip(ROWS, COLS) if r.short else x[o], out(o))
        return sums()

    @property
    def symbols(self) -> dict[str, int]:
        """What a run binds."""
        return {"m": self.recipe.m} if self.recipe.loops == "range" else {}
