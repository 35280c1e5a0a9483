"""Workloads that hypothesis draws: loops, statements and views as plain data, traced as a real `@workload`.

Kernels compute on i64 with operations that do not commute, so any task that runs out of order leaves other numbers. Views of one
matrix overlap in rows and columns, and a second tensor wraps part of the same memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from hypothesis import strategies as st

from pto_wsp import (
    Dense,
    DType,
    In,
    InOut,
    Kernel,
    Out,
    P,
    Program,
    Ragged,
    Scalar,
    Tensor,
    Tile,
    Workload,
    combine,
    kernel,
    pto,
    sequential,
    workload,
)
from tests.tolerances import Array, assert_identical

I64 = DType.I64
SIDE = 14                       # the matrix is SIDE x SIDE
SHAPES = ((1, 1), (2, 3), (3, 2), (1, 6), (4, 4))


@dataclass(frozen=True)
class Spot:
    """Where a view begins: constants, and what each loop variable around adds to row and column. `T`: transposed."""

    tensor: str
    row: int
    col: int
    row_steps: tuple[int, ...]
    col_steps: tuple[int, ...]
    T: bool = False


@dataclass(frozen=True)
class Call:
    """A task: which kernel, on which views; `after` is how many tasks back the one is that it names, 0 for none."""

    kernel: str
    shape: tuple[int, int]
    x: Spot
    y: Spot
    after: int = 0


@dataclass(frozen=True)
class For:
    """A loop. `extent`: a number, or "ragged" for lens[<outer variable>]."""

    extent: int | str
    ordered: bool
    body: tuple[Part, ...]


@dataclass(frozen=True)
class Together:
    """Sides put together by combine or sequential."""

    how: str
    sides: tuple[tuple[Part, ...], ...]


Part: TypeAlias = Call | For | Together


@dataclass(frozen=True)
class WorkloadRecipe:
    """A workload, the lengths of its ragged axis, and the seed of its numbers."""

    parts: tuple[Part, ...]
    lens: tuple[int, ...]
    seed: int


def _kernels(shape: tuple[int, int]) -> dict[str, Kernel]:
    """Return the kernels on tiles of one shape; each task also gets a number of its own."""
    tile = Tile[shape[0], shape[1], I64]

    @kernel
    def put(x: In[tile], n: Scalar[I64], y: Out[tile]) -> None:
        pto.store(y, x * 5 + n)

    @kernel
    def mix(x: In[tile], n: Scalar[I64], y: InOut[tile]) -> None:
        pto.store(y, y * 3 + x + n)

    @kernel
    def part(x: In[tile], n: Scalar[I64], y: Out[tile]) -> None:
        pto.store(y, pto.rowsum(x) - n, valid=(1, None))

    return {"put": put, "mix": mix, "part": part}


class Bench:
    """A recipe with its memory: traces it, compiles it, runs it from the same start again and again."""

    def __init__(self, recipe: WorkloadRecipe) -> None:
        rng = np.random.default_rng(recipe.seed)
        self.recipe = recipe
        self.start = rng.integers(-100, 100, (SIDE, SIDE))
        self.memory = self.start.copy()
        self.whole = Tensor(self.memory, name="whole")
        self.part = Tensor(self.memory[2:, 1:], name="part")    # the same memory under another name
        self.lens = Tensor(np.array(recipe.lens, np.int64), name="lens")
        self.kernels = {shape: _kernels(shape) for shape in SHAPES}

    def trace(self) -> Workload:
        """Return the recipe as a workload."""
        @workload
        def drawn() -> None:
            self._parts(self.recipe.parts, (), [])
        return drawn()

    def _parts(self, parts: tuple[Part, ...], loops: tuple[Any, ...], made: list[Any]) -> None:
        for part in parts:
            match part:
                case Call():
                    self._call(part, loops, made)
                case For(extent, ordered, body):
                    if extent == "ragged":
                        outer = Dense[len(self.recipe.lens)]()
                        axis: Any = Ragged(outer, self.lens)[loops[-1]]
                    else:
                        axis = extent
                    for inner in (P.seq if ordered else P)(axis, names=(f"i{len(loops)}",)):
                        self._parts(body, (*loops, inner), made)
                case Together(how, sides):
                    parts_of = [workload(lambda side=side: self._parts(side, loops, [])) for side in sides]
                    (combine if how == "combine" else sequential)(*[side() for side in parts_of])

    def _call(self, call: Call, loops: tuple[Any, ...], made: list[Any]) -> None:
        number = sum((loop * (10 ** k) for k, loop in enumerate(loops)), start=len(made))
        after = [made[-call.after]] if 0 < call.after <= len(made) else []
        made.append(self.kernels[call.shape][call.kernel][len(made)](
            x=self._view(call.x, call.shape, loops), n=number, y=self._view(call.y, call.shape, loops), after=after))

    def _view(self, spot: Spot, shape: tuple[int, int], loops: tuple[Any, ...]) -> Any:
        tensor = self.whole if spot.tensor == "whole" else self.part
        row = sum((step * loop for step, loop in zip(spot.row_steps, loops, strict=False)), start=spot.row)
        col = sum((step * loop for step, loop in zip(spot.col_steps, loops, strict=False)), start=spot.col)
        rows, cols = shape[::-1] if spot.T else shape
        view = tensor[row:row + rows, col:col + cols]
        return view.T if spot.T else view

    def run(self, program: Program, order_seed: int = 0) -> Array:
        """Run from the start, in the seeded adversarial order if one is given; return what the memory holds."""
        self.memory[...] = self.start
        if order_seed:
            run_in_order_of(program, order_seed)
        else:
            program.run()
        return self.memory.copy()


def run_in_order_of(program: Program, order_seed: int) -> None:
    """Run a program on one thread, ready tasks taken in a random legal order."""
    program._compiled.runner.run(program._bind({}), order_seed=order_seed)


def check_orders(bench: Bench, program: Program, expected: Array, seeds: int = 5) -> None:
    """Raise AssertionError where some legal order leaves other bits than program order."""
    for seed in range(1, seeds + 1):
        assert_identical(bench.run(program, order_seed=seed), expected, ("order", seed, bench.recipe))


@contextmanager
def threads_of(program: Program, threads: int) -> Iterator[None]:
    """Run with another number of threads meanwhile."""
    engine = program._compiled.runner
    before, engine.threads = engine.threads, threads
    try:
        yield
    finally:
        engine.threads = before


# ---- drawing ----

Draw: TypeAlias = Callable[..., Any]


@st.composite
def workload_recipes(draw: Draw) -> WorkloadRecipe:
    """Draw a workload of at most a few hundred tasks."""
    lens = tuple(draw(st.lists(st.integers(0, 3), min_size=3, max_size=3)))
    return WorkloadRecipe(_draw_parts(draw, (), 0, lens), lens, draw(st.integers(0, 99)))


def _draw_parts(draw: Draw, extents: tuple[int, ...], depth: int, lens: tuple[int, ...]) -> tuple[Part, ...]:
    return tuple(_draw_part(draw, extents, depth, lens) for _ in range(draw(st.integers(1, 3))))


def _draw_part(draw: Draw, extents: tuple[int, ...], depth: int, lens: tuple[int, ...]) -> Part:
    kind = draw(st.sampled_from(("call", "call", "for", "for", "together") if depth < 3 else ("call",)))
    if kind == "for":
        ragged = bool(extents) and extents[-1] <= len(lens) and draw(st.booleans())
        extent: int | str = "ragged" if ragged else draw(st.integers(0, 3))
        largest = 3 if ragged else int(extent)
        return For(extent, draw(st.booleans()), _draw_parts(draw, (*extents, largest), depth + 1, lens))
    if kind == "together":
        sides = tuple(_draw_parts(draw, extents, depth + 1, lens) for _ in range(draw(st.integers(2, 3))))
        return Together(draw(st.sampled_from(("combine", "sequential"))), sides)
    shape = draw(st.sampled_from(SHAPES))
    return Call(draw(st.sampled_from(("put", "mix", "mix", "part"))), shape, _draw_spot(draw, shape, extents),
                _draw_spot(draw, shape, extents), draw(st.integers(0, 3)))


def _draw_spot(draw: Draw, shape: tuple[int, int], extents: tuple[int, ...]) -> Spot:
    tensor, turned = draw(st.sampled_from(("whole", "whole", "part"))), draw(st.booleans()) and draw(st.booleans())
    limits = (SIDE, SIDE) if tensor == "whole" else (SIDE - 2, SIDE - 1)
    begins: list[tuple[int, tuple[int, ...]]] = []
    for limit, size in zip(limits, shape[::-1] if turned else shape, strict=True):
        room, steps = limit - size, []
        for extent in extents:
            last = max(extent - 1, 0)
            step = draw(st.integers(0, min(3, room // last if last else 3)))
            room -= step * last
            steps.append(step)
        begins.append((draw(st.integers(0, room)), tuple(steps)))
    (row, row_steps), (col, col_steps) = begins
    return Spot(tensor, row, col, row_steps, col_steps, turned)
