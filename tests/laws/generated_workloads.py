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
    Sparse,
    Tensor,
    Tile,
    Workload,
    combine,
    kernel,
    pto,
    sequential,
    slot_set_u64,
    slot_u64,
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


@dataclass(frozen=True)
class Test:
    """A condition: `of` a loop variable (by its level), "lens" of the innermost one or "slot", at least or below `bound`."""

    of: int | str
    at_least: bool
    bound: int


@dataclass(frozen=True)
class If:
    """Branches with their conditions, and what is done where none holds (no body: there is no P.otherwise)."""

    tests: tuple[Test, ...]
    sides: tuple[tuple[Part, ...], ...]
    otherwise: tuple[Part, ...] | None


@dataclass(frozen=True)
class Walk:
    """A sparse row of the innermost loop variable; `values`: tasks inside also add what stands at the position."""

    ordered: bool
    body: tuple[Part, ...]


@dataclass(frozen=True)
class Slotted:
    """A slot of its own, set to the sum of the loop variables and `more`; tasks inside add it, conditions inside may ask it."""

    more: int
    body: tuple[Part, ...]


Part: TypeAlias = Call | For | Together | If | Walk | Slotted
Route: TypeAlias = tuple[int, ...]      # which part of which part: names one that stands in a recipe twice


