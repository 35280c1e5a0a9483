"""What a load or a store of a vector kernel moves: where it starts, how much of it is valid, and when it moves at all.

A piece of a Tensor parameter that would reach outside its region does not move: a device has no way to report it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from pto_wsp.expr import kernel as k
from pto_wsp.expr import tile_program as tp
from pto_wsp.expr.kernel_walk import piece_of
from pto_wsp.plan.npu.select.builder import Builder
from pto_wsp.types import scalar as s
from pto_wsp.types.scalar_text import print_scalar
from pto_wsp.values import dataclass

_ZERO, _ONE = s.Const(0), s.Const(1)


@dataclass(frozen=True, slots=True)
class Piece:
    """What a load or store moves. `turned`: rows of the tile are columns of the parameter.

    `valid_rows`, `valid_cols` count rows and columns of the tile. Conditions: `inside` the region, and not empty, where not known.
    """

    param: str
    row: s.Scalar
    col: s.Scalar
    valid_rows: s.Scalar
    valid_cols: s.Scalar
    inside: s.Scalar
    some_rows: s.Scalar
    some_cols: s.Scalar
    turned: bool = False

    @property
    def condition(self) -> s.Scalar:
        """When it moves at all."""
        return all_of((self.inside, self.some_rows, self.some_cols))

    def complete(self, rows: s.Scalar, cols: s.Scalar) -> s.Scalar:
        """Return when it moves and has so many rows and columns, which it never exceeds, and which are not 0."""
        all_rows, all_cols = (some if n == most else s.binary(s.Op.GE, n, most) for n, most, some in (
            (self.valid_rows, rows, self.some_rows), (self.valid_cols, cols, self.some_cols)))
        return all_of((self.inside, all_rows, all_cols))

    def transposed(self) -> Piece:
        """Return the piece for a tile that is its transpose."""
        return replace(self, turned=not self.turned, valid_rows=self.valid_cols, valid_cols=self.valid_rows,
                       some_rows=self.some_cols, some_cols=self.some_rows)

    def row_at(self, row: s.Scalar) -> Piece:
        """Return the piece of one row of the tile, which is valid."""
        moved = replace(self, col=s.add(self.col, row)) if self.turned else replace(self, row=s.add(self.row, row))
        return replace(moved, valid_rows=_ONE)



def moved_by(b: Builder, stmt: k.Load | k.Store) -> Piece:
    """Return what a statement moves, in rows and columns of the parameter."""
    valid = valid_rows, valid_cols = valid_part(b, stmt)
    inside = inside_of(b, stmt, valid)
    shown = {valid_rows: b.named(valid_rows, "rows"), valid_cols: b.named(valid_cols, "cols")}
    inside, some_rows, some_cols = (s.substitute(one, shown.get) for one in (
        inside, _unproved(b, [(valid_rows, _ONE)]), _unproved(b, [(valid_cols, _ONE)])))
    return Piece(stmt.param, b.scalar(stmt.row), b.scalar(stmt.col), shown[valid_rows], shown[valid_cols], inside, some_rows, some_cols)


def inside_of(b: Builder, stmt: k.Load | k.Store, valid: tuple[s.Scalar, s.Scalar]) -> s.Scalar:
    """Return the condition that the valid part of what a statement moves lies inside its region, and note whether that is proved."""
    if isinstance(_param(b, stmt), k.TileParam):
        return s.Const(True)
    tests: list[tuple[s.Scalar, s.Scalar]] = []
    for first, most, extent, whole in _reaches(b, stmt, valid):
        tests.append((first, _ZERO))
        if not b.surely(most, s.add(first, s.Const(whole))):
            tests.append((most, s.add(first, extent)))
    inside = _unproved(b, tests)
    what = f"{'load' if isinstance(stmt, k.Load) else 'store'} {stmt.param}[{print_scalar(stmt.row)}, {print_scalar(stmt.col)}]"
    b.reaches.append(tp.Reach(what, inside == s.Const(True), stmt.span))
    return inside


def kept_inside(b: Builder, stmt: k.Load, valid: tuple[s.Scalar, s.Scalar]) -> tuple[s.Scalar, s.Scalar]:
    """Return where the piece starts that is loaded: one that may reach outside is moved back, as far as it goes.

    Nothing fills an operand of the matrix unit, so there is no leaving it out. A region smaller than the piece is read from its start.
    """
    row, col = b.scalar(stmt.row), b.scalar(stmt.col)
    if inside_of(b, stmt, valid) == s.Const(True):
        return row, col
    kept: list[s.Scalar] = []
    for first, most, extent, whole in _reaches(b, stmt, valid):
        if not b.surely(most, s.add(first, s.Const(whole))) and not b.surely(most, s.add(first, extent)):
            first = s.minimum(first, s.sub(most, extent))
        kept.append(_at_least_0(b, first))
    return kept[0], kept[1]


def _reaches(b: Builder, stmt: k.Load | k.Store, valid: tuple[s.Scalar, s.Scalar]) -> Iterator[tuple[s.Scalar, s.Scalar, s.Scalar, int]]:
    """Yield, for rows and columns, where a piece starts, the region's extent, the valid extent and that of the whole piece."""
    for dim, (at, extent, whole) in enumerate(zip((stmt.row, stmt.col), valid, piece_of(stmt), strict=True)):
        yield b.scalar(at), b.scalar(s.ParamExtent(stmt.param, dim)), extent, whole


def _unproved(b: Builder, tests: Iterable[tuple[s.Scalar, s.Scalar]]) -> s.Scalar:
    """Return that of each pair the first is at least the second, without what is known."""
    return all_of(s.binary(s.Op.GE, value, least) for value, least in tests if not b.surely(value, least))


def valid_part(b: Builder, stmt: k.Load | k.Store) -> tuple[s.Scalar, s.Scalar]:
    """Return how many rows and columns of the parameter a statement moves, where that lies inside."""
    param, most = _param(b, stmt), piece_of(stmt)
    found = []
    for dim, (given, at) in enumerate(((stmt.valid_rows, stmt.row), (stmt.valid_cols, stmt.col))):
        valid: s.Scalar = s.Const(most[dim])
        if given is not None:
            valid = _smaller(b, _at_least_0(b, b.scalar(given)), valid)
        if isinstance(param, k.TileParam):
            extent, start = b.scalar(s.ParamExtent(stmt.param, dim)), b.scalar(at)
            whole = given is None and start == _ZERO and most[dim] == param.type.shape[dim]
            valid = extent if whole else _smaller(b, valid, _at_least_0(b, s.sub(extent, start)))
        found.append(valid)
    return found[0], found[1]


def _at_least_0(b: Builder, value: s.Scalar) -> s.Scalar:
    return value if b.surely(value, _ZERO) else s.maximum(value, _ZERO)


def _smaller(b: Builder, one: s.Scalar, other: s.Scalar) -> s.Scalar:
    return one if b.surely(other, one) else other if b.surely(one, other) else s.minimum(one, other)


def _param(b: Builder, stmt: k.Load | k.Store) -> k.MemoryParam:
    return next(p for p in b.kernel.memory_params if p.name == stmt.param)


def all_of(conditions: Iterable[s.Scalar]) -> s.Scalar:
    """Return the conjunction; False where one surely does not hold."""
    out: s.Scalar = s.Const(True)
    for condition in dict.fromkeys(conditions):
        if isinstance(condition, s.Const):
            if not condition.value:
                return s.Const(False)
            continue
        out = condition if out == s.Const(True) else s.binary(s.Op.AND, out, condition)
    return out
