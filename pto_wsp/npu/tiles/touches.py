"""Find the memory that the steps of a tile program touch: stretches of on-chip memory, and rectangles of parameters.

Inside a loop body a touch depends on the iteration: a buffer with two copies alternates between two addresses, and `out[j * 16 : j * 16 +
16]` moves with j. Places overlap unless they are proven disjoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TypeAlias

from pto_wsp.errors import InternalError
from pto_wsp.ir.scalar import Binary, Const, Op, Scalar, Unary, Var, binary, leaves, sub
from pto_wsp.npu.isa import tile_program as tp
from pto_wsp.values import dataclass


def iteration_of(loop: tp.For) -> Scalar:
    """Return the iteration number of a loop, 0 in the first."""
    return binary(Op.FLOORDIV, sub(loop.var, loop.start), loop.step)


@dataclass(frozen=True, slots=True)
class Linear:
    """A linear combination of scalars plus a constant."""

    terms: frozenset[tuple[Scalar, int]]
    number: int

    def plus(self, other: Linear, times: int = 1) -> Linear:
        """Return self + times * other."""
        total = dict(self.terms)
        for atom, factor in other.terms:
            total[atom] = total.get(atom, 0) + times * factor
        return Linear(frozenset((atom, factor) for atom, factor in total.items() if factor), self.number + times * other.number)

    def factor(self, atom: Scalar) -> int:
        """Return the coefficient of `atom`."""
        return next((factor for one, factor in self.terms if one == atom), 0)


LinearVars: TypeAlias = Mapping[Var, "Linear | None"]


def linear(node: Scalar, names: LinearVars) -> Linear | None:
    """Return an integer scalar as a linear combination, None if its value is unknown.

    `names`: the values of variables, None for variables of unknown value.
    """
    match node:
        case Const(value):
            return Linear(frozenset(), int(value))
        case Var() if node in names:
            return names[node]
        case Binary(Op.ADD | Op.SUB as op, lhs, rhs):
            first, second = linear(lhs, names), linear(rhs, names)
            return None if first is None or second is None else first.plus(second, 1 if op is Op.ADD else -1)
        case Binary(Op.MUL, inner, Const(times)) | Binary(Op.MUL, Const(times), inner):
            scaled = linear(inner, names)
            return None if scaled is None else Linear(frozenset(), 0).plus(scaled, int(times))
        case Unary(Op.NEG, inner):
            scaled = linear(inner, names)
            return None if scaled is None else Linear(frozenset(), 0).plus(scaled, -1)
        case _:
            is_constant = not any(isinstance(leaf, Var) and leaf in names for leaf in leaves(node))
            return Linear(frozenset({(node, 1)}), 0) if is_constant else None


@dataclass(frozen=True, slots=True)
class Stretch:
    """Bytes start to stop (exclusive) of a memory."""

    space: tp.Space
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Rect:
    """A rectangle of a parameter: start (None: unknown) and maximum extent of rows and columns. `memory`: of its ParamAccess."""

    param: str
    row: Linear | None
    col: Linear | None
    rows: int
    cols: int
    memory: int | None = None


Place: TypeAlias = Stretch | Rect


def overlap(one: Place, other: Place) -> bool:
    """Return whether two places may share a byte."""
    match one, other:
        case Stretch(), Stretch():
            return one.space is other.space and one.start < other.stop and other.start < one.stop
        case Rect(), Rect() if one.param != other.param:
            return one.memory is not None and one.memory == other.memory
        case Rect(), Rect():
            return _meet(one.row, one.rows, other.row, other.rows) and _meet(one.col, one.cols, other.col, other.cols)
        case _:
            return False


def _meet(one: Linear | None, n_one: int, other: Linear | None, n_other: int) -> bool:
    if one is None or other is None:
        return True
    apart = one.plus(other, -1)
    return bool(apart.terms) or -n_one < apart.number < n_other


@dataclass(frozen=True, slots=True)
class Touch:
    """A step's access to a place. `home`: id() of the outermost loop around the step inside the child that it is in."""

    pipe: tp.Pipe
    writes: bool
    place: Place
    home: int | None
    copy_bytes: int = 0              # distance between copies
    copies: int = 1
    iteration: Scalar = Const(0)

    def in_iteration(self, loop: tp.For | None, at: int) -> Place:
        """Return the place in iteration `at` of the loop whose body the block is."""
        place = self.place
        if isinstance(place, Stretch):
            if self.copies == 1:
                return place
            if loop is not None and self.iteration == iteration_of(loop):
                ahead = at % self.copies * self.copy_bytes
                return Stretch(place.space, place.start + ahead, place.stop + ahead)
            return Stretch(place.space, place.start, place.stop + (self.copies - 1) * self.copy_bytes)
        if loop is None:
            return place
        return Rect(place.param, _advance(place.row, loop, at), _advance(place.col, loop, at), place.rows, place.cols, place.memory)


