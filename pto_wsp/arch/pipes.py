"""What the statements of a kernel do on the pipes of a core, and how long each takes.

A statement is one or more stages, each on one pipe: a load is an MTE2 stage, a matrix product an MTE1 stage (its operands into the
cube's memories) and a cube stage, an operation on tiles a vector stage, a store an MTE3 stage. What the cube made leaves by the
fixpipe. Every stage is issued by the scalar pipe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import assert_never

from pto_wsp.arch.model import UNITS, Arch, ExecUnit
from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import piece_of, valid_of, valid_rows_of
from pto_wsp.ops.entry import Work
from pto_wsp.ops.table import find
from pto_wsp.types import scalar as s
from pto_wsp.types.dtype import DType
from pto_wsp.types.tile import TileType
from pto_wsp.values import dataclass

PIPES = UNITS


@dataclass(frozen=True, slots=True)
class Stage:
    """Work on one pipe: cycles as a formula in what a binding decides, and as they are when every piece is whole."""

    pipe: str
    cycles: s.Scalar
    whole: int


class Stages:
    """Gives the stages of statements on one arch. Remembers which values the cube made: they leave its memory once."""

    def __init__(self, kernel: k.Kernel, arch: Arch) -> None:
        self.arch = arch
        self.tiles: Mapping[str, TileType] = {p.name: p.type for p in kernel.params if isinstance(p, k.TileParam)}
        self.in_cube: set[int | str] = set()

    def of(self, stmt: k.Stmt) -> tuple[Stage, ...]:
        """Return the stages of a statement without a body, in the order in which they must run."""
        match stmt:
            case k.Load():
                rows, cols = piece_of(stmt)
                return (self._move("MTE2", elements_moved(stmt, self.tiles), rows * cols, stmt.result.type.dtype),)
            case k.Store():
                pipe = "fixpipe" if not self.arch.neutral and stmt.value.id in self.in_cube else "MTE3"
                return (self._move(pipe, elements_moved(stmt, self.tiles), stmt.value.type.n_elements, stmt.value.type.dtype),)
            case k.Gather(result):
                return (self._move("MTE2", rows_moved(stmt, result.type), result.type.n_elements, result.type.dtype),)
            case k.Scatter(_, _, value):
                pipe = "fixpipe" if not self.arch.neutral and value.id in self.in_cube else "MTE3"
                return (self._move(pipe, rows_moved(stmt, value.type), value.type.n_elements, value.type.dtype),)
            case k.Compute(result, op, operands):
                if find(op).work is Work.MKN:
                    return self._product(result.type, operands, result.id)
                tiles = [result.type, *(o.type for o in operands if isinstance(o, k.Value))]
                work = max(tile.n_elements for tile in tiles)
                if find(op).work is Work.SORT:
                    work = tiles[1].n_elements * max(1, (tiles[1].cols - 1).bit_length())
                widest = max((tile.dtype for tile in tiles), key=lambda dtype: dtype.nbytes)
                return (*self._leaving(operands), self._work("vector", work, widest))
            case k.Accumulate(buffer, lhs, rhs):
                return self._product(buffer.type, (lhs, rhs), f"#{buffer.id}")
            case k.Read(result, buffer):
                if f"#{buffer.id}" in self.in_cube:
                    self.in_cube.add(result.id)
                return ()
            case k.Write(buffer, value):
                if value.id in self.in_cube:
                    self.in_cube.add(f"#{buffer.id}")
                return ()
            case k.Alloc() | k.Print() | k.Check():
                return ()
            case k.For() | k.If() | k.Rows() | k.Columns():
                raise AssertionError("a statement with a body")
            case _:
                assert_never(stmt)

    def of_whole_kernel(self, kernel: k.Kernel) -> tuple[Stage, ...]:
        """Return the stages of a kernel whose work is not known: what is bound moves once."""
        stages: list[Stage] = []
        for param in kernel.memory_params:
            dtype = param.type.dtype if isinstance(param, k.TileParam) else param.dtype
            whole = param.type.n_elements if isinstance(param, k.TileParam) else 0
            moved = s.mul(s.ParamExtent(param.name, 0), s.ParamExtent(param.name, 1))
            stages += [self._move(pipe, moved, whole, dtype) for pipe, moves in (("MTE2", param.role.reads), ("MTE3", param.role.writes))
                       if moves]
        return tuple(stages)

    def _product(self, result: TileType, operands: Sequence[k.Operand], made: int | str) -> tuple[Stage, ...]:
        tiles = [o.type for o in operands if isinstance(o, k.Value)]
        lhs, rhs = tiles[0], tiles[1]
        depth = lhs.n_elements // result.rows
        cube = self._work("cube", result.n_elements * depth, lhs.dtype)
        if self.arch.neutral:
            return (cube,)
        self.in_cube.add(made)
        return self._work("MTE1", lhs.n_elements + rhs.n_elements, lhs.dtype), cube

    def _leaving(self, operands: Sequence[k.Operand]) -> tuple[Stage, ...]:
        """What the cube made and the vector unit reads leaves the cube's memory first."""
        found: list[Stage] = []
        for operand in operands:
            if not self.arch.neutral and isinstance(operand, k.Value) and operand.id in self.in_cube:
                self.in_cube.discard(operand.id)
                found.append(self._work("fixpipe", operand.type.n_elements, operand.type.dtype))
        return tuple(found)

    def _work(self, pipe: str, count: int, dtype: DType) -> Stage:
        return self._move(pipe, s.Const(count), count, dtype)

    def _move(self, pipe: str, count: s.Scalar, whole: int, dtype: DType) -> Stage:
        unit = self.arch.unit(pipe)
        formula = cycles_of(self.arch, unit, count, dtype)
        full = cycles_of(self.arch, unit, s.Const(whole), dtype)
        assert isinstance(full, s.Const)
        return Stage(pipe, formula, int(full.value))


def cycles_of(arch: Arch, unit: ExecUnit, count: s.Scalar, dtype: DType) -> s.Scalar:
    """Return start-up and throughput of a unit for so many elements.

    Raises: C104 naming the number of the arch that is not known.
    """
    rate = Fraction(arch.rate(unit, str(dtype), dtype.nbytes)).limit_denominator(1 << 16)
    spread = s.mul(count, s.Const(rate.denominator))
    cycles = spread if rate.numerator == 1 else s.ceil_div(spread, s.Const(rate.numerator))
    return s.add(cycles, s.Const(arch.startup(unit)))


def rows_moved(stmt: k.Gather | k.Scatter, rows: TileType) -> s.Scalar:
    """Return how many elements the rows that are picked have together."""
    return s.mul(valid_rows_of(stmt), s.Const(rows.cols))


def elements_moved(stmt: k.Load | k.Store, tiles: Mapping[str, TileType]) -> s.Scalar:
    """Return how many elements move: the valid part, for a Tile parameter cut to what is bound."""
    extents: list[s.Scalar] = []
    for dim, (valid, start) in enumerate(zip(valid_of(stmt), (stmt.row, stmt.col), strict=True)):
        bound = s.sub(s.ParamExtent(stmt.param, dim), start)
        if stmt.param not in tiles:
            extents.append(valid)
        elif start == s.Const(0) and valid == s.Const(tiles[stmt.param].shape[dim]):
            extents.append(bound)
        else:
            extents.append(s.maximum(s.minimum(bound, valid), s.Const(0)))
    return s.mul(*extents)
