"""A program as its `.pto` text means it, for the emulated core: a buffer for every tile, reshapes that copy, parts in their buffers.

Where it gives what the program gives, no tile saw what another was given.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import Const, mul
from pto_wsp.npu.emit.mlir_views import part_views, parts_of, with_whole_buffers
from pto_wsp.npu.isa import tile_program as tp

POISON = 0x7F7F7F7F     # as f32: 3.39e38


def separate(program: tp.TileProgram) -> tp.TileProgram:
    """Return the program with buffers of their own, each full of what no kernel expects."""
    return _Separated(with_whole_buffers(program)).made()


@dataclass
class _Separated:
    program: tp.TileProgram
    buffers: list[tp.ChipBuffer] = field(default_factory=list)
    tiles: dict[int, tp.TileView] = field(default_factory=dict)
    raw: dict[int, int] = field(default_factory=dict)       # a tile -> one that sees its bytes as a row of words

    def made(self) -> tp.TileProgram:
        parts = parts_of(self.program)
        for tile in self.program.tiles:
            if tile.id not in parts:
                size_bytes = -(-tile.size_bytes // 32) * 32
                self.buffers.append(tp.ChipBuffer(len(self.buffers), tile.name, self.program.space(tile.id), size_bytes))
                self.tiles[tile.id] = replace(tile, buffer=self.buffers[-1].id, offset=0)
        for tile in self.program.tiles:
            if tile.id in parts:
                whole = self.tiles[parts[tile.id].whole]
                offset = (parts[tile.id].row * whole.cols + parts[tile.id].col) * tile.dtype.nbytes
                self.tiles[tile.id] = replace(tile, buffer=whole.buffer, offset=offset)   # of those that slide it is 0
        ids = itertools.count(max(self.tiles, default=0) + 1)
        for tile in tuple(self.tiles.values()):
            if tile.form in (tp.Form.ROWS, tp.Form.COLUMN):
                words = tile.size_bytes // 4
                self.raw[tile.id] = next(ids)
                self.tiles[self.raw[tile.id]] = tp.TileView(self.raw[tile.id], f"{tile.name}_raw", tile.buffer, DType.I32, 1, words,
                                                            tp.Form.ROWS, Const(1), Const(words), tile.offset)
        fills = [tp.Instr("TEXPANDS", (tp.TileArg(raw, tp.Access.WRITE), tp.NumberArg(Const(POISON), DType.I32)))
                 for tile, raw in self.raw.items() if tile not in parts]
        body = tuple(self.block((*fills, *part_views(self.program).body), frozenset()))
        return replace(self.program, buffers=tuple(self.buffers), tiles=tuple(self.tiles.values()), body=body)

    def block(self, body: tuple[tp.Step, ...], declared: frozenset[int]) -> Iterator[tp.Step]:
        """Yield the steps with tiles declared where they are first used in their block."""
        for step in body:
            match step:
                case tp.Instr("TSUBVIEW", (tp.TileArg(part), _, tp.NumberArg(row), _)) if not isinstance(row, Const):
                    tile = self.tiles[part]
                    declared |= {part}
                    yield tp.BindTile(part, shift=mul(row, Const(tile.cols * tile.dtype.nbytes)))
                    continue
                case tp.BindTile() | tp.Instr("TSUBVIEW"):
                    continue
                case tp.Instr("TRESHAPE", (tp.TileArg(to), tp.TileArg(source))) if to in self.raw:
                    step = tp.Instr("TMOV", (tp.TileArg(self.raw[to], tp.Access.WRITE), tp.TileArg(self.raw[source], tp.Access.READ)))
                case tp.For():
                    step = replace(step, body=tuple(self.block(step.body, declared)))
                case tp.If():
                    step = replace(step, then=tuple(self.block(step.then, declared)), other=tuple(self.block(step.other, declared)))
            for use in tp.uses_of(step):
                if use.tile not in declared:
                    declared |= {use.tile}
                    yield tp.BindTile(use.tile)
            yield step
