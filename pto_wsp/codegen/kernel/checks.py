"""C for a check of `check_finite`: one call that looks at a tile in memory, and at what made it where it has to."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from pto_wsp.codegen.c import syntax as c
from pto_wsp.codegen.c.scalars import as_it_is
from pto_wsp.codegen.kernel.env import Env, Place
from pto_wsp.expr import kernel as k


def checked(env: Env, stmt: k.Check, place_of: Callable[[k.Value], Place]) -> list[c.Stmt]:
    """Return the statements that end the task when the value is at fault."""
    env.headers.add("pto_check.h")
    out: list[c.Stmt] = []
    sources: list[c.Expr] = []
    for source in stmt.sources:
        if isinstance(source.operand, k.Value):
            sources.append(_of_tile(place_of(source.operand), source.reach))
        else:
            name = env.name("given")
            out.append(c.Declare("const double", name, c.Cast("double", as_it_is(source.operand.value, env.scalar(source.operand.value)))))
            sources.append(_source(c.Prefix("&", c.Name(name)), "NUMBER", (c.Int(0), c.Int(0)), (c.Int(1), c.Int(0), c.Int(1), c.Int(0))))
    place = place_of(stmt.value)
    call = c.Call("pto_check_finite", (
        c.Name("context"), c.Name(place.pointer), c.Name(f"PTO_FLOAT_{place.type.dtype.name}"), place.step, c.Int(place.type.rows),
        c.Int(place.type.cols), c.Int(len(sources)), c.Braces(tuple(sources), "pto_source[]") if sources else c.Int(0)))
    return [*out, c.If(call, (c.Return(c.Int(1 + stmt.number)),))]


def _of_tile(place: Place, reach: k.Reach) -> c.Expr:
    zero, one = c.Int(0), c.Int(1)
    rows, cols = place.type.shape
    by_row = place.step if rows > 1 else zero
    by_col = one if cols > 1 else zero
    data, kind = c.Name(place.pointer), place.type.dtype.name
    match reach:
        case k.Reach.ELEMENT:
            return _source(data, kind, (by_row, by_col), (one, zero, one, zero))
        case k.Reach.ROW:
            return _source(data, kind, (by_row, zero), (c.Int(cols), one, one, zero))
        case k.Reach.COLUMN:
            return _source(data, kind, (zero, by_col), (c.Int(rows), place.step, one, zero))
        case k.Reach.TURNED_ROW:
            return _source(data, kind, (by_col, zero), (c.Int(rows), place.step, one, zero))
        case k.Reach.TURNED_COLUMN:
            return _source(data, kind, (zero, by_row), (c.Int(cols), one, one, zero))
        case k.Reach.ALL:
            return _source(data, kind, (zero, zero), (c.Int(rows), place.step, c.Int(cols), one))
        case _:
            assert_never(reach)


def _source(data: c.Expr, kind: str, by: tuple[c.Expr, c.Expr], reach: tuple[c.Expr, c.Expr, c.Expr, c.Expr]) -> c.Expr:
    return c.Braces((data, c.Name(f"PTO_FLOAT_{kind}"), *by, *reach))
