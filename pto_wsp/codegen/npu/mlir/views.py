"""Give every view of a room a buffer of its own, for a text in which buffers have no addresses.

    TROWSUM stat_col, x, tmp                 TROWSUM stat_col, x, tmp
    TMULS stat_row, stat_row, 0.1     →      TRESHAPE stat_row, stat_col
                                             TMULS stat_row, stat_row, 0.1

What one view was given, another is reshaped from before it is asked for it. That is right whether a reshape copies or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from pto_wsp.errors import DialectError
from pto_wsp.expr import tile_program as tp
from pto_wsp.source import UNKNOWN, Span
from pto_wsp.types.scalar import Const

Held: TypeAlias = Mapping[int, frozenset[int]]      # a room -> the tiles that hold what it holds

_ON_VECTOR = (tp.Form.ROWS, tp.Form.COLUMN)
_MOST_ROUNDS = 8


def part_views(program: tp.TileProgram) -> tp.TileProgram:
    """Return the program with no tile seeing what another was given.

    Raises: N105 at a step that sees a part of a room that was written as another part.
    """
    views = _Views(program)
    body, _ = views.block(program.body, {})
    return replace(program, body=body)


class _Views:
    """Follows who holds what through a program."""

    def __init__(self, program: tp.TileProgram) -> None:
        self.program = program
        self.tiles = {tile.id: tile for tile in program.tiles}

    def block(self, body: tuple[tp.Step, ...], held: Held) -> tuple[tuple[tp.Step, ...], Held]:
        """Return the steps with reshapes among them, and who holds what behind them."""
        now, out = dict(held), list[tp.Step]()
        for step in body:
            match step:
                case tp.Loop():
                    loop, now = self._loop(step, now)
                    out.append(loop)
                case tp.Branch():
                    then, after = self.block(step.then, now)
                    other, otherwise = self.block(step.other, now)
                    now, back = self._joined(after, otherwise, step.span)
                    out.append(replace(step, then=then, other=(*other, *back)))
                case _:
                    out += self._before(step, now)
                    out.append(step)
        return tuple(out), now

    def _loop(self, step: tp.Loop, before: Held) -> tuple[tp.Loop, dict[int, frozenset[int]]]:
        """A turn begins with what is held whether it is the first one or not."""
        entry = dict(before)
        for _ in range(_MOST_ROUNDS):
            body, after = self.block(step.body, entry)
            joined, back = self._joined(entry, after, step.span)
            if joined == entry:
                return replace(step, body=(*body, *back)), joined
            entry = joined
        raise self._refused("a loop", step.span)

    def _joined(self, one: Held, other: Held, span: Span) -> tuple[dict[int, frozenset[int]], list[tp.Step]]:
        """Return who holds what behind either of two ways, and the reshapes that the other way ends with."""
        joined, back = {**one, **other}, list[tp.Step]()
        for room in one.keys() & other.keys():
            joined[room] = one[room] & other[room]
            if not joined[room]:
                wanted, source = min(one[room]), self._same_size(min(one[room]), other[room])
                if source is None:
                    joined[room] = frozenset((min(one[room]),)) if self.tiles[wanted].form not in _ON_VECTOR else frozenset()
                    continue
                joined[room] = frozenset((wanted,))
                back.append(_reshape(wanted, source, span))
        return joined, back

    def _before(self, step: tp.Step, now: dict[int, frozenset[int]]) -> list[tp.Step]:
        """Return the reshapes that a step needs before it, and note what it writes."""
        out: list[tp.Step] = []
        span = step.span if not isinstance(step, tp.Declare) else UNKNOWN
        if isinstance(step, tp.Declare) and step.shift != Const(0):
            raise self._refused(f"tile `{self.tiles[step.tile].name}`", step.span, "it lies at an address that is known only at run time")
        uses = tp.uses_of(step)
        for position, use in enumerate(uses):
            tile = self.tiles[use.tile]
            keeps = use.access is tp.Access.WRITE and tile.form in _ON_VECTOR and not _is_whole(tile)
            if use.access is tp.Access.READ or (use.access is tp.Access.BOTH and position == 0) or keeps:
                out += self._asked(use.tile, now, span, needed=not keeps)
        for use in uses:
            if use.access.writes:
                now[self.tiles[use.tile].room] = frozenset((use.tile,))
        return out

    def _asked(self, tile: int, now: dict[int, frozenset[int]], span: Span, *, needed: bool) -> list[tp.Step]:
        room = self.tiles[tile].room
        if room not in now or tile in now[room]:
            return []
        source = self._same_size(tile, now[room])
        if source is None:
            if not needed and self._apart(tile, now[room]):
                return []
            raise self._refused(f"tile `{self.tiles[tile].name}`", span,
                                f"it sees a part of tile `{self.tiles[min(now[room] or {tile})].name}`")
        now[room] |= {tile}
        return [_reshape(tile, source, span)]

    def _same_size(self, tile: int, others: frozenset[int]) -> int | None:
        one = self.tiles[tile]
        return next((other for other in sorted(others) if (self.tiles[other].size_bytes, self.tiles[other].offset)
                     == (one.size_bytes, one.offset)), None)

    def _apart(self, tile: int, others: frozenset[int]) -> bool:
        """Tell whether a tile has no byte in common with others of its room."""
        one = self.tiles[tile]
        return all(other.offset + other.size_bytes <= one.offset or one.offset + one.size_bytes <= other.offset
                   for other in (self.tiles[found] for found in others))

    def _refused(self, what: str, span: Span, why: str = "its buffers are seen in ways that change from turn to turn") -> DialectError:
        return DialectError(f"`{self.program.name}`: {what} has no form in .pto: {why}", span, expected="buffers seen whole",
                            help="compile for ascend_npu, which gives every buffer its address")


def _is_whole(tile: tp.Tile) -> bool:
    return (tile.valid_rows, tile.valid_cols) == (Const(tile.rows), Const(tile.cols))


def _reshape(to: int, source: int, span: Span) -> tp.Step:
    return tp.Instr("TRESHAPE", (tp.TileArg(to, tp.Access.WRITE), tp.TileArg(source, tp.Access.READ)), span=span)