@dataclass(frozen=True)
class WorkloadRecipe:
    """A workload, the lengths of its ragged axis, the seed of its numbers, and the columns of each row of its sparse axis."""

    parts: tuple[Part, ...]
    lens: tuple[int, ...]
    seed: int
    columns: tuple[tuple[int, ...], ...] = ((0, 2), (), (1,))


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
        indptr = np.cumsum([0, *(len(row) for row in recipe.columns)])
        indices = np.array([column for row in recipe.columns for column in row], np.int64)
        self.values = Tensor(rng.integers(-5, 5, len(indices)), name="values")
        self.routing = Sparse(Dense[len(recipe.columns)](), Tensor(indptr, name="indptr"), Tensor(indices, name="indices"))
        self.numbers: dict[Route, int] = {}      # of the tasks' calls, as they were traced
        self.n_slots = 0
        self.kernels = {shape: _kernels(shape) for shape in SHAPES}

    def trace(self) -> Workload:
        """Return the recipe as a workload."""
        self.n_slots = 0

        @workload
        def drawn() -> None:
            self._parts(self.recipe.parts, (), [], (), ())
        return drawn()

    def _parts(self, parts: tuple[Part, ...], loops: tuple[Any, ...], made: list[Any], route: Route, extra: tuple[Any, ...]) -> None:
        """`extra`: slots and values that tasks add to their numbers, a slot last where there is one."""
        for at, part in enumerate(parts):
            here = (*route, at)
            match part:
                case Call():
                    self._call(part, loops, made, here, extra)
                case For(extent, ordered, body):
                    if extent == "ragged":
                        outer = Dense[len(self.recipe.lens)]()
                        axis: Any = Ragged(outer, self.lens)[loops[-1]]
                    else:
                        axis = extent
                    for inner in (P.seq if ordered else P)(axis, names=(f"i{len(loops)}",)):
                        self._parts(body, (*loops, inner), made, here, extra)
                case Walk(ordered, body):
                    for column in (P.sel.seq if ordered else P.sel)(self.routing[loops[-1]], names=(f"i{len(loops)}",)):
                        self._parts(body, (*loops, column), made, here, (*extra, self.values[column.position]))
                case If():
                    self._branches(part, loops, made, here, extra)
                case Slotted(more, body):
                    slot, self.n_slots = self.n_slots % 64, self.n_slots + 1
                    slot_set_u64(slot, sum(loops, start=more))
                    self._parts(body, loops, made, here, (*extra, slot_u64(slot)))
                case Together(how, sides):
                    parts_of = [workload(lambda side=side, to=(*here, k): self._parts(side, loops, [], to, extra))
                                for k, side in enumerate(sides)]
                    (combine if how == "combine" else sequential)(*[side() for side in parts_of])

    def _branches(self, part: If, loops: tuple[Any, ...], made: list[Any], here: Route, extra: tuple[Any, ...]) -> None:
        """Each branch knows the handles of before; what follows knows those of all."""
        known: list[Any] = []
        for k, (test, side) in enumerate(zip(part.tests, part.sides, strict=True)):
            inside = list(made)
            with (P.elif_ if k else P.when)(self._condition(test, loops, extra)):
                self._parts(side, loops, inside, (*here, k), extra)
            known += inside[len(made):]
        if part.otherwise is not None:
            inside = list(made)
            with P.otherwise():
                self._parts(part.otherwise, loops, inside, (*here, len(part.sides)), extra)
            known += inside[len(made):]
        made += known

    def _condition(self, test: Test, loops: tuple[Any, ...], extra: tuple[Any, ...]) -> Any:
        asked = _asked(test, loops, extra, lambda row: self.lens[row])
        return asked >= test.bound if test.at_least else asked < test.bound

    # ---- by hand ----

    def by_hand(self) -> Array:
        """Return what the recipe leaves, computed here task by task with NumPy: no plan, no stream. `trace()` has come before."""
        memory = self.start.copy()
        arrays = {"whole": memory, "part": memory[2:, 1:]}
        self._do(self.recipe.parts, (), (), (), arrays)
        return memory

    def _do(self, parts: tuple[Part, ...], loops: tuple[int, ...], route: Route, extra: tuple[int, ...], arrays: dict[str, Array]) -> None:
        for at, part in enumerate(parts):
            here = (*route, at)
            match part:
                case Call():
                    number = sum(loop * 10 ** k for k, loop in enumerate(loops)) + self.numbers[here] + sum(extra)
                    spots = [self._array(spot, part.shape, loops, arrays) for spot in (part.x, part.y)]
                    spots[1][...] = self.kernels[part.shape][part.kernel].run(spots[0].copy(), number, spots[1].copy())
                case For(extent, _, body):
                    for inner in range(self.recipe.lens[loops[-1]] if extent == "ragged" else int(extent)):
                        self._do(body, (*loops, inner), here, extra, arrays)
                case Walk(_, body):
                    first = sum(len(row) for row in self.recipe.columns[:loops[-1]])
                    for position, column in enumerate(self.recipe.columns[loops[-1]], first):
                        assert self.values.data is not None
                        self._do(body, (*loops, column), here, (*extra, int(self.values.data[position])), arrays)
                case If(tests, sides, otherwise):
                    asked = [_asked(test, loops, extra, self.recipe.lens.__getitem__) for test in tests]
                    holds = [value >= test.bound if test.at_least else value < test.bound for test, value in zip(tests, asked, strict=True)]
                    chosen = holds.index(True) if True in holds else len(sides)
                    self._do((*sides, otherwise or ())[chosen], loops, (*here, chosen), extra, arrays)
                case Slotted(more, body):
                    self._do(body, loops, here, (*extra, sum(loops) + more), arrays)
                case Together(_, sides):
                    for k, side in enumerate(sides):
                        self._do(side, loops, (*here, k), extra, arrays)

    def _array(self, spot: Spot, shape: tuple[int, int], loops: tuple[int, ...], arrays: dict[str, Array]) -> Array:
        row = spot.row + sum(step * loop for step, loop in zip(spot.row_steps, loops, strict=False))
        col = spot.col + sum(step * loop for step, loop in zip(spot.col_steps, loops, strict=False))
        rows, cols = shape[::-1] if spot.T else shape
        view = arrays[spot.tensor][row:row + rows, col:col + cols]
        return view.T if spot.T else view

    # ---- as a workload ----

    def _call(self, call: Call, loops: tuple[Any, ...], made: list[Any], here: Route, extra: tuple[Any, ...]) -> None:
        self.numbers[here] = len(made)
        number = sum((loop * (10 ** k) for k, loop in enumerate(loops)), start=len(made)) + sum(extra)
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
    program.compiled.runner.run(program.bind(), order_seed=order_seed)


def check_orders(bench: Bench, program: Program, expected: Array, seeds: int = 5) -> None:
    """Raise AssertionError where some legal order leaves other bits than program order."""
    for seed in range(1, seeds + 1):
        assert_identical(bench.run(program, order_seed=seed), expected, ("order", seed, bench.recipe))


