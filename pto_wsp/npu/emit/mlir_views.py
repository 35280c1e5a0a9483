"""Give every view of an on-chip buffer a buffer of its own, for `.pto` text, in which buffers have no addresses.

    TROWSUM stat_col, x, tmp                 TROWSUM stat_col, x, tmp
    TMULS stat_row, stat_row, 0.1     →      TRESHAPE stat_row, stat_col
                                             TMULS stat_row, stat_row, 0.1

Before a view is read, it is reshaped from the view that was written last, which is correct whether a reshape copies or not. Rows of a
buffer, or a piece of a single row, are a TSUBVIEW: the same memory. `_Views` is a forward dataflow analysis of the views that hold the
current contents of each buffer; loops iterate to a fixed point.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from pto_wsp.errors import DialectError
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import Binary, Const, Op, Scalar, add, binary, mul
from pto_wsp.npu.isa import tile_program as tp
from pto_wsp.source import UNKNOWN, Span
from pto_wsp.values import dataclass

# buffer -> the tiles with its current contents. ~n: tile n, except for what another tile has written since.
Held: TypeAlias = Mapping[int, frozenset[int]]

_ON_VECTOR = (tp.Form.ROWS, tp.Form.COLUMN)
_MOST_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class TilePart:
    """A tile that is a piece of another: the start row and column in it."""

    whole: int
    row: int
    col: int


def part_views(program: tp.TileProgram) -> tp.TileProgram:
    """Return the program in which no tile reads what another tile wrote, except for parts, which are made at the start.

    Raises: N105 at a step that reads a piece of a buffer without such a form.
    """
    program = with_whole_buffers(program)
    views = _Views(program)
    body, _ = views.block(program.body, {})
    return replace(program, body=(*views.subviews(body), *body))


def with_whole_buffers(program: tp.TileProgram) -> tp.TileProgram:
    """Return the program with a tile of one row for each whole buffer of which only pieces of a row are viewed."""
    new: list[tp.TileView] = []
    first = max((tile.id for tile in program.tiles), default=0) + 1
    for buffer in program.buffers:
        seen = [tile for tile in program.tiles if tile.buffer == buffer.id and tile.form is tp.Form.ROWS and _is_known(tile)]
        pieces = {(tile.offset, tile.size_bytes) for tile in seen}
        if len(pieces) > 1 and all(tile.rows == 1 for tile in seen) and len({tile.dtype for tile in seen}) == 1 \
                and (0, buffer.size_bytes) not in pieces:
            dtype, cols = seen[0].dtype, buffer.size_bytes // seen[0].dtype.nbytes
            new.append(tp.TileView(first + len(new), f"{buffer.name}_whole", buffer.id, dtype, 1, cols, tp.Form.ROWS, Const(1),
                                   Const(cols)))
    return replace(program, tiles=(*program.tiles, *new))


def parts_of(program: tp.TileProgram) -> Mapping[int, TilePart]:
    """Return the tiles with known extents that are rows, or pieces of a single row, of another tile."""
    parts: dict[int, TilePart] = {}
    plain = [tile for tile in program.tiles if tile.form is tp.Form.ROWS and _is_known(tile)]
    for tile in plain:
        wholes = [other for other in plain if other.buffer == tile.buffer and other.offset == 0 and other.dtype is tile.dtype
                  and other.size_bytes > tile.size_bytes]
        whole = max(wholes, key=lambda other: (other.size_bytes, -other.id), default=None)
        if whole is None:
            continue
        row, col = divmod(tile.offset // tile.dtype.nbytes, whole.cols)
        if (col == 0 and tile.cols == whole.cols) or (tile.rows == 1 and col + tile.cols <= whole.cols):
            parts[tile.id] = TilePart(whole.id, row, col)
    return {tile: part for tile, part in parts.items() if part.whole not in parts}


class _Views:
    """Tracks the tiles that hold the current contents of each buffer."""

    def __init__(self, program: tp.TileProgram) -> None:
        self.program = program
        self.tiles = {tile.id: tile for tile in program.tiles}
        self.parts = parts_of(program)

    def subviews(self, body: tuple[tp.Step, ...]) -> Iterator[tp.Step]:
        """Yield the steps that make the parts a body uses."""
        every = tuple(tp.steps(body))
        used = {use.tile: step.span for step in reversed(every) for use in tp.uses_of(step)}
        sliding = {step.tile for step in every if isinstance(step, tp.BindTile) and step.shift != Const(0)}
        for tile, part in self.parts.items():
            if tile in used and tile not in sliding:
                yield _subview(tile, part, Const(part.row), used[tile])

    def block(self, body: tuple[tp.Step, ...], held: Held) -> tuple[tuple[tp.Step, ...], Held]:
        """Return the steps with reshapes inserted, and the contents after them."""
        now, out = dict(held), list[tp.Step]()
        for step in body:
            match step:
                case tp.For():
                    loop, now = self._loop(step, now)
                    out.append(loop)
                case tp.If():
                    then, after = self.block(step.then, now)
                    other, otherwise = self.block(step.other, now)
                    now, back = self._joined(after, otherwise, step.span)
                    out.append(replace(step, then=then, other=(*other, *back)))
                case tp.BindTile(shift=shift) if shift != Const(0):
                    out += (step, self._slid(step))
                case _:
                    out += self._before(step, now)
                    out.append(step)
        return tuple(out), now

    def _loop(self, step: tp.For, before: Held) -> tuple[tp.For, dict[int, frozenset[int]]]:
        """Return a loop whose entry contents hold in the first and in later iterations, with those contents (fixed point)."""
        entry = dict(before)
        for _ in range(_MOST_ROUNDS):
            body, after = self.block(step.body, entry)
            joined, back = self._joined(entry, after, step.span)
            if joined == entry:
                return replace(step, body=(*body, *back)), joined
            entry = joined
        raise self._refused("a loop", step.span)

    def _slid(self, step: tp.BindTile) -> tp.Step:
        """Return the step that makes a part whose start row is known only at run time."""
        tile, part = self.tiles[step.tile], self.parts.get(step.tile)
        pitch = tile.cols * tile.dtype.nbytes
        if part is None or self.tiles[part.whole].cols != tile.cols:
            raise self._refused(f"tile `{tile.name}`", step.span, "it lies at an address that is known only at run time")
        match step.shift:
            case Binary(Op.MUL, rows, Const(int() as factor)) if factor % pitch == 0:
                row = mul(rows, Const(factor // pitch))
            case _:
                row = binary(Op.FLOORDIV, step.shift, Const(pitch))
        return _subview(step.tile, part, add(row, Const(part.row)), step.span)

    def _joined(self, one: Held, other: Held, span: Span) -> tuple[dict[int, frozenset[int]], list[tp.Step]]:
        """Return the contents after either of two paths, and the reshapes that the other path ends with."""
        joined, back = {**one, **other}, list[tp.Step]()
        for buffer in one.keys() & other.keys():
            joined[buffer] = _in_both(one[buffer], other[buffer])
            if not any(tile >= 0 for tile in joined[buffer]):
                wanted = min((tile for tile in one[buffer] if tile >= 0), default=None)
                ended = dict(other)
                steps = None if wanted is None else self._made_to_hold(wanted, ended, span)
                if wanted is None or steps is None:
                    # Cube tiles are written before they are read.
                    on_cube = wanted is not None and self.tiles[wanted].form not in _ON_VECTOR
                    joined[buffer] = frozenset((wanted,)) if wanted is not None and on_cube else frozenset()
                    continue
                joined[buffer] = _in_both(one[buffer], ended[buffer])
                back += steps
        return joined, back

    def _before(self, step: tp.Step, now: dict[int, frozenset[int]]) -> list[tp.Step]:
        """Return the reshapes that a step needs before it, and record its writes."""
        out: list[tp.Step] = []
        span = step.span if not isinstance(step, tp.BindTile) else UNKNOWN
        uses = tp.uses_of(step)
        for position, use in enumerate(uses):
            tile = self.tiles[use.tile]
            keeps = use.access is tp.Access.WRITE and tile.form in _ON_VECTOR and (not _is_whole(tile) or tile.id in self.parts)
            if use.access is tp.Access.READ or (use.access is tp.Access.BOTH and position == 0) or keeps:
                out += self._asked(use.tile, now, span, needed=not keeps)
            elif use.access.writes and tile.id not in self.parts:
                behind = [~other for other in now.get(tile.buffer, ()) if other < 0]
                if behind and not any(other >= 0 and self._same_bytes(other, tile.id) for other in now[tile.buffer]):
                    out += self._asked(behind[0], now, span, needed=True)    # merge one view's write into the whole before another's
        for use in uses:
            if use.access.writes:
                now[self.tiles[use.tile].buffer] = self._after_write(use.tile, now)
        return out

    def _after_write(self, tile: int, now: Held) -> frozenset[int]:
        """Return the tiles that hold a buffer's contents after a write to a tile of it."""
        if tile in self.parts:
            return frozenset((self.parts[tile].whole,))
        one = self.tiles[tile]
        wholes = {part.whole for other, part in self.parts.items() if self._same_bytes(other, tile)}
        before = now.get(one.buffer, frozenset(wholes))
        return frozenset((tile, *(~whole for whole in wholes if {whole, ~whole} & before)))

    def _asked(self, tile: int, now: dict[int, frozenset[int]], span: Span, *, needed: bool) -> list[tp.Step]:
        """Return the reshapes after which a tile holds its buffer's contents, and record that it does."""
        buffer, wanted = self.tiles[tile].buffer, self.parts[tile].whole if tile in self.parts else tile
        if buffer not in now or wanted in now[buffer]:
            return []
        made = self._made_to_hold(wanted, now, span)
        if made is not None:
            return made
        if not needed and (not any(other >= 0 for other in now[buffer]) or self.tiles[tile].form not in _ON_VECTOR):
            return []
        first = min((other for other in now[buffer] if other >= 0), default=tile)
        raise self._refused(f"tile `{self.tiles[tile].name}`", span, f"it sees a part of tile `{self.tiles[first].name}`")

    def _made_to_hold(self, wanted: int, now: dict[int, frozenset[int]], span: Span) -> list[tp.Step] | None:
        """Return the reshapes after which a whole tile holds its buffer's contents, and note the tile in `now`; None if there are none."""
        buffer = self.tiles[wanted].buffer
        for source in sorted(other for other in now[buffer] if other >= 0):
            if self._same_bytes(wanted, source):
                now[buffer] |= {wanted}
                return [_reshape(wanted, source, span)]
            middle = next((part for part in self.parts if self.parts[part].whole == wanted and self._same_bytes(part, source)), None)
            if middle is not None and ~wanted in now[buffer]:
                now[buffer] = frozenset((wanted, source))
                return [_reshape(middle, source, span)]
            middle = next((part for part in self.parts if self.parts[part].whole == source and self._same_bytes(part, wanted)), None)
            if middle is not None:
                now[buffer] |= {wanted}
                return [_reshape(wanted, middle, span)]
        return None

    def _same_bytes(self, one: int, other: int) -> bool:
        first, second = self.tiles[one], self.tiles[other]
        return (first.buffer, first.offset, first.size_bytes) == (second.buffer, second.offset, second.size_bytes)

    def _refused(self, what: str, span: Span, why: str = "its buffers are seen in ways that change between iterations") -> DialectError:
        return DialectError(f"`{self.program.name}`: {what} has no form in .pto: {why}", span, expected="buffers seen whole",
                            help="compile for ascend_npu, which gives every buffer its address")


