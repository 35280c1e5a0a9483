"""The steps of one product, for one block of its result: chunks of L1, steps of L0A and L0B, and the matrix unit.

    TEXTRACT(left, a, 0, k);  TEXTRACT(right, b, k, 0)
    k == 0 ? TMATMUL(acc, left, right) : TMATMUL_ACC(acc, acc, left, right)

A tile's valid part is what is multiplied, the inner extent too, so nothing around it reaches the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pto_wsp.expr import tile_program as tp
from pto_wsp.plan.npu.known.facts import TRUE, Facts, both
from pto_wsp.plan.npu.select.builder import Builder
from pto_wsp.plan.npu.select.held import Held
from pto_wsp.plan.npu.select.products.chains import Piece
from pto_wsp.plan.npu.select.products.residence import Blocked, PieceKey
from pto_wsp.plan.npu.select.products.tiling import unit, up
from pto_wsp.types import scalar as s
from pto_wsp.types.dtype import DType
from pto_wsp.values import dataclass

ZERO = s.Const(0)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a result: its first row and column, its size, and its valid part."""

    row: s.Scalar
    col: s.Scalar
    rows: int
    cols: int
    valid_rows: s.Scalar
    valid_cols: s.Scalar


@dataclass(frozen=True, slots=True)
class InL1:
    """An operand in L1: its tile, and where in it the block starts."""

    tile: int
    row: s.Scalar
    col: s.Scalar


def l1_form(facts: Facts, piece: Piece) -> tp.Form:
    """Return how a piece lies in L1: as rows, or turned where rows of the tile are not rows in memory."""
    return tp.Form.ZN if piece.turned != facts.lies_turned(piece.load.param) else tp.Form.NZ


class Rooms:
    """Rooms in the memories of the cube core, each made when it is first asked for."""

    def __init__(self, b: Builder) -> None:
        self._b = b
        self._held: dict[object, Held] = {}

    def at(self, key: object, rows: int, cols: int, dtype: DType, name: str, space: tp.Space) -> Held:
        """Return the room of that key, with space for a tile of rows x cols."""
        if key not in self._held:
            room = self._b.room(rows * cols * dtype.nbytes, name, space)
            self._held[key] = Held(room, name, rows, cols, dtype, cols, rows, s.Const(rows), s.Const(cols))
        return self._held[key]


