"""Bound scalars that depend on items, the numbers that a kernel reads from tiles.

An item is known only while its task runs, so whatever is fixed before (the cycles of a task, the end of a loop) takes a bound of it.

>>> print_scalar(most(minimum(ItemRef("n", 0, DType.I32), ParamExtent("table", 1))))
'table.shape[1]'
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import Op

Bounds: TypeAlias = tuple[s.Scalar | None, s.Scalar | None]      # least and greatest value, None if there is no useful bound

_NARROW_BYTES = 2      # the range of a wider item is no useful bound


def most(node: s.Scalar) -> s.Scalar | None:
    """Return an upper bound of a whole number without items, the number itself if it names none; None if there is no bound."""
    return _bounds(node, {})[1]


def _bounds(node: s.Scalar, ranges: Mapping[s.Scalar, Bounds]) -> Bounds:
    """Return bounds of a scalar. `ranges`: those of the variables of sums whose first value depends on an item."""
    if not any(isinstance(leaf, s.ItemRef) or leaf in ranges for leaf in s.leaves(node)):
        return node, node
    match node:
        case s.ItemRef(dtype=dtype):
            return _of_dtype(dtype)
        case s.Var():
            return ranges[node]
        case s.Unary(Op.NEG, value):
            least, greatest = _bounds(value, ranges)
            return _negative(greatest), _negative(least)
        case s.Binary(op, lhs, rhs):
            return _binary(op, _bounds(lhs, ranges), _bounds(rhs, ranges))
        case s.Select(_, then, other):
            one, two = _bounds(then, ranges), _bounds(other, ranges)
            return _both(Op.MIN, one[0], two[0]), _both(Op.MAX, one[1], two[1])
        case s.Sum():
            return None, _sum(node, ranges)
        case _:
            return None, None


def _of_dtype(dtype: DType) -> Bounds:
    if dtype.is_bool:
        return s.Const(0), s.Const(1)
    if not dtype.is_integer:
        return None, None
    info = np.iinfo(dtype.np)
    narrow = dtype.nbytes <= _NARROW_BYTES
    counts = info.min == 0 and not dtype.exceeds_i64
    return s.Const(int(info.min)) if narrow or counts else None, s.Const(int(info.max)) if narrow else None


def _binary(op: Op, left: Bounds, right: Bounds) -> Bounds:
    match op:
        case Op.ADD:
            return _both(op, left[0], right[0]), _both(op, left[1], right[1])
        case Op.SUB:
            return _both(op, left[0], right[1]), _both(op, left[1], right[0])
        case Op.MIN:
            return _both(op, left[0], right[0]), _either(op, left[1], right[1])
        case Op.MAX:
            return _either(op, left[0], right[0]), _both(op, left[1], right[1])
        case Op.MUL if left[0] == left[1] and left[0] is not None:
            return _times(right, left[0])
        case Op.MUL if right[0] == right[1] and right[0] is not None:
            return _times(left, right[0])
        case Op.MUL if _is_natural(left[0]) and _is_natural(right[0]):
            return s.Const(0), _both(op, left[1], right[1])
        case Op.FLOORDIV if right[0] == right[1] and _is_positive(right[0]):
            return _both(op, left[0], right[0]), _both(op, left[1], right[1])
        case Op.MOD if right[0] == right[1] and right[0] is not None:
            return s.minimum(s.add(right[0], s.Const(1)), s.Const(0)), s.maximum(s.sub(right[0], s.Const(1)), s.Const(0))
        case Op.AND if _is_natural(right[0]) or _is_natural(left[0]):
            natural = [bounds[1] for bounds in (left, right) if _is_natural(bounds[0])]
            return s.Const(0), natural[0] if len(natural) == 1 else _either(Op.MIN, *natural)
        case _:
            return None, None


def _times(bounds: Bounds, factor: s.Scalar) -> Bounds:
    """Return bounds of a product with a factor without items."""
    least, greatest = (None if bound is None else s.mul(bound, factor) for bound in bounds)
    if isinstance(factor, s.Const):
        return (least, greatest) if factor.value >= 0 else (greatest, least)
    if _is_natural(bounds[0]):      # of 0 and more, and a factor of any sign
        return _both(Op.MIN, greatest, s.Const(0)), _both(Op.MAX, greatest, s.Const(0))
    return _both(Op.MIN, least, greatest), _both(Op.MAX, least, greatest)


def _sum(node: s.Sum, ranges: Mapping[s.Scalar, Bounds]) -> s.Scalar | None:
    """Return an upper bound of a sum of numbers >= 0."""
    start, stop = _bounds(node.start, ranges), _bounds(node.stop, ranges)
    if start[0] is None or stop[1] is None:
        return None
    if start[0] == node.start:
        body = _bounds(node.body, ranges)[1]
        return None if body is None else s.Sum(node.var, node.start, stop[1], node.step, body)
    body = _bounds(node.body, {**ranges, node.var: (start[0], s.sub(stop[1], s.Const(1)))})[1]
    trips = s.maximum(s.ceil_div(s.sub(stop[1], start[0]), node.step), s.Const(0))
    return None if body is None else s.mul(trips, s.maximum(body, s.Const(0)))


def _both(op: Op, one: s.Scalar | None, two: s.Scalar | None) -> s.Scalar | None:
    return None if one is None or two is None else s.binary(op, one, two)


def _either(op: Op, one: s.Scalar | None, two: s.Scalar | None) -> s.Scalar | None:
    return two if one is None else one if two is None else s.binary(op, one, two)


def _negative(bound: s.Scalar | None) -> s.Scalar | None:
    return None if bound is None else s.unary(Op.NEG, bound)


def _is_natural(bound: s.Scalar | None) -> bool:
    """Tell whether a bound is surely >= 0."""
    match bound:
        case s.Const(value):
            return value >= 0
        case s.ParamExtent() | s.Sum():      # the sums of a formula add up cycles
            return True
        case s.Binary(Op.MAX, lhs, rhs):
            return _is_natural(lhs) or _is_natural(rhs)
        case s.Binary(Op.ADD | Op.MUL | Op.MIN | Op.FLOORDIV | Op.MOD, lhs, rhs) | s.Select(_, lhs, rhs):
            return _is_natural(lhs) and _is_natural(rhs)
        case _:
            return False


def _is_positive(bound: s.Scalar | None) -> bool:
    return isinstance(bound, s.Const) and bound.value > 0
