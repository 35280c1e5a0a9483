"""What is known of the scalars of a kernel when it is compiled: extents that are the same for every task, and ranges.

A bound of 64 on rows that are never more than 64 goes, so that extents that are the same read the same.

>>> facts.settle(minimum(ParamExtent("x", 0), Const(64)))     # x: Tile[64, 128, F32]
ParamExtent(name='x', dim=0)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import valid_of, walk
from pto_wsp.expr.tile_program import ParamAccess
from pto_wsp.types import scalar as s
from pto_wsp.types.scalar import Op

Range: TypeAlias = tuple[int | None, int | None]     # least and greatest value, None: not known

_UNKNOWN: Range = (None, None)
_ZERO, TRUE, FALSE = s.Const(0), s.Const(True), s.Const(False)


class Facts:
    """Settles scalars of one kernel. `leaves`: it ends at its start where its only output is empty."""

    def __init__(self, kernel: k.Kernel, access: Mapping[str, ParamAccess], *, leaves: bool = True) -> None:
        self._access = access
        self._tiles = {p.name: p.type.shape for p in kernel.memory_params if isinstance(p, k.TileParam)}
        self.loops = {stmt.var: stmt for stmt in walk(kernel.body) if isinstance(stmt, k.For)}
        self._same = _equal(access)
        self._most = dict(self._known_most())
        stored = {stmt.param for stmt in walk(kernel.body) if isinstance(stmt, k.Store)}
        # A kernel of which the only output is empty has ended at its start; the parts that it is split into may have others.
        self._some = {self._same.get(extent, extent) for param in stored for extent in (s.ParamExtent(param, 0), s.ParamExtent(param, 1))
                      if leaves and len(stored) == 1}

    def settle(self, node: s.Scalar) -> s.Scalar:
        """Return a scalar with what is known put in, and without bounds that hold anyway."""
        return self._trim(s.substitute(node, self._known))

    def least(self, node: s.Scalar) -> int | None:
        """Return the least value that a settled scalar can have, None where that is not known."""
        return self._range(node)[0]

    def at_least_one(self, node: s.Scalar) -> s.Scalar:
        """Return the condition that a settled extent is 1 or more: TRUE where it always is."""
        least = self.least(node)
        return TRUE if least is not None and least >= 1 else s.binary(Op.GT, node, _ZERO)

    def valid(self, stmt: k.Load | k.Store) -> tuple[s.Scalar, s.Scalar]:
        """Return how many rows and columns of the piece that a statement moves are valid, in the parameter's orientation."""
        rows, cols = valid_of(stmt)
        if stmt.param in self._tiles:
            rest = (s.maximum(s.sub(s.ParamExtent(stmt.param, dim), at), _ZERO) for dim, at in enumerate((stmt.row, stmt.col)))
            rows, cols = (s.minimum(extent, left) for extent, left in zip((rows, cols), rest, strict=True))
        return self.settle(rows), self.settle(cols)

    def lies_turned(self, param: str) -> bool:
        """Tell whether neighbours down a column are neighbours in memory, and those along a row are not."""
        access = self._access[param]
        return access.unit_rows and not access.unit_cols

    def has_line(self, param: str) -> bool:
        """Tell whether rows or columns of a parameter lie without gaps."""
        access = self._access[param]
        return access.unit_rows or access.unit_cols or access.row_dim is None or access.col_dim is None

    def _known(self, node: s.Scalar) -> s.Scalar | None:
        if not isinstance(node, s.ParamExtent):
            return None
        node = self._same.get(node, node)
        access = self._access.get(node.name)
        extent = None if access is None else access.cols if node.dim else access.rows
        return node if extent is None else s.Const(extent)

    def _known_most(self) -> Iterator[tuple[s.ParamExtent, int]]:
        found: dict[s.ParamExtent, int] = {}
        for name, shape in self._tiles.items():
            for dim, extent in enumerate(shape):
                own = s.ParamExtent(name, dim)
                first = self._same.get(own, own)
                found[first] = min(extent, found.get(first, extent))
        yield from found.items()

    def _trim(self, node: s.Scalar) -> s.Scalar:
        match node:
            case s.Binary(Op.MIN | Op.MAX as op, lhs, rhs):
                lhs, rhs = self._trim(lhs), self._trim(rhs)
                (low, high), (other_low, other_high) = self._range(lhs), self._range(rhs)
                left_less = high is not None and other_low is not None and high <= other_low
                right_less = other_high is not None and low is not None and other_high <= low
                if left_less:
                    return lhs if op is Op.MIN else rhs
                if right_less:
                    return rhs if op is Op.MIN else lhs
                return s.binary(op, lhs, rhs)
            case s.Binary(op, lhs, rhs):
                return s.binary(op, self._trim(lhs), self._trim(rhs))
            case s.Unary(op, value):
                return s.unary(op, self._trim(value))
            case s.Select(condition, then, other):
                return s.select(self._trim(condition), self._trim(then), self._trim(other))
            case _:
                return node

    def _range(self, node: s.Scalar) -> Range:
        match node:
            case s.Const(bool()):
                return _UNKNOWN
            case s.Const(int() as value):
                return value, value
            case s.ParamExtent():
                return int(node in self._some), self._most.get(node)
            case s.Var():
                return self._turns(node)
            case s.Unary(Op.NEG, value):
                low, high = self._range(value)
                return (None if high is None else -high), (None if low is None else -low)
            case s.Binary(Op.SUB, stop, s.Var() as var) if var in self.loops and self.settle(self.loops[var].stop) == stop:
                return 1, _sub(self._range(stop)[1], self._range(var)[0])
            case s.Binary(op, lhs, rhs):
                return _combined(op, self._range(lhs), self._range(rhs))
            case s.Select(_, then, other):
                one, two = self._range(then), self._range(other)
                return _lower(one[0], two[0], sure=False), _higher(one[1], two[1], sure=False)
            case _:
                return _UNKNOWN

    def _turns(self, var: s.Var) -> Range:
        """The values that a loop's variable takes; those of a loop that does not run are of no interest."""
        loop = self.loops.get(var)
        if loop is None:
            return _UNKNOWN
        start, stop, step = (self._range(self.settle(bound)) for bound in (loop.start, loop.stop, loop.step))
        last = None if stop[1] is None else stop[1] - 1
        if start[0] is not None and start[0] == start[1] and last is not None and step[0] is not None and step[0] == step[1]:
            last = start[0] + max(last - start[0], 0) // max(step[0], 1) * step[0] if stop[0] == stop[1] else last
        return start[0], last


