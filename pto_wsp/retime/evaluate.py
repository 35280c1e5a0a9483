"""Scalar expressions over columns: what `types.scalar.evaluate` computes for one task, for all tasks at a time.

A column is an array with an element a task, or one of no dimensions that holds for all of them.

>>> evaluate_columns(add(Var("b", 0), Const(1)), {Var("b", 0): np.arange(3)}.get)
array([1, 2, 3])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from pto_wsp.types import scalar as s
from pto_wsp.types.scalar import Op
from pto_wsp.types.scalar_ops import COMPARISONS, Number, wrap_i64
from pto_wsp.types.scalar_text import print_scalar

Column: TypeAlias = "np.ndarray[Any, Any]"
Leaf: TypeAlias = Callable[[s.Scalar], "Column | None"]

_FNV_START, _FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
_TURNS_AT_A_TIME = 1 << 20


class UnknownColumn(Exception):
    """A part of an expression has no column."""

    def __init__(self, node: s.Scalar) -> None:
        super().__init__(print_scalar(node))
        self.node = node


def evaluate_columns(node: s.Scalar, leaf: Leaf) -> Column:
    """Return the column of `node`: int64, float64 or bool. `leaf` is asked from the outside in; None: it does not know the node.

    Both sides of a `Select` are evaluated everywhere.
    Raises: UnknownColumn for a leaf that `leaf` does not know.
    """
    with np.errstate(all="ignore"):
        return _value(node, leaf)


def _value(node: s.Scalar, leaf: Leaf) -> Column:
    known = constant(node.value) if isinstance(node, s.Const) else leaf(node)
    if known is not None:
        if known.dtype.kind in "iu" and (known.astype(np.int64) < 0).any() and s.is_unsigned(node):
            raise UnknownColumn(node)     # a column holds signed numbers
        return known
    match node:
        case s.Unary(op, value):
            return _unary(op, _value(value, leaf))
        case s.Binary(op, lhs, rhs):
            return _binary(op, _value(lhs, leaf), _value(rhs, leaf))
        case s.Select(condition, then, other):
            kind = s.scalar_dtype(node).np.type
            return np.where(_value(condition, leaf), _value(then, leaf).astype(kind), _value(other, leaf).astype(kind))
        case s.Sum():
            return _sum(node, leaf)
        case _:
            raise UnknownColumn(node)


def constant(value: Number) -> Column:
    """Return a number as a column."""
    return np.asarray(value if isinstance(value, bool | float) else np.int64(wrap_i64(value)))


def _unary(op: Op, value: Column) -> Column:
    if op is Op.NEG:
        return np.negative(value if value.dtype == np.float64 else value.astype(np.int64))
    return np.invert(value if value.dtype == np.bool_ else value.astype(np.int64))


def _binary(op: Op, lhs: Column, rhs: Column) -> Column:
    if op in COMPARISONS:
        return _COMPARE[op](lhs, rhs)
    if op in (Op.AND, Op.OR):
        if lhs.dtype != np.bool_ or rhs.dtype != np.bool_:
            lhs, rhs = lhs.astype(np.int64), rhs.astype(np.int64)
        return lhs & rhs if op is Op.AND else lhs | rhs
    if op is Op.DIV or np.float64 in (lhs.dtype, rhs.dtype):
        return _FLOAT[op](lhs.astype(np.float64), rhs.astype(np.float64))
    left, right = lhs.astype(np.int64), rhs.astype(np.int64)
    if op is Op.HASHMOD:
        return _hash_mod(left, right)
    if op in (Op.FLOORDIV, Op.MOD):    # NumPy's result for 0 and for the quotient that does not fit is ours too
        return np.floor_divide(left, right) if op is Op.FLOORDIV else np.remainder(left, right)
    return _INTEGER[op](left, right)


def _hash_mod(key: Column, modulus: Column) -> Column:
    """FNV-1a-64 of the key's 8 little-endian bytes, modulo; a negative modulus as in Python."""
    bits = key.view(np.uint64)
    state: Any = np.broadcast_to(_FNV_START, bits.shape)
    for byte in range(8):
        state = (state ^ ((bits >> np.uint64(8 * byte)) & np.uint64(0xFF))) * _FNV_PRIME
    rest: Column = np.remainder(state, np.abs(modulus).view(np.uint64)).view(np.int64)    # of 0: 0
    return np.where((modulus < 0) & (rest != 0), rest + modulus, rest)