class ProductBlock:
    """Emits one product for one block.

    `whole`: the L1 tiles of operands that are held whole; `chunk`: of the inner dimension; `starts`: where the pieces of loads start.
    """

    def __init__(self, b: Builder, facts: Facts, rooms: Rooms, one: Blocked, block: Block, chunk: int,
                 whole: Mapping[PieceKey, int], starts: Mapping[int, tuple[s.Scalar, s.Scalar]]) -> None:
        self.b, self.facts, self.rooms, self.one, self.block, self.chunk, self.whole = b, facts, rooms, one, block, chunk, whole
        self.starts = starts
        self.dtype = one.product.lhs.dtype

    def emit(self, acc: int, depth: s.Scalar, fresh: s.Scalar) -> None:
        """Add the steps that add `depth` terms to `acc`, which holds nothing yet where `fresh`."""
        lhs, rhs = self.one.product.lhs, self.one.product.rhs
        most = up(self.one.product.inner, self.one.step)
        for base, length, first in self._cut("chunk", depth, self.chunk, most):
            left, right = self._operand(lhs, base, length, left=True), self._operand(rhs, base, length, left=False)
            for at, width, begins in self._cut("inner", length, self.one.step, min(self.chunk, most)):
                self._step(acc, (left, right), at, width, both(fresh, both(first, begins)))

    def _cut(self, name: str, extent: s.Scalar, size: int, most: int) -> Iterator[tuple[s.Scalar, s.Scalar, s.Scalar]]:
        """Yield where pieces of an extent start, how long they are, and the condition that it is the first of them.

        Whole pieces stand in a loop, and so does what is emitted before the next one is asked for. `most`: the extent's bound.
        """
        b = self.b
        if not isinstance(extent, s.Const):
            if most <= size:
                yield ZERO, extent, TRUE
                return
            extent = b.named(extent, "depth")
            var = b.var(name)
            with b.inside() as body:
                yield var, s.minimum(s.Const(size), s.sub(extent, var)), s.Binary(s.Op.EQ, var, ZERO)
            b.add(tp.Loop(var, ZERO, extent, s.Const(size), tuple(body), b.span))
            return
        total = int(extent.value)
        whole = total // size * size
        if whole > size:
            var = b.var(name)
            with b.inside() as body:
                yield var, s.Const(size), s.Binary(s.Op.EQ, var, ZERO)
            b.add(tp.Loop(var, ZERO, s.Const(whole), s.Const(size), tuple(body), b.span))
        elif whole:
            yield ZERO, s.Const(size), TRUE
        if total > whole:
            yield s.Const(whole), s.Const(total - whole), s.Const(whole == 0)

    def _operand(self, piece: Piece, base: s.Scalar, length: s.Scalar, *, left: bool) -> InL1:
        """Return an operand in L1: from where it lies whole, else loaded now."""
        row, col = (self.block.row, base) if left else (base, self.block.col)
        if piece.key in self.whole:
            return InL1(self.whole[piece.key], row, col)
        b, size = self.b, unit(self.dtype)
        inner = up(int(length.value), size) if isinstance(length, s.Const) else self.chunk
        rows, cols = (self.block.rows, inner) if left else (inner, self.block.cols)
        extents = (self.block.valid_rows, length) if left else (length, self.block.valid_cols)
        most = (self.block.rows, self.chunk) if left else (self.chunk, self.block.cols)
        room = self.rooms.at((id(self.one), piece.key), *most, self.dtype, f"{piece.load.result.name or piece.load.param}_l1", tp.Space.L1)
        tile = b.tile(room, l1_form(self.facts, piece), rows, cols, *extents)
        b.add(load_of(piece, tile, self.starts[id(piece.load)], (row, col)))
        return InL1(tile, ZERO, ZERO)

    def _step(self, acc: int, operands: tuple[InL1, InL1], at: s.Scalar, width: s.Scalar, fresh: s.Scalar) -> None:
        b, block, (lhs, rhs) = self.b, self.block, operands
        inner = up(int(width.value), unit(self.dtype)) if isinstance(width, s.Const) else self.one.step
        in_l0a = self._l0("left", block.rows, self.one.step, tp.Space.L0A)
        in_l0b = self._l0("right", self.one.step, block.cols, tp.Space.L0B)
        left = b.tile(in_l0a, tp.Form.LEFT, block.rows, inner, block.valid_rows, width)
        right = b.tile(in_l0b, tp.Form.RIGHT, inner, block.cols, width, block.valid_cols)
        b.emit("TEXTRACT", left, lhs.tile, _index(lhs.row), _index(s.add(lhs.col, at)))
        b.emit("TEXTRACT", right, rhs.tile, _index(s.add(rhs.row, at)), _index(rhs.col))
        start = tp.Instr("TMATMUL", (_writes(acc), _reads(left), _reads(right)), span=b.span)
        more = tp.Instr("TMATMUL_ACC", (_writes(acc), _reads(acc), _reads(left), _reads(right)), span=b.span)
        if isinstance(fresh, s.Const):
            b.add(start if fresh == TRUE else more)
        else:
            b.add(tp.Branch(fresh, (start,), (more,), b.span))

    def _l0(self, name: str, rows: int, cols: int, space: tp.Space) -> Held:
        return self.rooms.at((id(self.one), name), rows, cols, self.dtype, name, space)


def load_of(piece: Piece, tile: int, start: tuple[s.Scalar, s.Scalar], at: tuple[s.Scalar, s.Scalar]) -> tp.GmLoad:
    """Return the load of a part of a piece, which starts there: the part at `at` of the operand."""
    down, across = reversed(at) if piece.turned else at
    return tp.GmLoad(tile, piece.load.param, s.add(start[0], down), s.add(start[1], across), turned=piece.turned, span=piece.load.span)


def _index(value: s.Scalar) -> tp.ScalarArg:
    return tp.ScalarArg(value, DType.I32)


def _reads(tile: int) -> tp.TileArg:
    return tp.TileArg(tile, tp.Access.READ)


def _writes(tile: int) -> tp.TileArg:
    return tp.TileArg(tile, tp.Access.WRITE)

