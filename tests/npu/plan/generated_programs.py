"""Tile programs at random, as selection makes them: no addresses, no flags, one copy of every buffer.

Tiles are read only where something was written before; scratch is an operand of TROWSUM.
"""

from __future__ import annotations

import random

from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel import Role, TensorParam
from pto_wsp.ir.scalar import Binary, Const, Number, Op, ParamExtent, Scalar, Var, add, mul
from pto_wsp.npu.isa import tile_program as tp
from pto_wsp.ops.entry import Unit

F32 = DType.F32
READ, WRITE, BOTH = tp.Access.READ, tp.Access.WRITE, tp.Access.BOTH
_ROLES = {"x": Role.IN, "y": Role.INOUT, "z": Role.OUT}


def extents(turns: int) -> dict[Scalar, Number]:
    """Return values for the scalars of generated programs."""
    return {ParamExtent("x", 0): turns, ParamExtent("y", 0): turns - 1}


class Maker:
    """Draws one program."""

    def __init__(self, seed: int, steps: int = 14) -> None:
        self.chance = random.Random(seed)
        self.left = steps
        self.cube = self.chance.random() < 0.3
        self.buffers: list[tp.ChipBuffer] = []
        self.tiles: list[tp.TileView] = []
        self.n_vars = 0

    def program(self) -> tp.TileProgram:
        body = self.block({}, [], 0)
        if not any(isinstance(step, tp.GmStore) for step in tp.steps(body)):
            space = tp.Space.L0C if self.cube else tp.Space.UB
            body = (*body, tile := self.tile(space, 1), self.load_or_make(tile.tile), self.store(tile.tile, []))
        params = tuple(TensorParam(name, role, F32) for name, role in _ROLES.items())
        access = tuple(tp.ParamAccess(0, 1) for _ in params)
        unit = Unit.CUBE if self.cube else Unit.VECTOR
        return tp.TileProgram("drawn", unit, params, access, tuple(self.buffers), tuple(self.tiles), body)

    def tile(self, space: tp.Space, rows: int) -> tp.BindTile:
        """Declare a tile in a buffer of its own, or a second one on the start of a buffer."""
        forms = {tp.Space.UB: tp.Form.ROWS, tp.Space.L1: tp.Form.NZ, tp.Space.L0A: tp.Form.LEFT, tp.Space.L0B: tp.Form.RIGHT,
                 tp.Space.L0C: tp.Form.ACC}
        rows = rows if space is tp.Space.UB else 16
        buffer = tp.ChipBuffer(len(self.buffers), f"r{len(self.buffers)}", space, rows * 64)
        self.buffers.append(buffer)
        self.tiles.append(tp.TileView(len(self.tiles), f"t{len(self.tiles)}", buffer.id, F32, rows, 16, forms[space], Const(rows),
                                      Const(16)))
        return tp.BindTile(len(self.tiles) - 1)

    def block(self, known: dict[int, bool], loops: list[Var], depth: int) -> tuple[tp.Step, ...]:
        """`known`: tiles in sight -> something was written."""
        found: list[tp.Step] = []
        for _ in range(self.chance.randint(2, 7)):
            self.left -= 1
            if self.left < 0:
                break
            roll = self.chance.random()
            if roll < 0.2 and depth < 3:
                var = self.var("j")
                stop: Scalar = self.chance.choice([Const(2), Const(3), ParamExtent("x", 0), ParamExtent("y", 0)])
                start, step = self.chance.choice([(0, 1), (0, 1), (1, 1), (0, 2)])
                inner = self.block(dict(known), [*loops, var], depth + 1)
                found.append(tp.For(var, Const(start), stop, Const(step), inner))
            elif roll < 0.28 and depth < 3:
                condition = Binary(Op.EQ, loops[-1], Const(0)) if loops else Binary(Op.LT, ParamExtent("x", 0), Const(2))
                sides = [dict(known), dict(known)]
                found.append(tp.If(condition, self.block(sides[0], loops, depth + 1), self.block(sides[1], loops, depth + 1)))
                for tile in known:
                    known[tile] = sides[0][tile] and sides[1][tile]
            else:
                found += self.work(known, loops)
        return tuple(found)

    def work(self, known: dict[int, bool], loops: list[Var]) -> list[tp.Step]:
        return self.cube_work(known, loops) if self.cube else self.vector_work(known, loops)

    def target(self, known: dict[int, bool], space: tp.Space) -> tuple[list[tp.Step], int]:
        """Return a tile to write, an old one or a new one."""
        old = [tile for tile in known if self.buffers[self.tiles[tile].buffer].space is space]
        if old and self.chance.random() < 0.5:
            return [], self.chance.choice(old)
        declare = self.tile(space, self.chance.choice((1, 2, 3)))
        known[declare.tile] = False
        return [declare], declare.tile

    def source(self, known: dict[int, bool], space: tp.Space) -> int | None:
        old = [tile for tile, written in known.items() if written and self.buffers[self.tiles[tile].buffer].space is space]
        return self.chance.choice(old) if old else None

    def vector_work(self, known: dict[int, bool], loops: list[Var]) -> list[tp.Step]:
        roll = self.chance.random()
        source = self.source(known, tp.Space.UB)
        if roll < 0.3 or source is None:
            steps, tile = self.target(known, tp.Space.UB)
            known[tile] = True
            return [*steps, self.load(tile, loops)]
        if roll < 0.55:
            return [self.store(source, loops)]
        if roll < 0.6:
            return [tp.Peek(self.var("p"), source, Const(0))]
        steps, tile = self.target(known, tp.Space.UB)
        if roll < 0.7:
            scratch = self.tile(tp.Space.UB, 1)
            args = (tp.TileArg(tile, WRITE), tp.TileArg(source, READ), tp.TileArg(scratch.tile, BOTH))
            known[tile] = True
            return [*steps, scratch, tp.Instr("TROWSUM", args)]
        access = BOTH if known[tile] and self.chance.random() < 0.4 else WRITE
        known[tile] = True
        other = self.source(known, tp.Space.UB)
        assert other is not None
        operands = (tp.TileArg(source, READ), tp.TileArg(other if other != tile else source, READ))
        return [*steps, tp.Instr("TADD", (tp.TileArg(tile, access), *operands))]

    def cube_work(self, known: dict[int, bool], loops: list[Var]) -> list[tp.Step]:
        roll = self.chance.random()
        l1, left, right, acc = (self.source(known, space) for space in (tp.Space.L1, tp.Space.L0A, tp.Space.L0B, tp.Space.L0C))
        if roll < 0.25 and acc is not None:
            return [self.store(acc, loops)]
        if roll < 0.6 and left is not None and right is not None:
            steps, tile = self.target(known, tp.Space.L0C)
            more = known[tile] and self.chance.random() < 0.6
            known[tile] = True
            so_far = (tp.TileArg(tile, READ),) if more else ()
            args = (tp.TileArg(tile, WRITE), *so_far, tp.TileArg(left, READ), tp.TileArg(right, READ))
            return [*steps, tp.Instr("TMATMUL_ACC" if more else "TMATMUL", args)]
        if roll < 0.8 and l1 is not None:
            steps, tile = self.target(known, tp.Space.L0A if left is None or (right is not None and roll < 0.7) else tp.Space.L0B)
            known[tile] = True
            return [*steps, tp.Instr("TEXTRACT", (tp.TileArg(tile, WRITE), tp.TileArg(l1, READ)))]
        steps, tile = self.target(known, tp.Space.L1)
        known[tile] = True
        return [*steps, self.load(tile, loops)]

    def row(self, loops: list[Var], rows: int) -> Scalar:
        if not loops or self.chance.random() < 0.2:
            return Const(self.chance.randrange(4))
        return add(mul(self.chance.choice(loops), Const(rows)), Const(self.chance.choice((0, 0, rows))))

    def load(self, tile: int, loops: list[Var]) -> tp.Step:
        return tp.GmLoad(tile, self.chance.choice("xxxy"), self.row(loops, self.tiles[tile].rows), Const(0), self.chance.random() < 0.1)

    def load_or_make(self, tile: int) -> tp.Step:
        return tp.Instr("TMATMUL", (tp.TileArg(tile, WRITE),)) if self.cube else self.load(tile, [])

    def store(self, tile: int, loops: list[Var]) -> tp.Step:
        return tp.GmStore(self.chance.choice("zzy"), tile, self.row(loops, self.tiles[tile].rows), Const(0), self.chance.random() < 0.1)

    def var(self, name: str) -> Var:
        self.n_vars += 1
        return Var(name, self.n_vars)


def draw_program(seed: int, steps: int = 14) -> tp.TileProgram:
    """Return the program of a seed."""
    return Maker(seed, steps).program()
