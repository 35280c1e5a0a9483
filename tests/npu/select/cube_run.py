"""Cube tile programs on NumPy: what is not valid is NaN, or a number that no product has, so that it is seen where it gets through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.npu.isa import tile_program as tp

Array = np.ndarray
_POISON = {DType.I8: 101, DType.I32: 1 << 20}


def run_cube(program: tp.TileProgram, args: Mapping[str, Array | int]) -> None:
    """Run a program on arrays and numbers by the names of its parameters."""
    _Run(program, args).body(program.body)


class _Left(Exception):
    """The kernel has ended."""


@dataclass
class _Run:
    program: tp.TileProgram
    args: Mapping[str, Array | int]
    buffers: dict[int, Array] = field(default_factory=dict)           # what a tile of the buffer last held, padding included
    variables: dict[s.Var, int] = field(default_factory=dict)

    def body(self, steps: tuple[tp.Step, ...]) -> None:
        try:
            for step in steps:
                self.step(step)
        except _Left:
            return

    def step(self, step: tp.Step) -> None:
        match step:
            case tp.BindTile() | tp.SetFlag() | tp.WaitFlag() | tp.Barrier():
                pass
            case tp.Let(var, value):
                self.variables[var] = self.number(value)
            case tp.Leave(condition):
                if self.number(condition):
                    raise _Left
            case tp.For(var, start, stop, by, body):
                for at in range(self.number(start), self.number(stop), self.number(by)):
                    self.variables[var] = at
                    for inner in body:
                        self.step(inner)
            case tp.If(condition, then, other):
                for inner in then if self.number(condition) else other:
                    self.step(inner)
            case tp.GmLoad(tile, param, row, col, turned):
                rows, cols = self.valid(tile)
                into, source = self.blank(tile), self.array(param)
                at, to = self.number(row), self.number(col)
                down, across = (cols, rows) if turned else (rows, cols)
                assert at >= 0 and to >= 0 and at + down <= source.shape[0] and to + across <= source.shape[1], "outside of the parameter"
                piece = source[at:at + down, to:to + across]
                into[:rows, :cols] = piece.T if turned else piece
            case tp.GmStore(param, tile, row, col):
                rows, cols = self.valid(tile)
                at, to, into = self.number(row), self.number(col), self.array(param)
                assert at + rows <= into.shape[0] and to + cols <= into.shape[1], "outside of the parameter"
                into[at:at + rows, to:to + cols] = self.held(tile)[:rows, :cols]
            case tp.Instr("TEXTRACT", (tp.TileArg(to_tile), tp.TileArg(from_tile), tp.NumberArg(row), tp.NumberArg(col))):
                at, across = self.number(row), self.number(col)
                rows, cols = self.valid(to_tile)
                source, kept = self.held(from_tile), self.blank(to_tile)
                assert at + kept.shape[0] <= source.shape[0] and across + kept.shape[1] <= source.shape[1], "a tile outside of its source"
                assert at % 16 == 0 and across % 16 == 0
                kept[:] = source[at:at + kept.shape[0], across:across + kept.shape[1]]
                assert rows <= kept.shape[0] and cols <= kept.shape[1]
            case tp.Instr("TMATMUL", (tp.TileArg(acc), tp.TileArg(left), tp.TileArg(right))):
                rows, cols, terms = self.product(left, right)
                self.blank(acc)[:rows, :cols] = terms
            case tp.Instr("TMATMUL_ACC", (tp.TileArg(acc), _, tp.TileArg(left), tp.TileArg(right))):
                rows, cols, terms = self.product(left, right)
                self.held(acc)[:rows, :cols] += terms
            case _:
                raise AssertionError(step)

    def product(self, left: int, right: int) -> tuple[int, int, Array]:
        (rows, inner), (depth, cols) = self.valid(left), self.valid(right)
        one, two = self.program.tile(left), self.program.tile(right)
        assert inner == depth and one.cols == two.rows
        dtype = np.int32 if one.dtype is DType.I8 else np.float32
        terms = self.held(left)[:rows, :inner].astype(np.float64) @ self.held(right)[:depth, :cols].astype(np.float64)
        return rows, cols, terms.astype(dtype)

    def blank(self, tile: int) -> Array:
        """Forget what a buffer held and return its storage for a tile."""
        found = self.program.tile(tile)
        buffer = self.program.buffer(found.buffer)
        assert found.size_bytes <= buffer.size_bytes
        self.buffers[found.buffer] = np.full((found.rows, found.cols), _POISON.get(found.dtype, np.nan), found.dtype.np)
        return self.buffers[found.buffer]

    def held(self, tile: int) -> Array:
        """Return what a tile holds; its buffer was last written in the same shape."""
        found = self.program.tile(tile)
        kept = self.buffers[found.buffer]
        assert kept.shape == (found.rows, found.cols)
        return kept

    def valid(self, tile: int) -> tuple[int, int]:
        found = self.program.tile(tile)
        rows, cols = self.number(found.valid_rows), self.number(found.valid_cols)
        assert 1 <= rows <= found.rows and 1 <= cols <= found.cols, f"{found.name}: {rows} x {cols} of {found.rows} x {found.cols}"
        size = max(16, 32 // found.dtype.nbytes) if found.form is not tp.Form.ACC else 16
        assert found.rows % size == 0 and found.cols % size == 0
        return rows, cols

    def array(self, param: str) -> Array:
        found = self.args[param]
        assert isinstance(found, np.ndarray)
        return found

    def number(self, node: s.Scalar) -> int:
        return int(s.evaluate(node, self.leaf))

    def leaf(self, node: s.Scalar) -> s.Number:
        match node:
            case s.ParamScalar(name):
                value = self.args[name]
                assert not isinstance(value, np.ndarray)
                return value
            case s.ParamExtent(name, dim):
                return int(self.array(name).shape[dim])
            case s.Var():
                return self.variables[node]
            case _:
                raise AssertionError(node)