@contextmanager
def threads_of(program: Program, threads: int) -> Iterator[None]:
    """Run with another number of threads meanwhile."""
    engine = program.compiled.runner
    before, engine.threads = engine.threads, threads
    try:
        yield
    finally:
        engine.threads = before


def _asked(test: Test, loops: tuple[Any, ...], extra: tuple[Any, ...], lens: Callable[[Any], Any]) -> Any:
    """Return what a condition asks, as a scalar or as a number."""
    if test.of == "lens":
        return lens(loops[-1])
    return sum(extra) if test.of == "slot" else loops[int(test.of)]


# ---- drawing ----

Draw: TypeAlias = Callable[..., Any]


ROWS = 3     # of the ragged and the sparse axis
PLAIN = ("call", "call", "for", "for", "together")


@st.composite
def workload_recipes(draw: Draw, control: bool = False) -> WorkloadRecipe:
    """Draw a workload of at most a few hundred tasks; with `control` also branches, sparse walks and slots."""
    lens = tuple(draw(st.lists(st.integers(0, 3), min_size=ROWS, max_size=ROWS)))
    kinds = (*PLAIN, "if", "if", "walk", "slotted") if control else PLAIN
    parts = _draw_parts(draw, (), 0, kinds, slots=False)
    columns = tuple(tuple(sorted(draw(st.sets(st.integers(0, 2), max_size=3)))) for _ in range(ROWS if control else 0))
    seed = draw(st.integers(0, 99))
    return WorkloadRecipe(parts, lens, seed, columns) if control else WorkloadRecipe(parts, lens, seed)


def _draw_parts(draw: Draw, extents: tuple[int, ...], depth: int, kinds: tuple[str, ...], *, slots: bool) -> tuple[Part, ...]:
    return tuple(_draw_part(draw, extents, depth, kinds, slots=slots) for _ in range(draw(st.integers(1, 3))))


def _draw_part(draw: Draw, extents: tuple[int, ...], depth: int, kinds: tuple[str, ...], *, slots: bool) -> Part:
    kind = draw(st.sampled_from(kinds if depth < 3 else ("call",)))
    if kind == "walk" and not (extents and extents[-1] <= ROWS):
        kind = "for"
    if kind == "for":
        ragged = bool(extents) and extents[-1] <= ROWS and draw(st.booleans())
        extent: int | str = "ragged" if ragged else draw(st.integers(0, 3))
        largest = 3 if ragged else int(extent)
        return For(extent, draw(st.booleans()), _draw_parts(draw, (*extents, largest), depth + 1, kinds, slots=slots))
    if kind == "together":
        sides = tuple(_draw_parts(draw, extents, depth + 1, kinds, slots=slots) for _ in range(draw(st.integers(2, 3))))
        return Together(draw(st.sampled_from(("combine", "sequential"))), sides)
    if kind == "walk":
        return Walk(draw(st.booleans()), _draw_parts(draw, (*extents, 3), depth + 1, kinds, slots=slots))
    if kind == "slotted":
        return Slotted(draw(st.integers(-2, 4)), _draw_parts(draw, extents, depth + 1, kinds, slots=True))
    if kind == "if" and (extents or slots):
        tests = tuple(_draw_test(draw, extents, slots=slots) for _ in range(draw(st.integers(1, 3))))
        chosen = tuple(_draw_parts(draw, extents, depth + 1, kinds, slots=slots) for _ in tests)
        rest = _draw_parts(draw, extents, depth + 1, kinds, slots=slots) if draw(st.booleans()) else None
        return If(tests, chosen, rest)
    shape = draw(st.sampled_from(SHAPES))
    return Call(draw(st.sampled_from(("put", "mix", "mix", "part"))), shape, _draw_spot(draw, shape, extents),
                _draw_spot(draw, shape, extents), draw(st.integers(0, 3)))


def _draw_test(draw: Draw, extents: tuple[int, ...], *, slots: bool) -> Test:
    asked: list[int | str] = [*range(len(extents)), *(("slot",) * 2 if slots else ())]
    if extents and extents[-1] <= ROWS:
        asked.append("lens")
    return Test(draw(st.sampled_from(asked)), draw(st.booleans()), draw(st.integers(0, 3)))


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
