"""Which parameters of a kernel feed what must not be just any number: indices, and operands of functions that have no value below 0."""

from __future__ import annotations

from collections.abc import Callable

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import takes_indices, walk
from pto_wsp.ops.table import find
from pto_wsp.ops.whole import TileFunction


def index_params(kernel: k.Kernel) -> frozenset[str]:
    """Return the parameters whose elements become indices."""
    def seeds(stmt: k.Stmt) -> tuple[k.Operand, ...]:
        match stmt:
            case k.Gather() | k.Scatter():
                return (stmt.index,)
            case k.Compute() if takes_indices(stmt):
                return (stmt.operands[1],)
            case _:
                return ()

    def through(stmt: k.Compute) -> tuple[k.Operand, ...]:
        entry, dtype = find(stmt.op), stmt.result.type.dtype
        if isinstance(entry, TileFunction) and entry.gives_columns:
            return ()       # they fit, whatever the operands are
        return stmt.operands[1:] if dtype in entry.selects else stmt.operands

    return _feeding(kernel, seeds, through)


def positive_params(kernel: k.Kernel) -> frozenset[str]:
    """Return the parameters whose elements, where negative, would give a NaN: by a logarithm, a root, or a power."""
    def seeds(stmt: k.Stmt) -> tuple[k.Operand, ...]:
        match stmt:
            case k.Compute() if stmt.result.type.dtype in find(stmt.op).nan_below_zero:
                return stmt.operands[:1]
            case _:
                return ()

    def through(stmt: k.Compute) -> tuple[k.Operand, ...]:
        entry, dtype = find(stmt.op), stmt.result.type.dtype
        square = dtype in entry.non_negative_of_equals and stmt.operands[0] == stmt.operands[1]
        return () if square or dtype in entry.non_negative else stmt.operands

    return _feeding(kernel, seeds, through)


def _feeding(kernel: k.Kernel, seeds: Callable[[k.Stmt], tuple[k.Operand, ...]],
             through: Callable[[k.Compute], tuple[k.Operand, ...]]) -> frozenset[str]:
    stmts = tuple(walk(kernel.body))
    values = {operand.id for stmt in stmts for operand in seeds(stmt) if isinstance(operand, k.Value)}
    buffers: set[int] = set()
    params: set[str] = set()
    before = (-1, -1)
    while before != (len(values), len(buffers)):
        before = (len(values), len(buffers))
        for stmt in reversed(stmts):
            match stmt:
                case k.Compute(result, _, _, _) if result.id in values:
                    values |= {operand.id for operand in through(stmt) if isinstance(operand, k.Value)}
                case k.Load(result, param) | k.Gather(result, param) if result.id in values:
                    params.add(param)
                case k.Read(result, buffer) if result.id in values:
                    buffers.add(buffer.id)
                case k.Write(buffer, value) if buffer.id in buffers:
                    values.add(value.id)
                case _:
                    pass
    return frozenset(params)
