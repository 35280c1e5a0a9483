"""Print gather and scatter of rows of a Tensor parameter: calls of pto_index.h behind their guards."""

from __future__ import annotations

from pto_wsp.codegen.c import syntax as c
from pto_wsp.codegen.c.dtypes import memory_literal, memory_type
from pto_wsp.codegen.kernel.env import Env, Place
from pto_wsp.errors import unreachable
from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import valid_rows_of
from pto_wsp.types import scalar as s

_FAULT = c.Prefix("&", c.Member(c.Name("context"), "fault", arrow=True))


def gathered(env: Env, stmt: k.Gather, place: Place) -> list[c.Stmt]:
    """Return the statements that copy the rows which the index names, and fill those behind the valid ones."""
    tile = stmt.result.type
    env.values[stmt.result.id] = place
    out, count, source = _begin(env, stmt, tile.cols)
    index = env.values[stmt.index.id]
    out.append(_guarded(stmt, c.Call(f"pto_gather_{8 * tile.dtype.nbytes}_{stmt.index.type.dtype}", (
        c.Name(place.pointer), count, c.Int(tile.cols), source, c.Int(0), env.stride(stmt.param, 1), env.stride(stmt.param, 0),
        c.Name(index.pointer), _row_step(index), c.Int(0), env.extent(stmt.param, 0), _FAULT))))
    if count != c.Int(tile.rows):
        env.headers.add("pto_move.h")
        name = env.name(f"{stmt.param}_fill")
        behind = c.Infix("+", c.Name(place.pointer), c.Infix("*", count, c.Int(tile.cols)))
        out += [c.Declare(f"const {memory_type(tile.dtype)}", name, memory_literal(stmt.fill, tile.dtype)),
                c.Evaluate(c.Call(f"pto_fill_{8 * tile.dtype.nbytes}", (
                    behind, c.Int(tile.cols), c.Infix("-", c.Int(tile.rows), count), c.Int(tile.cols), c.Prefix("&", c.Name(name)))))]
    return out


def scattered(env: Env, stmt: k.Scatter) -> list[c.Stmt]:
    """Return the statements that write or add rows at those which the index names."""
    tile = stmt.value.type
    out, count, target = _begin(env, stmt, tile.cols)
    index, value = env.values[stmt.index.id], env.values[stmt.value.id]
    kind = f"scatter_add_{tile.dtype}" if stmt.add else f"scatter_{8 * tile.dtype.nbytes}"
    out.append(_guarded(stmt, c.Call(f"pto_{kind}_{stmt.index.type.dtype}", (
        target, c.Int(0), env.stride(stmt.param, 1), env.stride(stmt.param, 0), count, c.Int(tile.cols), c.Name(index.pointer),
        _row_step(index), c.Int(0), c.Name(value.pointer), _row_step(value), c.Int(1), env.extent(stmt.param, 0), _FAULT))))
    return out


def _begin(env: Env, stmt: k.Gather | k.Scatter, cols: int) -> tuple[list[c.Stmt], c.Expr, c.Expr]:
    """Return statements to run before, how many rows are valid, and the region's element at row 0 and the first column."""
    env.headers.add("pto_index.h")
    out: list[c.Stmt] = []
    col, count = env.scalar(stmt.col), env.scalar(valid_rows_of(stmt))
    if not isinstance(col, c.Int):
        name = env.name(f"{stmt.param}_col")
        out.append(c.Declare("const int64_t", name, col))
        col = c.Name(name)
    if not isinstance(count, c.Int):
        name = env.name(f"{stmt.param}_rows")
        out.append(c.Declare("const int64_t", name, count))
        count = c.Name(name)
    columns: c.Expr = c.Call("pto_columns_outside", (col, c.Int(cols), env.extent(stmt.param, 1), _FAULT))
    if count != c.Int(0):
        out.append(_guarded(stmt, columns if isinstance(count, c.Int) else c.Infix("&&", c.Infix(">", count, c.Int(0)), columns)))
    dtype = stmt.result.type.dtype if isinstance(stmt, k.Gather) else stmt.value.type.dtype
    first: c.Expr = c.Cast(f"{memory_type(dtype)} *", c.Member(env.argument(stmt.param), "data"))
    if stmt.col != s.Const(0):
        stride = env.stride(stmt.param, 1)
        first = c.Infix("+", first, col if stride == c.Int(1) else c.Infix("*", col, stride))
    return out, count, first


def _guarded(stmt: k.Gather | k.Scatter, fails: c.Expr) -> c.Stmt:
    number = unreachable("rows without a guard's number") if stmt.guard is None else stmt.guard
    return c.If(fails, (c.Return(c.Int(1 + number)),))


def _row_step(place: Place) -> c.Expr:
    return c.Int(0) if place.type.rows == 1 else place.step