def _sum(node: s.Sum, leaf: Leaf) -> Column:
    """Add up turn by turn, the tasks of a run of turns side by side."""
    start, stop, step = (np.atleast_1d(_value(bound, leaf).astype(np.int64)) for bound in (node.start, node.stop, node.step))
    inner = [column for column in (_known(part, leaf) for part in _parts(node.body, node.var, leaf)) if column is not None]
    shape = np.broadcast_shapes(start.shape, stop.shape, step.shape, *(column.shape for _, column in inner))
    start, stop, step = (np.broadcast_to(bound, shape) for bound in (start, stop, step))
    count = np.maximum(0, np.where(step > 0, -((start - stop) // step), -((stop - start) // -step)))
    kind = s.scalar_dtype(node.body).np.type
    total = np.zeros(shape, np.float64 if kind is np.float64 else np.int64)
    if not count.any():
        return total
    ends = np.cumsum(count)
    first = 0
    while first < len(ends):      # as many tasks as fit
        done = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, done + _TURNS_AT_A_TIME, side="right")))
        total[first:last] = _turns(node, leaf, inner, slice(first, last), start, step, count, shape)
        first = last
    return total


def _turns(node: s.Sum, leaf: Leaf, inner: list[tuple[s.Scalar, Column]], at: slice, start: Any, step: Any, count: Any,
           shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return the sums of some tasks, all of their turns side by side."""
    counts = count[at]
    n = int(counts.sum())
    begins = np.cumsum(counts) - counts
    turn = np.arange(n) - np.repeat(begins, counts)
    value = np.repeat(start[at], counts) + turn * np.repeat(step[at], counts)
    spread = {part: np.repeat(np.broadcast_to(column, shape)[at], counts) for part, column in inner}

    def here(part: s.Scalar) -> Column | None:
        return value if part == node.var else spread.get(part)

    body = np.broadcast_to(_value(node.body, here), (n,))
    sums = np.zeros(len(counts), np.float64 if body.dtype == np.float64 else np.int64)
    np.add.at(sums, np.repeat(np.arange(len(counts)), counts), body)
    return sums


def _parts(node: s.Scalar, var: s.Var, leaf: Leaf) -> tuple[s.Scalar, ...]:
    """Return the outermost parts of a sum's body that are known outside of it."""
    if node == var:
        return ()
    if not isinstance(node, s.Const) and leaf(node) is not None:
        return (node,)
    return tuple(dict.fromkeys(part for child in s.children(node) for part in _parts(child, var, leaf)))


def _known(part: s.Scalar, leaf: Leaf) -> tuple[s.Scalar, Column] | None:
    column = leaf(part)
    return None if column is None else (part, column)


_COMPARE: Mapping[Op, Callable[[Column, Column], Column]] = {
    Op.EQ: np.equal, Op.NE: np.not_equal, Op.LT: np.less, Op.LE: np.less_equal, Op.GT: np.greater, Op.GE: np.greater_equal,
}
_INTEGER: Mapping[Op, Callable[[Column, Column], Column]] = {
    Op.ADD: np.add, Op.SUB: np.subtract, Op.MUL: np.multiply, Op.MIN: np.minimum, Op.MAX: np.maximum,
}
_FLOAT: Mapping[Op, Callable[[Column, Column], Column]] = {
    **_INTEGER, Op.DIV: np.divide, Op.FLOORDIV: np.floor_divide, Op.MOD: np.remainder,
}
