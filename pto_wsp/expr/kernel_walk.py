"""Walking the statements of a kernel, what they define, use and change, and the run-time guards in the order of their numbers.

A guard stands at each load from, and each store to, a Tensor parameter: the piece that is moved must lie inside the region. One
stands at each op that takes indices: they must lie inside the axis.

>>> [guard.what for guard in guards_of(kernel)]
['load x[row, 0]']
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from typing import TypeAlias, assert_never

from pto_wsp.expr.kernel import (
    Accumulate,
    Alloc,
    Buffer,
    Check,
    Columns,
    Compute,
    For,
    Gather,
    Guarded,
    If,
    Kernel,
    Load,
    Print,
    Read,
    Rows,
    Scatter,
    Stmt,
    Store,
    TensorParam,
    Value,
    Write,
)
from pto_wsp.ops.entries import index
from pto_wsp.ops.table import find
from pto_wsp.ops.whole import Movement, TileFunction
from pto_wsp.source import UNKNOWN, Span
from pto_wsp.types import scalar as s
from pto_wsp.types.scalar_text import print_scalar
from pto_wsp.types.tile import TileType
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Guard:
    """A piece of a Tensor parameter that must lie inside the region when it is moved, or indices that must lie inside an axis.

    For a piece, with (n_rows, n_cols) = `valid_of(stmt)` as it is at that point, the guard holds when n_rows or n_cols is 0 (nothing
    moves), or when 0 <= row, 0 <= col, row + n_rows <= rows of the region and col + n_cols <= its columns.
    """

    what: str
    stmt: Guarded
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


Body: TypeAlias = tuple[Stmt, ...]


def bodies_of(stmt: Stmt) -> tuple[Body, ...]:
    """Return the bodies inside a statement, in program order."""
    match stmt:
        case For() | Rows() | Columns():
            return (stmt.body,)
        case If():
            return (stmt.then, stmt.other)
        case Compute() | Load() | Store() | Gather() | Scatter() | Alloc() | Read() | Write() | Accumulate() | Print() | Check():
            return ()
        case _:
            assert_never(stmt)


def map_bodies(stmt: Stmt, change: Callable[[Body], Body]) -> Stmt:
    """Return the statement with `change` applied to each body inside it."""
    match stmt:
        case For() | Rows() | Columns():
            return replace(stmt, body=change(stmt.body))
        case If():
            return replace(stmt, then=change(stmt.then), other=change(stmt.other))
        case Compute() | Load() | Store() | Gather() | Scatter() | Alloc() | Read() | Write() | Accumulate() | Print() | Check():
            return stmt
        case _:
            assert_never(stmt)


def walk(body: Body) -> Iterator[Stmt]:
    """Yield every statement in pre-order: a loop before its body, the first side of a branch before the other."""
    for stmt in body:
        yield stmt
        for inner in bodies_of(stmt):
            yield from walk(inner)


def uses_of(stmt: Stmt) -> tuple[Value, ...]:
    """Return the values that a statement reads, those inside its bodies included."""
    match stmt:
        case Compute(_, _, operands):
            return tuple(o for o in operands if isinstance(o, Value))
        case Store() | Write():
            return (stmt.value,)
        case Gather(_, _, index):
            return (index,)
        case Scatter(_, index, value):
            return (index, value)
        case Accumulate(_, lhs, rhs):
            return (lhs, rhs)
        case Print():
            return (stmt.value,) if isinstance(stmt.value, Value) else ()
        case Check():
            return (stmt.value, *(source.operand for source in stmt.sources if isinstance(source.operand, Value)))
        case For() | If() | Rows() | Columns():
            return tuple(value for body in bodies_of(stmt) for inner in body for value in uses_of(inner))
        case Load() | Alloc() | Read():
            return ()
        case _:
            assert_never(stmt)


def operand_types(stmt: Compute) -> tuple[TileType, ...]:
    """Return the types of the operands; a number is [1, 1]."""
    return tuple(o.type if isinstance(o, Value) else TileType(1, 1, o.dtype) for o in stmt.operands)


def map_uses(stmt: Stmt, change: Callable[[Value], Value]) -> Stmt:
    """Return the statement with `change` applied to the values that it reads itself; bodies inside it stay as they are."""
    match stmt:
        case Compute(_, _, operands):
            return replace(stmt, operands=tuple(change(o) if isinstance(o, Value) else o for o in operands))
        case Write() | Store():
            return replace(stmt, value=change(stmt.value))
        case Gather(_, _, index):
            return replace(stmt, index=change(index))
        case Scatter(_, index, value):
            return replace(stmt, index=change(index), value=change(value))
        case Accumulate(_, lhs, rhs):
            return replace(stmt, lhs=change(lhs), rhs=change(rhs))
        case Print():
            return replace(stmt, value=change(stmt.value)) if isinstance(stmt.value, Value) else stmt
        case Check():
            sources = tuple(replace(source, operand=change(source.operand)) if isinstance(source.operand, Value) else source
                            for source in stmt.sources)
            return replace(stmt, value=change(stmt.value), sources=sources)
        case Load() | Alloc() | Read() | For() | If() | Rows() | Columns():
            return stmt
        case _:
            assert_never(stmt)


def result_of(stmt: Stmt) -> Value | None:
    """Return the value that a statement defines."""
    return stmt.result if isinstance(stmt, Compute | Load | Gather | Read) else None


def writes_buffer(stmt: Stmt, buffer: Buffer) -> bool:
    """Tell whether a statement changes the buffer, inside its bodies included."""
    return buffer.id in buffers_written(stmt)


def buffers_written(stmt: Stmt) -> frozenset[int]:
    """Return the ids of the buffers that a statement changes, inside its bodies included."""
    return frozenset(inner.buffer.id for inner in walk((stmt,)) if isinstance(inner, Write | Alloc | Accumulate))


def stores(stmt: Stmt) -> frozenset[str]:
    """Return the names of the parameters that a statement stores to, inside its bodies included."""
    return frozenset(inner.param for inner in walk((stmt,)) if isinstance(inner, Store | Scatter))


def touches_buffer(stmt: Stmt, buffer: Buffer) -> bool:
    """Tell whether a statement changes or reads the buffer, inside its bodies included."""
    return any(inner.buffer.id == buffer.id for inner in walk((stmt,)) if isinstance(inner, Read | Write | Alloc | Accumulate))


def guards_of(kernel: Kernel) -> tuple[Guard, ...]:
    """Return the guards of a kernel as it was traced, in pre-order; a guard's number is its place in this tuple."""
    tensors = {p.name for p in kernel.params if isinstance(p, TensorParam)}
    return tuple(_guard(stmt) for stmt in walk(kernel.body)
                 if isinstance(stmt, Gather | Scatter) or (isinstance(stmt, Load | Store) and stmt.param in tensors)
                 or (isinstance(stmt, Compute) and takes_indices(stmt)))


