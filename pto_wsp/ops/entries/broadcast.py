"""Arithmetic of a tile with one number a row ([R, 1]) or a column ([1, C]): plain ops with their shapes checked."""

from __future__ import annotations

from collections.abc import Callable

from pto_wsp.errors import OperandShapeError
from pto_wsp.ops import typing
from pto_wsp.ops.entries import elementwise
from pto_wsp.ops.entry import Operand, active, user_call
from pto_wsp.ops.spec import Elementwise
from pto_wsp.source import here


@user_call("pto.rowadd")
def rowadd(x: Operand, v: Operand) -> Operand:
    """Return x[r, c] + v[r, 0]."""
    return _by_row("rowadd", elementwise.add, x, v)


@user_call("pto.rowsub")
def rowsub(x: Operand, v: Operand) -> Operand:
    """Return x[r, c] - v[r, 0]."""
    return _by_row("rowsub", elementwise.sub, x, v)


@user_call("pto.rowmul")
def rowmul(x: Operand, v: Operand) -> Operand:
    """Return x[r, c] * v[r, 0]."""
    return _by_row("rowmul", elementwise.mul, x, v)


@user_call("pto.rowdiv")
def rowdiv(x: Operand, v: Operand) -> Operand:
    """Return x[r, c] / v[r, 0]."""
    return _by_row("rowdiv", elementwise.div, x, v)


@user_call("pto.coladd")
def coladd(x: Operand, v: Operand) -> Operand:
    """Return x[r, c] + v[0, c]."""
    return _by_col("coladd", elementwise.add, x, v)


@user_call("pto.colsub")
def colsub(x: Operand, v: Operand) -> Operand:
    """Return x[r, c] - v[0, c]."""
    return _by_col("colsub", elementwise.sub, x, v)


@user_call("pto.colmul")
def colmul(x: Operand, v: Operand) -> Operand:
    """Return x[r, c] * v[0, c]."""
    return _by_col("colmul", elementwise.mul, x, v)


@user_call("pto.coldiv")
def coldiv(x: Operand, v: Operand) -> Operand:
    """Return x[r, c] / v[0, c]."""
    return _by_col("coldiv", elementwise.div, x, v)


def _by_row(name: str, op: Elementwise, x: Operand, v: Operand) -> Operand:
    return _checked(name, op, x, v, lambda: (x.shape[0], 1))


def _by_col(name: str, op: Elementwise, x: Operand, v: Operand) -> Operand:
    return _checked(name, op, x, v, lambda: (1, x.shape[1]))


def _checked(name: str, op: Elementwise, x: Operand, v: Operand, wanted: Callable[[], tuple[int, int]]) -> Operand:
    active(name)
    typing.require_tile(name, x)
    typing.require_tile(name, v)
    rows, cols = wanted()
    if v.shape != (rows, cols):
        raise OperandShapeError(f"`pto.{name}`: the second tile has the wrong shape", here(), expected=f"[{rows}, {cols}]",
                                found=f"[{v.shape[0]}, {v.shape[1]}]")
    return op(x, v)


FUNCTIONS = (rowadd, rowsub, rowmul, rowdiv, coladd, colsub, colmul, coldiv)
