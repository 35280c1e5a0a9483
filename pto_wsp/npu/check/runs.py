"""Enumerate runs of a tile program for the checks: loops of zero to a few iterations, both sides of branches, symbolic scalars.

Scalars that only the device knows (extents, arguments, values read from memory) are drawn several times, small to large. An expression with
the same value in every draw is known, such as the copy of an iteration or the distance of two rows; any other value is unknown.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import field
from typing import TypeAlias

from pto_wsp.errors import InternalError
from pto_wsp.ir.scalar import Const, Number, ParamScalar, Scalar, Var, evaluate, leaves
from pto_wsp.npu.isa import tile_program as tp
from pto_wsp.values import dataclass

_SIZES = ((1, 2), (3, 9), (20, 200), (1 << 20, 1 << 30))      # ranges of the draws
DRAWS = len(_SIZES)
_LONGEST = 6000                      # steps of a run; longer runs get fewer iterations

Drawn: TypeAlias = tuple[int, ...]   # one value per draw


def common_value(value: Drawn) -> int | None:
    """Return a value that is equal in all draws, None if the draws differ."""
    return value[0] if len(set(value)) == 1 else None


@dataclass(frozen=True, slots=True)
class Bytes:
    """A stretch of an on-chip memory, with the buffer and the tile that it belongs to."""

    space: tp.Space
    start: int
    stop: int
    buffer: int
    tile: int


@dataclass(frozen=True, slots=True)
class ParamRect:
    """A rectangle of a parameter. `memory`: alias class of the parameter, None if it aliases no written one."""

    param: str
    row: Drawn
    col: Drawn
    rows: int
    cols: int
    memory: int | None = None

    @property
    def where(self) -> str | int:
        """Return the key that regions have in common if they may overlap."""
        return self.param if self.memory is None else self.memory


@dataclass(frozen=True, slots=True)
class PlaceUse:
    """An access of a step to a place."""

    place: Bytes | ParamRect
    reads: bool
    writes: bool


@dataclass(frozen=True, slots=True)
class WorkStep:
    """A step of work in a run."""

    step: tp.Step
    pipe: tp.Pipe
    uses: tuple[PlaceUse, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """A flag that is set or awaited, or a barrier, with its event."""

    step: tp.SetFlag | tp.WaitFlag | tp.Barrier
    event: int | None


@dataclass(frozen=True, slots=True)
class Ending:
    """A possible end of the kernel. `step`: the Leave, None for the last line."""

    step: tp.Leave | None


Happening: TypeAlias = "WorkStep | Mark | Ending"
Run: TypeAlias = tuple[Happening, ...]


@dataclass(frozen=True, slots=True)
class Choices:
    """The decisions of a run.

    `iterations`: iterations of every loop, None for a number per loop. `side`: the side that branches take, None for alternating sides per
    branch. `seed`: for the numbers of each loop and branch.
    """

    iterations: int | None
    side: bool | None
    seed: int = 0


def runs_of(program: tp.TileProgram) -> Iterator[Run]:
    """Yield distinct runs: equal and mixed iteration counts, all branches the same way, and any two branches different ways."""
    flat = list(tp.steps(program.body))
    loops = any(isinstance(step, tp.For) for step in flat)
    branches = sum(isinstance(step, tp.If) for step in flat)
    most = max((buffer.copies for buffer in program.buffers), default=1) + 2
    iterations: list[int | None] = [*range(most + 1)] if loops else [0]
    sides: list[bool | None] = [True, False, None] if branches else [True]
    ways = 2 * max(branches - 1, 0).bit_length()     # the numbers of two branches differ in at least one bit
    crossed = [Choices(2, None, seed) for seed in range(ways)]
    mixed = [Choices(None, None, seed) for seed in range(max(4, ways))] if branches + sum(isinstance(s, tp.For) for s in flat) > 1 else []
    seen: set[tuple[int, ...]] = set()
    for choice in (*(Choices(n, side) for n in iterations for side in sides), *crossed, *mixed):
        run = _RunBuilder(program, choice)
        happened = run.happenings()
        taken = tuple(run.taken)
        if taken not in seen:
            seen.add(taken)
            yield happened


@dataclass(slots=True)
class _RunBuilder:
    program: tp.TileProgram
    choice: Choices
    vars: list[dict[Var, int]] = field(default_factory=lambda: [{} for _ in range(DRAWS)])
    places: dict[int, tuple[int, int]] = field(default_factory=dict)      # tile -> bytes
    taken: list[int] = field(default_factory=list)
    visits: dict[int, int] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)                 # of branches, in program order
    tiles: dict[int, tp.TileView] = field(default_factory=dict)
    buffers: dict[int, tp.ChipBuffer] = field(default_factory=dict)
    chance: list[random.Random] = field(default_factory=list)
    length: int = 0
    ended: bool = False

    def happenings(self) -> Run:
        self.tiles = {tile.id: tile for tile in self.program.tiles}
        self.buffers = {buffer.id: buffer for buffer in self.program.buffers}
        self.chance = [random.Random(f"{self.choice}/{draw}") for draw in range(DRAWS)]
        branches = [step for step in tp.steps(self.program.body) if isinstance(step, tp.If)]
        self.numbers = {id(branch): number for number, branch in enumerate(branches)}
        return (*self._block(self.program.body), Ending(None))

    # -- scalars

    def _draw(self, node: Scalar) -> Drawn:
        """Return the value of a scalar in each draw."""
        return tuple(int(evaluate(node, lambda leaf, draw=draw: self._leaf(leaf, draw))) for draw in range(DRAWS))   # type: ignore[misc]

    def _leaf(self, leaf: Scalar, draw: int) -> Number:
        if isinstance(leaf, Var):
            if leaf not in self.vars[draw]:
                raise InternalError(f"`{leaf.name}` is used where it has no value", self.program.name)
            return self.vars[draw][leaf]
        stable = random.Random(f"{leaf}/{draw}")
        return stable.random() if isinstance(leaf, ParamScalar) and leaf.dtype.is_float else stable.randint(*_SIZES[draw])

    def _is_certain(self, node: Scalar) -> bool:
        """Return whether a scalar depends on loop iterations only."""
        return all(isinstance(leaf, Var) and common_value(tuple(values.get(leaf, draw) for draw, values in enumerate(self.vars)))
                   is not None for leaf in leaves(node))

    def _let(self, var: Var, values: Drawn) -> None:
        for known_vars, value in zip(self.vars, values, strict=True):
            known_vars[var] = value

    # -- steps

    def _block(self, body: tuple[tp.Step, ...]) -> Iterator[Happening]:
        for step in body:
            if self.ended:
                return
            yield from self._step(step)

    def _step(self, step: tp.Step) -> Iterator[Happening]:
        match step:
            case tp.BindTile():
                self._declare(step)
            case tp.Let(var, value):
                self._let(var, self._draw(value))
            case tp.For():
                yield from self._loop(step)
            case tp.If(condition, then, other):
                went = bool(self._draw(condition)[0]) if self._is_certain(condition) else self._side(step)
                self.taken.append(int(went))
                yield from self._block(then if went else other)
            case tp.Leave():
                yield Ending(step)
            case tp.SetFlag() | tp.WaitFlag():
                yield Mark(step, common_value(self._draw(step.event)))
            case tp.Barrier():
                yield Mark(step, None)
            case _:
                self.length += 1
                yield self._work(step)

    def _loop(self, loop: tp.For) -> Iterator[Happening]:
        start, stop, by = (self._draw(bound) for bound in (loop.start, loop.stop, loop.step))
        wanted = self.choice.iterations
        if wanted is None:
            wanted = random.Random(f"{self.choice.seed}/{loop.var}").randrange(4)
        if self.length > _LONGEST:
            wanted = min(wanted, 2)
        if all(self._is_certain(bound) for bound in (loop.start, loop.stop, loop.step)):
            most = max((buffer.copies for buffer in self.program.buffers), default=1)
            iterations = _sample(len(range(start[0], stop[0], by[0])), wanted, most)
        else:
            iterations = list(range(wanted))
        self.taken += [len(iterations), *iterations[-1:]]
        for iteration in iterations:
            self._let(loop.var, tuple(first + iteration * step for first, step in zip(start, by, strict=True)))
            yield from self._block(loop.body)

    def _side(self, branch: tp.If) -> bool:
        if self.choice.side is not None:
            return self.choice.side
        visit = self.visits[id(branch)] = self.visits.get(id(branch), -1) + 1
        return bool((visit + self.choice.seed + (self.numbers[id(branch)] >> self.choice.seed // 2)) % 2)

    def _declare(self, step: tp.BindTile) -> None:
        tile = self.tiles[step.tile]
        buffer = self.buffers[tile.buffer]
        if buffer.address is None:
            raise InternalError(f"`{buffer.name}` has no address", self.program.name)
        start, stop = buffer.address, buffer.address + buffer.size_bytes * buffer.copies
        copy = 0 if buffer.copies == 1 else common_value(self._draw(step.iteration))
        if copy is not None:
            start += copy % buffer.copies * buffer.size_bytes
            shift = common_value(self._draw(step.shift))
            if shift is not None:
                start, stop = start + tile.offset + shift, start + tile.offset + shift + tile.size_bytes
            else:
                stop = start + buffer.size_bytes
        self.places[tile.id] = start, stop

    def _work(self, step: tp.Step) -> WorkStep:
        pipe = tp.pipe_of(step, self.program)
        if pipe is None:
            raise InternalError(f"{step} runs on no pipe", self.program.name)
        uses = [PlaceUse(self._bytes(use.tile), use.access.reads, use.access.writes) for use in tp.uses_of(step)]
        match step:
            case tp.GmLoad(tile, param, row, col, turned):
                uses.append(PlaceUse(self._region(param, row, col, *self._extents(tile, turned)), True, False))
            case tp.GmStore(param, tile, row, col, turned):
                uses.append(PlaceUse(self._region(param, row, col, *self._extents(tile, turned)), False, True))
            case tp.GmPeek(var, param, row, col):
                uses.append(PlaceUse(self._region(param, row, col, 1, 1), True, False))
                self._let(var, tuple(one.randint(*size) for one, size in zip(self.chance, _SIZES, strict=True)))
            case tp.Peek(var):
                self._let(var, tuple(one.randint(*size) for one, size in zip(self.chance, _SIZES, strict=True)))
            case _:
                pass
        return WorkStep(step, pipe, tuple(uses))

    def _region(self, param: str, row: Scalar, col: Scalar, rows: int, cols: int) -> ParamRect:
        return ParamRect(param, self._draw(row), self._draw(col), rows, cols, self.program.memory(param))

    def _bytes(self, tile_id: int) -> Bytes:
        tile = self.tiles[tile_id]
        if tile_id not in self.places:
            raise InternalError(f"tile `{tile.name}` is used before it is declared", self.program.name)
        return Bytes(self.buffers[tile.buffer].space, *self.places[tile_id], tile.buffer, tile_id)

    def _extents(self, tile_id: int, turned: bool) -> tuple[int, int]:
        tile = self.tiles[tile_id]
        extents = [int(valid.value) if isinstance(valid, Const) else storage
                   for valid, storage in ((tile.valid_rows, tile.rows), (tile.valid_cols, tile.cols))]
        return (extents[1], extents[0]) if turned else (extents[0], extents[1])


def _sample(n: int, wanted: int, copies: int) -> list[int]:
    """Return some of a loop's `n` iterations, including the last ones, which may take another branch.

    The number of skipped iterations is a multiple of `copies`, so that copies still alternate.
    """
    last = min(2, n, max(wanted - 1, 0))
    first = max(1, wanted - last)
    while first + last < n and (n - last - first) % copies:
        first += 1
    return list(range(n)) if n < 2 or first + last >= n else [*range(first), *range(n - last, n)]


def overlap(one: Bytes | ParamRect, other: Bytes | ParamRect) -> bool:
    """Return whether two places may share a byte."""
    if isinstance(one, Bytes) and isinstance(other, Bytes):
        return one.space is other.space and one.start < other.stop and other.start < one.stop
    if isinstance(one, ParamRect) and isinstance(other, ParamRect):
        if one.param != other.param:
            return one.where == other.where
        return not (_are_disjoint(one.row, one.rows, other.row, other.rows) or _are_disjoint(one.col, one.cols, other.col, other.cols))
    return False


def _are_disjoint(one: Drawn, n_one: int, other: Drawn, n_other: int) -> bool:
    distance = common_value(tuple(b - a for a, b in zip(one, other, strict=True)))
    return distance is not None and (distance >= n_one or -distance >= n_other)