def _equal(access: Mapping[str, ParamAccess]) -> dict[s.ParamExtent, s.ParamExtent]:
    """Return, for extents that are the same in every task, the first of them."""
    first: dict[tuple[int, int], s.ParamExtent] = {}
    found: dict[s.ParamExtent, s.ParamExtent] = {}
    for name, one in access.items():
        for dim, group in enumerate((one.row_group, one.col_group)):
            if group is not None:
                found[s.ParamExtent(name, dim)] = first.setdefault((dim, group), s.ParamExtent(name, dim))
    return found


def both(one: s.Scalar, other: s.Scalar) -> s.Scalar:
    """Return the condition that both hold."""
    if FALSE in (one, other):
        return FALSE
    if one == TRUE:
        return other
    return one if other in (TRUE, one) else s.Binary(Op.AND, one, other)


def negated(condition: s.Scalar) -> s.Scalar:
    """Return the condition that one does not hold."""
    match condition:
        case s.Const(value):
            return s.Const(not value)
        case s.Unary(Op.NOT, inner):
            return inner
        case _:
            return s.Unary(Op.NOT, condition)


def _combined(op: Op, lhs: Range, rhs: Range) -> Range:
    match op:
        case Op.ADD:
            return _add(lhs[0], rhs[0]), _add(lhs[1], rhs[1])
        case Op.SUB:
            return _sub(lhs[0], rhs[1]), _sub(lhs[1], rhs[0])
        case Op.MIN:
            return _lower(lhs[0], rhs[0], sure=False), _lower(lhs[1], rhs[1], sure=True)
        case Op.MAX:
            return _higher(lhs[0], rhs[0], sure=True), _higher(lhs[1], rhs[1], sure=False)
        case Op.MUL if lhs[0] is not None and rhs[0] is not None and lhs[0] >= 0 and rhs[0] >= 0:
            return lhs[0] * rhs[0], None if lhs[1] is None or rhs[1] is None else lhs[1] * rhs[1]
        case Op.FLOORDIV if rhs[0] is not None and rhs[0] == rhs[1] and rhs[0] > 0:
            return (None if lhs[0] is None else lhs[0] // rhs[0]), (None if lhs[1] is None else lhs[1] // rhs[0])
        case Op.MOD if rhs[0] is not None and rhs[1] is not None and rhs[0] > 0:
            return 0, rhs[1] - 1
        case _:
            return _UNKNOWN


def _add(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _sub(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one - other


def _lower(one: int | None, other: int | None, *, sure: bool) -> int | None:
    """Return the smaller bound; where one is not known, the other only if it bounds the result by itself (`sure`)."""
    if one is None or other is None:
        return (other if one is None else one) if sure else None
    return min(one, other)


def _higher(one: int | None, other: int | None, *, sure: bool) -> int | None:
    if one is None or other is None:
        return (other if one is None else one) if sure else None
    return max(one, other)


