"""Tile programs run in NumPy, as the instruction table means them: no addresses, no flags, every buffer its own bytes.

It says what a selection computes without a compiler; the emulated headers of tests/npu run what is emitted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.npu.isa import tile_program as tp
from pto_wsp.npu.isa.instructions import Kind, find_instruction, legal

Array = npt.NDArray[Any]
_HALVES = (DType.F16.np, DType.BF16.np)
_BINARY: Mapping[str, Callable[..., Any]] = {
    "TADD": np.add, "TSUB": np.subtract, "TMUL": np.multiply, "TDIV": np.divide, "TMAX": np.maximum, "TMIN": np.minimum, "TFMOD": np.fmod,
    "TAND": np.bitwise_and, "TOR": np.bitwise_or, "TXOR": np.bitwise_xor, "TSHL": np.left_shift, "TSHR": np.right_shift}
_UNARY: Mapping[str, Callable[..., Any]] = {
    "TEXP": np.exp, "TLOG": np.log, "TSQRT": np.sqrt, "TABS": np.abs, "TNEG": np.negative, "TNOT": np.invert, "TMOV": lambda x: x,
    "TRELU": lambda x: np.maximum(x, x.dtype.type(0)), "TRSQRT": lambda x: 1 / np.sqrt(x), "TRECIP": lambda x: 1 / x}
_REDUCE: Mapping[str, Callable[..., Any]] = {"SUM": np.sum, "MAX": np.max, "MIN": np.min, "PROD": np.prod}
_RELATION: Mapping[str, Callable[..., Any]] = {"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater,
                                               "GE": np.greater_equal}
_ROUND: Mapping[str, Callable[..., Any]] = {"NONE": np.rint, "RINT": np.rint, "FLOOR": np.floor, "CEIL": np.ceil, "TRUNC": np.trunc}


def run(program: tp.TileProgram, arrays: Mapping[str, Array], scalars: Mapping[str, int | float] | None = None,
        family: str = "a2a3") -> None:
    """Run a program on arrays of its memory parameters, in place."""
    with np.errstate(all="ignore"):
        _Machine(program, arrays, scalars or {}, family).block(program.body)


class _Machine:
    def __init__(self, program: tp.TileProgram, arrays: Mapping[str, Array], scalars: Mapping[str, int | float], family: str) -> None:
        self.program, self.arrays, self.scalars, self.family = program, arrays, scalars, family
        self.buffers = {buffer.id: np.full(buffer.size_bytes, 0xcd, np.uint8) for buffer in program.buffers}
        self.tiles = {tile.id: tile for tile in program.tiles}
        self.vars: dict[s.Var, int | float] = {}
        self.shifts: dict[int, int] = {}

    # ---- values ----

    def value(self, node: s.Scalar) -> Any:
        def leaf(at: s.Scalar) -> int | float:
            match at:
                case s.Const(value):
                    return value
                case s.Var():
                    return self.vars[at]
                case s.ParamScalar(name):
                    return self.scalars[name]
                case s.ParamExtent(name, dim):
                    return self.arrays[name].shape[dim]
            raise AssertionError(at)
        return s.evaluate(node, leaf)

    def storage(self, tile_id: int) -> Array:
        tile = self.tiles[tile_id]
        start = tile.offset + self.shifts[tile_id]
        assert (start % 32 == 0 and tile.cols * tile.dtype.nbytes % 32 == 0) or tile.form is tp.Form.COLUMN, tile.name
        raw = self.buffers[tile.buffer][start:start + tile.size_bytes]
        assert raw.size == tile.size_bytes, f"{tile.name} leaves its buffer"
        dtype = DType.U8 if tile.dtype is DType.BOOL else tile.dtype
        found: Array = raw.view(dtype.np).reshape(tile.rows, tile.cols)
        return found

    def valid(self, tile_id: int) -> Array:
        tile = self.tiles[tile_id]
        rows, cols = int(self.value(tile.valid_rows)), int(self.value(tile.valid_cols))
        assert 1 <= rows <= tile.rows and 1 <= cols <= tile.cols, (tile, rows, cols)
        return self.storage(tile_id)[:rows, :cols]

    # ---- steps ----

    def block(self, body: tuple[tp.Step, ...]) -> bool:
        """Run steps; return True when the kernel left."""
        for step in body:
            match step:
                case tp.BindTile(tile, turn, shift):
                    assert turn == s.Const(0)
                    self.shifts[tile] = int(self.value(shift))
                case tp.GmLoad(tile, param, row, col, turned):
                    self.valid(tile)[:] = self.piece(tile, param, row, col, turned)
                case tp.GmStore(param, tile, row, col):
                    self.piece(tile, param, row, col, step.turned)[:] = self.valid(tile)
                case tp.Instr():
                    self.instruction(step)
                case tp.Let(var, value):
                    self.vars[var] = self.value(value)
                case tp.Peek(var, tile, index):
                    self.vars[var] = self.storage(tile).reshape(-1)[self.value(index)].item()
                case tp.GmPeek(var, param, row, col):
                    self.vars[var] = self.arrays[param][self.value(row), self.value(col)].item()
                case tp.For(var, start, stop, by, inner):
                    for turn in range(self.value(start), self.value(stop), self.value(by)):
                        self.vars[var] = turn
                        if self.block(inner):
                            return True
                case tp.If(condition, then, other):
                    if self.block(then if self.value(condition) else other):
                        return True
                case tp.Leave(condition):
                    if self.value(condition):
                        return True
        return False

    def piece(self, tile: int, param: str, row: s.Scalar, col: s.Scalar, turned: bool) -> Array:
        rows, cols = self.valid(tile).shape[::-1] if turned else self.valid(tile).shape
        r, c = int(self.value(row)), int(self.value(col))
        array = self.arrays[param]
        assert r >= 0 and r + rows <= array.shape[0] and c >= 0 and c + cols <= array.shape[1], (param, r, c, rows, cols, array.shape)
        found = array[r:r + rows, c:c + cols]
        return found.view(np.uint8).T if turned and found.dtype == bool else found.T if turned else found

    def instruction(self, step: tp.Instr) -> None:
        known = find_instruction(step.name)
        form = known.form(len(step.args))
        assert form is not None, step
        args: list[Any] = []
        for operand, arg in zip(form, step.args, strict=True):
            match arg:
                case tp.TileArg(tile, access):
                    assert operand.kind.is_tile and access is operand.access, (step, operand)
                    if operand.kind in (Kind.DATA, Kind.EACH):
                        assert legal(step.name, self.tiles[tile].dtype, self.family), (step.name, self.tiles[tile].dtype)
                    args.append(self.valid(tile))
                case tp.NumberArg(value, dtype):
                    args.append(np.asarray(self.value(value)).astype(dtype.np) if operand.kind is Kind.SCALAR else None)
                case tp.Word(text):
                    args.append(text.partition("::")[2].removeprefix("CAST_"))
        args_named(step.name, self, step, args)


def _wide(x: Array) -> Array:
    return x.astype(np.float32) if x.dtype in _HALVES else x


def args_named(name: str, machine: _Machine, step: tp.Instr, args: list[Any]) -> None:
    """Do what an instruction means."""
    dst = args[0]
    stem = name[1:-1] if name.endswith("S") and f"T{name[1:-1]}" in _BINARY else None
    if name in _BINARY:
        assert dst.shape == args[1].shape == args[2].shape, step
        dst[:] = _BINARY[name](_wide(args[1]), _wide(args[2]))
    elif stem in ("SHL", "SHR"):
        dst[:] = _BINARY[f"T{stem}"](args[1], args[2])
    elif stem is not None:
        assert dst.shape == args[1].shape, step
        dst[:] = _BINARY[f"T{stem}"](_wide(args[1]), _wide(args[2]))
    elif name in _UNARY:
        assert dst.shape == args[1].shape, step
        dst[:] = _UNARY[name](_wide(args[1]))
    elif name == "TEXPANDS":
        dst[:] = args[1]
    elif name == "TCVT":
        assert dst.shape == args[1].shape, step
        dst[:] = _convert(args[1], dst.dtype, args[2])
    elif name == "TCMP":
        assert args[1].shape == args[2].shape
        bits = np.packbits(_RELATION[args[3]](args[1], args[2]), axis=1, bitorder="little")
        assert dst.shape == bits.shape, step
        dst[:] = bits
    elif name == "TSEL":
        assert dst.shape == args[2].shape == args[3].shape
        mask = np.unpackbits(args[1], axis=1, bitorder="little")[:, :dst.shape[1]].astype(bool)
        dst[:] = np.where(mask, args[2], args[3])
    elif name in ("TROWEXPAND", "TCOLEXPAND"):
        assert args[1].shape == ((dst.shape[0], 1) if name == "TROWEXPAND" else (1, dst.shape[1])), step
        dst[:] = args[1]
    elif name.startswith(("TROWEXPAND", "TCOLEXPAND")):
        assert args[2].shape == ((dst.shape[0], 1) if name.startswith("TROW") else (1, dst.shape[1])), step
        dst[:] = _BINARY[f"T{name[10:]}"](args[1], args[2])
    elif name.startswith("TROW") and name[4:] in _REDUCE:
        dst[:] = _REDUCE[name[4:]](args[1], axis=1, keepdims=True)
    elif name.startswith("TCOL") and name[4:] in _REDUCE:
        dst[:] = _REDUCE[name[4:]](args[1], axis=0, keepdims=True)
    else:
        _whole(name, machine, step, args)


def _whole(name: str, machine: _Machine, step: tp.Instr, args: list[Any]) -> None:
    dst = args[0]
    match name:
        case "TTRANS":
            dst[:] = args[1].T
        case "TCI":
            assert dst.shape[0] == 1
            dst[:] = np.arange(dst.shape[1]) + args[1]
        case "TSORT32":
            blocks = args[1].reshape(-1, 32)
            order = np.argsort(-blocks, axis=1, kind="stable")
            pairs = np.stack([np.take_along_axis(blocks, order, 1).view(np.uint32),
                              np.take_along_axis(args[2].reshape(-1, 32), order, 1)], axis=2)
            dst[:] = pairs.reshape(dst.shape).view(dst.dtype)
        case "TMRGSORT":
            pairs = args[1].reshape(-1, 4 * int(args[2]) // 2, 2)
            order = np.argsort(-pairs[:, :, 0], axis=1, kind="stable")
            dst[:] = np.take_along_axis(pairs, order[:, :, None], 1).reshape(dst.shape)
        case "TGATHER":
            dst[:] = args[1][:, {"P0101": 0, "P1010": 1}[step.template[-1].partition("::")[2]]::2]
        case _:
            raise AssertionError(f"the machine has no {name}")


def _convert(x: Array, dtype: np.dtype[Any], mode: str) -> Array:
    if np.issubdtype(dtype, np.integer) and not np.issubdtype(x.dtype, np.integer):
        info = np.iinfo(dtype)
        whole = _ROUND[mode](x.astype(np.float64))
        return np.where(np.isnan(whole), 0, np.clip(whole, info.min, info.max)).astype(dtype)
    return x.astype(np.float32).astype(dtype) if dtype in _HALVES else x.astype(dtype)
