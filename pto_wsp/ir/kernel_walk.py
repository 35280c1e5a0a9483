"""Walk and transform the statements of a kernel: definitions, uses, bodies, memory effects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias, assert_never

from pto_wsp.ir import scalar as s
from pto_wsp.ir.kernel import (
    Accumulate,
    Alloc,
    Buffer,
    Columns,
    Compute,
    FiniteCheck,
    For,
    Gather,
    If,
    Item,
    Kernel,
    Load,
    Print,
    Read,
    Rows,
    ScalarOperand,
    Scatter,
    Stmt,
    Store,
    Value,
    Write,
    WritePart,
)
from pto_wsp.ir.tile import TileType

Body: TypeAlias = tuple[Stmt, ...]


def bodies_of(stmt: Stmt) -> tuple[Body, ...]:
    """Return the bodies inside a statement, in program order."""
    match stmt:
        case For() | Rows() | Columns():
            return (stmt.body,)
        case If():
            return (stmt.then, stmt.other)
        case (Compute() | Load() | Store() | Gather() | Scatter() | Alloc() | Read() | Write() | WritePart() | Accumulate() | Item()
              | Print() | FiniteCheck()):
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
        case (Compute() | Load() | Store() | Gather() | Scatter() | Alloc() | Read() | Write() | WritePart() | Accumulate() | Item()
              | Print() | FiniteCheck()):
            return stmt
        case _:
            assert_never(stmt)


def walk(body: Body) -> Iterator[Stmt]:
    """Yield every statement in pre-order: a loop before its body, the first side of a branch before the second."""
    for stmt in body:
        yield stmt
        for inner in bodies_of(stmt):
            yield from walk(inner)


def uses_of(stmt: Stmt) -> tuple[Value, ...]:
    """Return the values that a statement reads, including those of its bodies."""
    match stmt:
        case Compute(_, _, operands):
            return tuple(o for o in operands if isinstance(o, Value))
        case Store() | Write() | WritePart() | Item():
            return (stmt.value,)
        case Gather(_, _, index):
            return (index,)
        case Scatter(_, index, value):
            return (index, value)
        case Accumulate(_, lhs, rhs):
            return (lhs, rhs)
        case Print():
            return (stmt.value,) if isinstance(stmt.value, Value) else ()
        case FiniteCheck():
            return (stmt.value, *(source.operand for source in stmt.sources if isinstance(source.operand, Value)))
        case For() | If() | Rows() | Columns():
            return tuple(value for body in bodies_of(stmt) for inner in body for value in uses_of(inner))
        case Load() | Alloc() | Read():
            return ()
        case _:
            assert_never(stmt)


def operand_types(stmt: Compute) -> tuple[TileType, ...]:
    """Return the types of the operands; a scalar is [1, 1]."""
    return tuple(o.type if isinstance(o, Value) else TileType(1, 1, o.dtype) for o in stmt.operands)


def map_uses(stmt: Stmt, change: Callable[[Value], Value]) -> Stmt:
    """Return the statement with `change` applied to the values it reads directly; its bodies are unchanged."""
    match stmt:
        case Compute(_, _, operands):
            return replace(stmt, operands=tuple(change(o) if isinstance(o, Value) else o for o in operands))
        case Write() | WritePart() | Store() | Item():
            return replace(stmt, value=change(stmt.value))
        case Gather(_, _, index):
            return replace(stmt, index=change(index))
        case Scatter(_, index, value):
            return replace(stmt, index=change(index), value=change(value))
        case Accumulate(_, lhs, rhs):
            return replace(stmt, lhs=change(lhs), rhs=change(rhs))
        case Print():
            return replace(stmt, value=change(stmt.value)) if isinstance(stmt.value, Value) else stmt
        case FiniteCheck():
            sources = tuple(replace(source, operand=change(source.operand)) if isinstance(source.operand, Value) else source
                            for source in stmt.sources)
            return replace(stmt, value=change(stmt.value), sources=sources)
        case Load() | Alloc() | Read() | For() | If() | Rows() | Columns():
            return stmt
        case _:
            assert_never(stmt)


def result_of(stmt: Stmt) -> Value | None:
    """Return the value that a statement defines, if any."""
    return stmt.result if isinstance(stmt, Compute | Load | Gather | Read) else None


def writes_buffer(stmt: Stmt, buffer: Buffer) -> bool:
    """Tell whether a statement changes the buffer, including inside its bodies."""
    return buffer.id in buffers_written(stmt)


def buffers_written(stmt: Stmt) -> frozenset[int]:
    """Return the ids of the buffers that a statement changes, including inside its bodies."""
    return frozenset(inner.buffer.id for inner in walk((stmt,)) if isinstance(inner, Write | WritePart | Alloc | Accumulate))


def stores(stmt: Stmt) -> frozenset[str]:
    """Return the names of the parameters that a statement stores to, including inside its bodies."""
    return frozenset(inner.param for inner in walk((stmt,)) if isinstance(inner, Store | Scatter))


def touches_buffer(stmt: Stmt, buffer: Buffer) -> bool:
    """Tell whether a statement changes or reads the buffer, including inside its bodies."""
    return any(inner.buffer.id == buffer.id for inner in walk((stmt,)) if isinstance(inner, Read | Write | WritePart | Alloc | Accumulate))


def prints_of(kernel: Kernel) -> Mapping[int, Print]:
    """Return the prints of a kernel by id."""
    return {stmt.id: stmt for stmt in walk(kernel.body) if isinstance(stmt, Print)}


def verb_of(stmt: Gather | Scatter) -> str:
    """Return the word for a statement on rows of a parameter, which is also the name of the op that does the same on tiles."""
    return "gather" if isinstance(stmt, Gather) else "scatter_add" if stmt.add else "scatter"


def items_of(body: Body) -> frozenset[s.ItemRef]:
    """Return the items that a body reads from tiles."""
    return frozenset(stmt.item for stmt in walk(body) if isinstance(stmt, Item))


def scalars_of(stmt: Stmt) -> tuple[s.Scalar, ...]:
    """Return the scalars that a statement evaluates itself, without those of its bodies."""
    match stmt:
        case Compute(_, _, operands):
            return tuple(o.value for o in operands if isinstance(o, ScalarOperand))
        case Load() | Store():
            return tuple(node for node in (stmt.row, stmt.col, stmt.valid_rows, stmt.valid_cols) if node is not None)
        case Gather() | Scatter():
            return (stmt.col,) if stmt.valid is None else (stmt.col, stmt.valid)
        case Item() | WritePart():
            return (stmt.row, stmt.col)
        case Print():
            return (stmt.value.value,) if isinstance(stmt.value, ScalarOperand) else \
                tuple(node for node in (stmt.valid_rows, stmt.valid_cols) if node is not None)
        case FiniteCheck():
            given = tuple(source.operand.value for source in stmt.sources if isinstance(source.operand, ScalarOperand))
            return (*given, *(node for node in (stmt.valid_rows, stmt.valid_cols) if node is not None))
        case For():
            return (stmt.start, stmt.stop, stmt.step)
        case If():
            return (stmt.condition,)
        case Alloc() | Read() | Write() | Accumulate() | Rows() | Columns():
            return ()
        case _:
            assert_never(stmt)


def piece_of(stmt: Load | Store | Print | FiniteCheck) -> tuple[int, int]:
    """Return rows and columns of the piece in memory: the value's shape, transposed for a transposed load."""
    if isinstance(stmt, Print):
        return stmt.value.type.shape if isinstance(stmt.value, Value) else (1, 1)
    if isinstance(stmt, Store | FiniteCheck):
        return stmt.value.type.shape
    rows, cols = stmt.result.type.shape
    return (cols, rows) if stmt.transpose else (rows, cols)


def valid_of(stmt: Load | Store | Print | FiniteCheck) -> tuple[s.Scalar, s.Scalar]:
    """Return the statement's valid rows and columns, clamped to 0 .. the piece's extents."""
    rows, cols = piece_of(stmt)
    return _cut(stmt.valid_rows, rows), _cut(stmt.valid_cols, cols)


def valid_rows_of(stmt: Gather | Scatter) -> s.Scalar:
    """Return the valid rows of the index, clamped to 0 .. its rows."""
    return _cut(stmt.valid, stmt.index.type.rows)


def _cut(valid: s.Scalar | None, extent: int) -> s.Scalar:
    return s.Const(extent) if valid is None else s.minimum(s.maximum(valid, s.Const(0)), s.Const(extent))
