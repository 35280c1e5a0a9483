"""What a kernel finds in its arguments, as C++: pointers, extents and steps of memory parameters, and floats."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pto_wsp.codegen.c import syntax as c
from pto_wsp.expr.tile_program import ParamAccess

Side: TypeAlias = Literal["row", "col"]
ARGS = c.Name("args")


def pointer(element: str, slot: int) -> c.Expr:
    """Return where the first element of a parameter lies in global memory."""
    return c.Call(f"pto_wsp::gm<{element}>", (ARGS, c.Int(slot)))


def extent_of(access: ParamAccess, slot: int, side: Side) -> c.Expr:
    """Return how many rows or columns a parameter has: a number where all tasks have the same."""
    dim, by, known = _side(access, side)
    if known is not None or dim is None:
        return c.Int(1 if known is None else known)
    shape = c.Call("pto_wsp::shape", (ARGS, c.Int(slot), c.Int(dim)))
    return shape if by == 1 else c.Infix("/", c.Infix("+", shape, c.Int(by - 1)), c.Int(by))


def step_of(access: ParamAccess, slot: int, side: Side) -> c.Expr:
    """Return how far apart neighbours along the rows or columns of a parameter lie, in elements; 1 where there is one only."""
    dim, by, _ = _side(access, side)
    if dim is None:
        return c.Int(1)
    stride = c.Call("pto_wsp::stride", (ARGS, c.Int(slot), c.Int(dim)))
    return stride if by == 1 else c.Infix("*", stride, c.Int(by))


def float_value(slot: int) -> c.Expr:
    """Return a float argument."""
    return c.Call("pto_wsp::f32", (ARGS, c.Int(slot)))


def _side(access: ParamAccess, side: Side) -> tuple[int | None, int, int | None]:
    """The dimension, every how many of its elements count, and the extent where it is known."""
    return ((access.row_dim, access.row_step, access.rows) if side == "row" else (access.col_dim, access.col_step, access.cols))