def _advance(start: Linear | None, loop: tp.For, at: int) -> Linear | None:
    if start is None or not start.factor(loop.var):
        return start
    if not isinstance(loop.step, Const):
        return None
    return start.plus(Linear(frozenset(), start.factor(loop.var) * int(loop.step.value) * at))


@dataclass(slots=True)
class Survey:
    """Walks the children of a block and finds what each touches. `declared` and `names` hold for the current position."""

    program: tp.TileProgram
    loop: tp.For | None             # the loop whose body the block is
    declared: dict[int, tp.BindTile]
    names: dict[Var, Linear | None] = field(default_factory=dict)
    tiles: dict[int, tp.TileView] = field(default_factory=dict)
    buffers: dict[int, tp.ChipBuffer] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tiles = {tile.id: tile for tile in self.program.tiles}
        self.buffers = {buffer.id: buffer for buffer in self.program.buffers}
        if self.loop is not None:
            self.names[self.loop.var] = Linear(frozenset({(self.loop.var, 1)}), 0)

    def child(self, step: tp.Step, home: int | None = None) -> list[Touch]:
        """Return the touches of a step and of the steps inside it, and record its declarations."""
        match step:
            case tp.BindTile(tile):
                self.declared[tile] = step
                return []
            case tp.Let(var, value):
                self.names[var] = linear(value, self.names)
                return []
            case tp.For():
                self.names[step.var] = None
                return self._block(step.body, id(step) if home is None else home)
            case tp.If():
                return [*self._block(step.then, home), *self._block(step.other, home)]
            case tp.Peek(var) | tp.GmPeek(var):
                self.names[var] = None
            case _:
                pass
        pipe = tp.pipe_of(step, self.program)
        return [] if pipe is None else [*self._on_chip(step, pipe, home), *self._global(step, pipe, home)]

    def _block(self, body: tuple[tp.Step, ...], home: int | None) -> list[Touch]:
        outer = dict(self.declared)
        touches = [touch for step in body for touch in self.child(step, home)]
        self.declared = outer
        return touches

    def _on_chip(self, step: tp.Step, pipe: tp.Pipe, home: int | None) -> list[Touch]:
        return [self._of_tile(arg, pipe, home) for arg in tp.uses_of(step)]

    def _of_tile(self, arg: tp.TileArg, pipe: tp.Pipe, home: int | None) -> Touch:
        tile = self.tiles[arg.tile]
        buffer, declare = self.buffers[tile.buffer], self.declared.get(arg.tile)
        if declare is None or buffer.address is None:
            raise InternalError(f"tile `{tile.name}` is used where it has no place", self.program.name)
        first, last = tile.offset, tile.offset + tile.size_bytes
        if isinstance(declare.shift, Const):
            first, last = first + int(declare.shift.value), last + int(declare.shift.value)
        else:
            first, last = 0, buffer.size_bytes
        copy = declare.iteration
        if isinstance(copy, Const) and buffer.copies > 1:
            start = buffer.address + int(copy.value) % buffer.copies * buffer.size_bytes
            return Touch(pipe, arg.access.writes, Stretch(buffer.space, start + first, start + last), home)
        place = Stretch(buffer.space, buffer.address + first, buffer.address + last)
        return Touch(pipe, arg.access.writes, place, home, buffer.size_bytes, buffer.copies, copy)

    def _global(self, step: tp.Step, pipe: tp.Pipe, home: int | None) -> list[Touch]:
        match step:
            case tp.GmLoad(tile, param, row, col, turned):
                return [Touch(pipe, False, self._rect(param, row, col, *_extents(self.tiles[tile], turned)), home)]
            case tp.GmStore(param, tile, row, col, turned):
                return [Touch(pipe, True, self._rect(param, row, col, *_extents(self.tiles[tile], turned)), home)]
            case tp.GmPeek(_, param, row, col):
                return [Touch(pipe, False, self._rect(param, row, col, 1, 1), home)]
            case _:
                return []

    def _rect(self, param: str, row: Scalar, col: Scalar, rows: int, cols: int) -> Rect:
        return Rect(param, linear(row, self.names), linear(col, self.names), rows, cols, self.program.memory(param))


def _extents(tile: tp.TileView, turned: bool) -> tuple[int, int]:
    """Return the largest row and column counts of global memory that a tile moves."""
    rows, cols = tile.valid_rows, tile.valid_cols
    down = int(rows.value) if isinstance(rows, Const) else tile.rows
    across = int(cols.value) if isinstance(cols, Const) else tile.cols
    return (across, down) if turned else (down, across)
