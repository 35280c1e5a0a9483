"""What one task of a kernel costs, in cycles, as a formula in what is known only when it runs.

On `unit` nothing overlaps: a tile op costs rows * cols of its largest tile, a matmul m * k * n, a load or store the elements
that it moves, an order of rows rows * cols * log2(cols); reading, writing and allocating buffers costs nothing.

>>> print_scalar(kernel_cost(rmsnorm_tile, unit))
'x.shape[0] * x.shape[1] + out.shape[0] * out.shape[1] + 6160'
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from pto_wsp.arch.model import Arch
from pto_wsp.errors import CompileOptionError
from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import valid_of
from pto_wsp.ops.entry import Work
from pto_wsp.ops.table import find
from pto_wsp.source import here
from pto_wsp.types import scalar as s
from pto_wsp.types.tile import TileType

# Scalar parameters are replaced by the workload's expressions, whose loop variables are numbered from 0 as a kernel's are.
_FIRST_SUM = 1 << 20


def kernel_cost(kernel: k.Kernel, arch: Arch) -> s.Scalar:
    """Return the cycles of one task; extents that a binding decides are `ParamExtent`, Scalar parameters `ParamScalar`.

    Raises: C104 for an arch other than a neutral one: their numbers are not measured yet.
    """
    if not arch.neutral:
        raise CompileOptionError(f"arch `{arch.name}` gives no cost of kernels", here(), expected="unit", found=arch.name,
                                 help="leave arch out for a run in unit cycles")
    tiles = {p.name: p.type for p in kernel.params if isinstance(p, k.TileParam)}
    if not kernel.has_meaning:
        return _moves_all(kernel)
    return _body(kernel.body, tiles)


def _moves_all(kernel: k.Kernel) -> s.Scalar:
    """Return the cost of a kernel whose work is not known: every element that is bound moves once."""
    total: s.Scalar = s.Const(0)
    for param in kernel.memory_params:
        total = s.add(total, s.mul(s.ParamExtent(param.name, 0), s.ParamExtent(param.name, 1)))
    return total


def _body(body: tuple[k.Stmt, ...], tiles: Mapping[str, TileType]) -> s.Scalar:
    fixed: s.Scalar = s.Const(0)
    total: s.Scalar = s.Const(0)
    for stmt in body:
        cost = _statement(stmt, tiles)
        if isinstance(cost, s.Const):
            fixed = s.add(fixed, cost)
        else:
            total = s.add(total, cost)
    return s.add(total, fixed)


def _statement(stmt: k.Stmt, tiles: Mapping[str, TileType]) -> s.Scalar:
    match stmt:
        case k.Compute():
            return s.Const(_compute(stmt))
        case k.Load() | k.Store():
            return _move(stmt, tiles)
        case k.Alloc() | k.Read() | k.Write() | k.Print() | k.Check():
            return s.Const(0)
        case k.Accumulate(buffer, lhs):
            return s.Const(lhs.type.n_elements * buffer.type.cols)
        case k.For():
            return _loop(stmt, tiles)
        case k.Rows() | k.Columns():
            return _body(stmt.body, tiles)
        case k.If(condition, then, other):
            sides = _body(then, tiles), _body(other, tiles)
            return sides[0] if sides[0] == sides[1] else s.select(condition, *sides)
        case _:
            assert_never(stmt)


def _compute(stmt: k.Compute) -> int:
    tiles = [stmt.result.type, *(operand.type for operand in stmt.operands if isinstance(operand, k.Value))]
    match find(stmt.op).work:
        case Work.LARGEST_TILE:
            return max(tile.n_elements for tile in tiles)
        case Work.MKN:
            return tiles[1].n_elements * tiles[0].cols
        case Work.SORT:
            rows, cols = tiles[1].shape
            return rows * cols * max(1, (cols - 1).bit_length())
        case work:
            assert_never(work)


def _move(stmt: k.Load | k.Store, tiles: Mapping[str, TileType]) -> s.Scalar:
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


def _loop(stmt: k.For, tiles: Mapping[str, TileType]) -> s.Scalar:
    body = _body(stmt.body, tiles)
    if stmt.var in s.leaves(body):
        var = s.Var(stmt.var.name, stmt.var.id + _FIRST_SUM)
        return s.Sum(var, stmt.start, stmt.stop, stmt.step, s.substitute(body, lambda node: var if node == stmt.var else None))
    trips = s.maximum(s.ceil_div(s.sub(stmt.stop, stmt.start), stmt.step), s.Const(0))
    return s.mul(trips, body)