def _in_both(one: frozenset[int], other: frozenset[int]) -> frozenset[int]:
    """Return what holds a buffer's contents behind both of two paths. A tile that holds all also holds all but other tiles' writes."""
    common = frozenset((*one, *(~tile for tile in one if tile >= 0))) & frozenset((*other, *(~tile for tile in other if tile >= 0)))
    return frozenset(tile for tile in common if tile >= 0 or ~tile not in common)


def _is_known(tile: tp.TileView) -> bool:
    return isinstance(tile.valid_rows, Const) and isinstance(tile.valid_cols, Const)


def _is_whole(tile: tp.TileView) -> bool:
    return (tile.valid_rows, tile.valid_cols) == (Const(tile.rows), Const(tile.cols))


def _subview(tile: int, part: TilePart, row: Scalar, span: Span) -> tp.Step:
    at = tp.NumberArg(row, DType.I32), tp.NumberArg(Const(part.col), DType.I32)
    return tp.Instr("TSUBVIEW", (tp.TileArg(tile, tp.Access.WRITE), tp.TileArg(part.whole, tp.Access.READ), *at), span=span)


def _reshape(to: int, source: int, span: Span) -> tp.Step:
    return tp.Instr("TRESHAPE", (tp.TileArg(to, tp.Access.WRITE), tp.TileArg(source, tp.Access.READ)), span=span)
