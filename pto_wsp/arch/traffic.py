"""How many bytes one task of a kernel moves between the shared memory and its core, as a formula in what is known only when it runs.

Loads and gathers bring bytes, stores and scatters take them away; what stays on the core moves none. A kernel whose work is not known
moves what it is bound to once. Caches between memory and core are not modelled: each load counts.

>>> print_scalar(kernel_traffic(scale))
'x.shape[0] * x.shape[1] * 4 + y.shape[0] * y.shape[1] * 4'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from pto_wsp.arch.formula import either, repeated, total_of
from pto_wsp.arch.pipes import elements_moved, rows_moved
from pto_wsp.expr import kernel as k
from pto_wsp.types import scalar as s
from pto_wsp.types.dtype import DType
from pto_wsp.types.tile import TileType


def kernel_traffic(kernel: k.Kernel) -> s.Scalar:
    """Return the bytes that one task moves; extents that a binding decides are `ParamExtent`, Scalar parameters `ParamScalar`."""
    if not kernel.has_meaning:
        return total_of(_bound(param) for param in kernel.memory_params)
    tiles = {param.name: param.type for param in kernel.params if isinstance(param, k.TileParam)}
    return _body(kernel.body, tiles)


def _bound(param: k.TileParam | k.TensorParam) -> s.Scalar:
    dtype = param.type.dtype if isinstance(param, k.TileParam) else param.dtype
    once = _bytes(s.mul(s.ParamExtent(param.name, 0), s.ParamExtent(param.name, 1)), dtype)
    return s.mul(once, s.Const(int(param.role.reads) + int(param.role.writes)))


def _body(body: Sequence[k.Stmt], tiles: Mapping[str, TileType]) -> s.Scalar:
    return total_of(_moved(stmt, tiles) for stmt in body)


def _moved(stmt: k.Stmt, tiles: Mapping[str, TileType]) -> s.Scalar:
    match stmt:
        case k.Load():
            return _bytes(elements_moved(stmt, tiles), stmt.result.type.dtype)
        case k.Store():
            return _bytes(elements_moved(stmt, tiles), stmt.value.type.dtype)
        case k.Gather(result):
            return _bytes(rows_moved(stmt, result.type), result.type.dtype)
        case k.Scatter(_, _, value):
            return _bytes(rows_moved(stmt, value.type), value.type.dtype)
        case k.If(condition, then, other):
            return either(condition, _body(then, tiles), _body(other, tiles))
        case k.For():
            return repeated(stmt, _body(stmt.body, tiles))
        case k.Rows() | k.Columns():
            return _body(stmt.body, tiles)
        case k.Compute() | k.Accumulate() | k.Read() | k.Write() | k.Alloc() | k.Print() | k.Check():
            return s.Const(0)
        case _:
            assert_never(stmt)


def _bytes(elements: s.Scalar, dtype: DType) -> s.Scalar:
    return s.mul(elements, s.Const(dtype.nbytes))
