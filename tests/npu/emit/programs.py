"""TileView programs written by hand, for tests of what comes after selection."""

from __future__ import annotations

from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel import Role, ScalarParamDecl, TensorParam, TileParam
from pto_wsp.ir.tile import TileType
from pto_wsp.npu.isa.tile_program import (
    Access,
    BindTile,
    ChipBuffer,
    For,
    Form,
    GmLoad,
    GmStore,
    Instr,
    Leave,
    NumberArg,
    ParamAccess,
    Space,
    TileArg,
    TileProgram,
    TileView,
)
from pto_wsp.ops.entry import Unit

F32 = DType.F32
READ, WRITE, BOTH = Access.READ, Access.WRITE, Access.BOTH


def const(value: float) -> s.Const:
    """A number known when the program is built."""
    return s.Const(value)


def rms_rows() -> TileProgram:
    """out = x / rowsum(x * x) + eps for up to 16 rows: a view whose rows are counted at run time, statistics, a scalar."""
    rows = s.ParamExtent("x", 0)
    x, out = (TileParam(name, role, TileType(16, 128, F32)) for name, role in (("x", Role.IN), ("out", Role.OUT)))
    tiles = (TileView(0, "x", 0, F32, 16, 128, Form.ROWS, rows, const(128)),
             TileView(1, "sq", 1, F32, 16, 128, Form.ROWS, rows, const(128)),
             TileView(2, "stat", 2, F32, 16, 1, Form.COLUMN, rows, const(1)),
             TileView(3, "stat_row", 2, F32, 1, 16, Form.ROWS, const(1), rows),
             TileView(4, "work", 3, F32, 16, 128, Form.ROWS, rows, const(128)))
    body = (Leave(s.Binary(s.Op.LE, rows, const(0))), *(BindTile(tile.id) for tile in tiles), GmLoad(0, "x", const(0), const(0)),
            Instr("TMUL", (TileArg(1, WRITE), TileArg(0, READ), TileArg(0, READ))),
            Instr("TROWSUM", (TileArg(2, WRITE), TileArg(1, READ), TileArg(4, BOTH))),
            Instr("TADDS", (TileArg(3, WRITE), TileArg(3, READ), NumberArg(s.ParamScalar("eps", F32), F32))),
            Instr("TROWEXPANDDIV", (TileArg(1, WRITE), TileArg(0, READ), TileArg(2, READ))),
            GmStore("out", 1, const(0), const(0)))
    buffers = (ChipBuffer(0, "x", Space.UB, 8192), ChipBuffer(1, "sq", Space.UB, 8192),
             ChipBuffer(2, "stat", Space.UB, 64), ChipBuffer(3, "work", Space.UB, 8192))
    access = (ParamAccess(1, 2, cols=128), ParamAccess(1, 2, cols=128))
    return TileProgram("rms_rows", Unit.VECTOR, (x, ScalarParamDecl("eps", F32), out), access, buffers, tiles, body)


def doubled_blocks() -> TileProgram:
    """out[r, :] = x[r, :] + x[r, :] in blocks of 8 rows, in two buffers by turns; x is bound with every second column."""
    block = s.Var("block", 0)
    x, out = TensorParam("x", Role.IN, F32), TensorParam("out", Role.OUT, F32)
    tiles = (TileView(0, "t", 0, F32, 8, 16, Form.ROWS, const(8), const(16)),)
    row = s.mul(block, const(8))
    body = (For(block, const(0), s.binary(s.Op.FLOORDIV, s.ParamExtent("x", 0), const(8)), const(1),
                 (BindTile(0, iteration=block), GmLoad(0, "x", row, const(0)),
                  Instr("TADD", (TileArg(0, WRITE), TileArg(0, READ), TileArg(0, READ))), GmStore("out", 0, row, const(0)))),)
    return TileProgram("doubled_blocks", Unit.VECTOR, (x, out), (ParamAccess(0, 1, row_step=2), ParamAccess(0, 1)),
                       (ChipBuffer(0, "t", Space.UB, 512, copies=2),), tiles, body)


def product(turned: bool) -> TileProgram:
    """out[32, 64] = a[32, 128] @ b[128, 64]; `turned`: b is bound as [64, 128] and read transposed."""
    a, b, out = (TensorParam(name, role, F32) for name, role in (("a", Role.IN), ("b", Role.IN), ("out", Role.OUT)))
    tiles = (TileView(0, "a", 0, F32, 32, 128, Form.NZ, const(32), const(128)),
             TileView(1, "b", 1, F32, 128, 64, Form.ZN if turned else Form.NZ, const(128), const(64)),
             TileView(2, "left", 2, F32, 32, 128, Form.LEFT, const(32), const(128)),
             TileView(3, "right", 3, F32, 128, 64, Form.RIGHT, const(128), const(64)),
             TileView(4, "acc", 4, F32, 32, 64, Form.ACC, const(32), const(64)))
    body = (*(BindTile(tile.id) for tile in tiles), GmLoad(0, "a", const(0), const(0)), GmLoad(1, "b", const(0), const(0), turned=turned),
            Instr("TEXTRACT", (TileArg(2, WRITE), TileArg(0, READ), NumberArg(const(0), DType.I32), NumberArg(const(0), DType.I32))),
            Instr("TEXTRACT", (TileArg(3, WRITE), TileArg(1, READ), NumberArg(const(0), DType.I32), NumberArg(const(0), DType.I32))),
            Instr("TMATMUL", (TileArg(4, WRITE), TileArg(2, READ), TileArg(3, READ))), GmStore("out", 4, const(0), const(0)))
    spaces = (Space.L1, Space.L1, Space.L0A, Space.L0B, Space.L0C)
    buffers = tuple(ChipBuffer(tile.id, tile.name, space, tile.size_bytes) for tile, space in zip(tiles, spaces, strict=True))
    return TileProgram("product", Unit.CUBE, (a, b, out), (ParamAccess(0, 1),) * 3, buffers, tiles, body)