def prints_of(kernel: Kernel) -> Mapping[int, Print]:
    """Return the prints of a kernel by id."""
    return {stmt.id: stmt for stmt in walk(kernel.body) if isinstance(stmt, Print)}


def takes_indices(stmt: Compute) -> bool:
    """Tell whether an operation ends the task for an index that lies outside."""
    entry = find(stmt.op)
    return isinstance(entry, TileFunction) and entry.may_fail(stmt.attrs)


def transposes(stmt: Compute) -> bool:
    """Tell whether an operation gives its operand with rows and columns exchanged."""
    entry = find(stmt.op)
    return isinstance(entry, Movement) and entry.transposes


def verb_of(stmt: Gather | Scatter) -> str:
    """Return the name of the op on tiles that a statement on rows of a parameter is the like of."""
    return index.gather.name if isinstance(stmt, Gather) else index.scatter_add.name if stmt.add else index.scatter.name


def _guard(stmt: Guarded) -> Guard:
    if isinstance(stmt, Gather | Scatter):
        return Guard(f"{verb_of(stmt)} of rows of {stmt.param}", stmt, stmt.span)
    if isinstance(stmt, Compute):
        axis = next(value for name, value in stmt.attrs if name == "axis")
        tile = next(o.type for o in stmt.operands if isinstance(o, Value))
        return Guard(f"{stmt.op} along axis {axis} of {tile!r}", stmt, stmt.span)
    verb = "load" if isinstance(stmt, Load) else "store"
    what = f"{verb} {stmt.param}[{print_scalar(stmt.row)}, {print_scalar(stmt.col)}]"
    return Guard(what, stmt, stmt.span)


def piece_of(stmt: Load | Store) -> tuple[int, int]:
    """Return rows and columns of the piece in memory: those of the value, exchanged for a transposed load."""
    if isinstance(stmt, Store):
        return stmt.value.type.shape
    rows, cols = stmt.result.type.shape
    return (cols, rows) if stmt.transpose else (rows, cols)


def valid_of(stmt: Load | Store) -> tuple[s.Scalar, s.Scalar]:
    """Return how many rows and columns of the piece are valid by the statement itself: what is given, cut to 0 .. the piece."""
    rows, cols = piece_of(stmt)
    return _cut(stmt.valid_rows, rows), _cut(stmt.valid_cols, cols)


def valid_rows_of(stmt: Gather | Scatter) -> s.Scalar:
    """Return how many rows of the index are valid, cut to 0 .. its rows."""
    return _cut(stmt.valid, stmt.index.type.rows)


def _cut(valid: s.Scalar | None, extent: int) -> s.Scalar:
    return s.Const(extent) if valid is None else s.minimum(s.maximum(valid, s.Const(0)), s.Const(extent))
