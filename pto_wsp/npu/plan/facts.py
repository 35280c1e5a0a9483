"""Derive compile-time facts about a kernel: constant extents, ranges of scalars, empty accumulators, nonzero parts of products.

`Facts` simplifies scalars with extents that every task shares and with interval arithmetic:

>>> facts.settle(minimum(ParamExtent("x", 0), Const(64)))     # x: Tile[64, 128, F32]
ParamExtent(name='x', dim=0)

`fresh_before` is a forward dataflow analysis: the condition under which an accumulator is still empty before each statement. The cube core
then starts a new sum instead of adding to one:

    acc = alloc, init=0
    for j in range(0, n, 1):
        acc += %0 @ %1           fresh if j == 0
    %2 = read acc                fresh if not n > 0

`Given` bounds the part of a product that has terms by the valid parts of its operands; the rest is zero, and the cube core writes no zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import cached_property
from math import inf
from typing import TypeAlias

from pto_wsp.errors import CubeError
from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir.intervals import UNBOUNDED, Interval, interval
from pto_wsp.ir.kernel_walk import Body, result_of, uses_of, valid_of, walk
from pto_wsp.ir.scalar import Op
from pto_wsp.npu.isa.tile_program import ParamAccess
from pto_wsp.ops.entries.movement import transpose
from pto_wsp.ops.spec import Matmul
from pto_wsp.ops.table import find
from pto_wsp.values import dataclass

_ZERO, TRUE, FALSE = s.Const(0), s.Const(True), s.Const(False)


class Facts:
    """Simplifies scalars of one kernel. `leaves`: the kernel returns at its start if its only output is empty."""

    def __init__(self, kernel: k.Kernel, access: Mapping[str, ParamAccess], *, leaves: bool = True) -> None:
        self._access = access
        self._tiles = {p.name: p.type.shape for p in kernel.memory_params if isinstance(p, k.TileParam)}
        self.loops = {stmt.var: stmt for stmt in walk(kernel.body) if isinstance(stmt, k.For)}
        self._same = _equal(access)
        self._most = dict(self._known_most())
        stored = {stmt.param for stmt in walk(kernel.body) if isinstance(stmt, k.Store)}
        # If the only output is empty, the kernel returns at its start, so its extents are at least 1 after that. The parts of a split
        # kernel may have other outputs.
        self._some = {self._same.get(extent, extent) for param in stored for extent in (s.ParamExtent(param, 0), s.ParamExtent(param, 1))
                      if leaves and len(stored) == 1}

    def settle(self, node: s.Scalar) -> s.Scalar:
        """Return a scalar with known extents substituted and redundant bounds removed."""
        return self._trim(s.substitute(node, self._known))

    def least(self, node: s.Scalar) -> int | None:
        """Return the least value of a settled scalar, None if it is unknown."""
        low = self._range(node)[0]
        return None if low == -inf else int(low)

    def at_least_one(self, node: s.Scalar) -> s.Scalar:
        """Return the condition that a settled extent is at least 1; TRUE if it always is."""
        least = self.least(node)
        return TRUE if least is not None and least >= 1 else s.binary(Op.GT, node, _ZERO)

    def valid(self, stmt: k.Load | k.Store) -> tuple[s.Scalar, s.Scalar]:
        """Return the valid row and column counts of a load or store, in the parameter's orientation."""
        rows, cols = valid_of(stmt)
        if stmt.param in self._tiles:
            rest = (s.maximum(s.sub(s.ParamExtent(stmt.param, dim), at), _ZERO) for dim, at in enumerate((stmt.row, stmt.col)))
            rows, cols = (s.minimum(extent, left) for extent, left in zip((rows, cols), rest, strict=True))
        return self.settle(rows), self.settle(cols)

    def lies_turned(self, param: str) -> bool:
        """Return whether a parameter has unit stride down its columns and not along its rows."""
        access = self._access[param]
        return access.unit_rows and not access.unit_cols

    def has_line(self, param: str) -> bool:
        """Return whether rows or columns of a parameter are contiguous."""
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
        bounds: dict[s.ParamExtent, int] = {}
        for name, shape in self._tiles.items():
            for dim, extent in enumerate(shape):
                own = s.ParamExtent(name, dim)
                first = self._same.get(own, own)
                bounds[first] = min(extent, bounds.get(first, extent))
        yield from bounds.items()

    def _trim(self, node: s.Scalar) -> s.Scalar:
        match node:
            case s.Binary(Op.MIN | Op.MAX as op, lhs, rhs):
                lhs, rhs = self._trim(lhs), self._trim(rhs)
                (low, high), (other_low, other_high) = self._range(lhs), self._range(rhs)
                if high <= other_low:
                    return lhs if op is Op.MIN else rhs
                if other_high <= low:
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

    def _range(self, node: s.Scalar) -> Interval:
        return interval(node, self._known_range)

    def _known_range(self, node: s.Scalar) -> Interval | None:
        match node:
            case s.ParamExtent():
                return int(node in self._some), self._most.get(node, inf)
            case s.Var():
                return self._iterations(node)
            case s.Binary(Op.SUB, stop, s.Var() as var) if var in self.loops and self.settle(self.loops[var].stop) == stop:
                return 1, self._range(stop)[1] - self._range(var)[0]
            case _:
                return None

    def _iterations(self, var: s.Var) -> Interval:
        """Return the range of a loop variable. The range holds inside the loop; a loop that does not run has no such values."""
        loop = self.loops.get(var)
        if loop is None:
            return UNBOUNDED
        start, stop, step = (self._range(self.settle(bound)) for bound in (loop.start, loop.stop, loop.step))
        last = stop[1] - 1
        if start[0] == start[1] and stop[0] == stop[1] and step[0] == step[1]:
            last = start[0] + max(last - start[0], 0) // max(step[0], 1) * step[0]
        return start[0], last


def _equal(access: Mapping[str, ParamAccess]) -> dict[s.ParamExtent, s.ParamExtent]:
    """Return, for each extent that equals others in every task, the first of its group."""
    first: dict[tuple[int, int], s.ParamExtent] = {}
    representative: dict[s.ParamExtent, s.ParamExtent] = {}
    for name, one in access.items():
        for dim, group in enumerate((one.row_group, one.col_group)):
            if group is not None:
                representative[s.ParamExtent(name, dim)] = first.setdefault((dim, group), s.ParamExtent(name, dim))
    return representative


def conjoin(one: s.Scalar, other: s.Scalar) -> s.Scalar:
    """Return the conjunction of two conditions, simplified."""
    if FALSE in (one, other):
        return FALSE
    if one == TRUE:
        return other
    return one if other in (TRUE, one) else s.Binary(Op.AND, one, other)


def negate(condition: s.Scalar) -> s.Scalar:
    """Return the negation of a condition, simplified."""
    match condition:
        case s.Const(value):
            return s.Const(not value)
        case s.Unary(Op.NOT, inner):
            return inner
        case _:
            return s.Unary(Op.NOT, condition)


# -- empty accumulators ----------------------------------------------------------------------------


Conditions: TypeAlias = Mapping[Hashable, s.Scalar]      # by accumulator: the condition that it is empty


@dataclass(frozen=True, slots=True)
class Change:
    """The effect of a statement on an accumulator: `clears` empties it first, then a product is added if `terms` holds."""

    accumulator: Hashable
    name: str
    clears: bool
    terms: s.Scalar = FALSE


def fresh_before(body: Body, facts: Facts, change: Callable[[k.Stmt], Change | None]) -> Mapping[int, Conditions]:
    """Return, by `id()` of each statement, the condition that each accumulator is empty before it.

    `change` returns the effect of a statement, None if there is none.

    Raises: N104 at a loop whose first added product may fall in an iteration other than the first.
    """
    conditions: dict[int, Conditions] = {}
    _follow(body, {}, facts, change, conditions)
    return conditions


def _follow(body: Body, before: Conditions, facts: Facts, change: Callable[[k.Stmt], Change | None],
            found: dict[int, Conditions]) -> Conditions:
    now = dict(before)
    for stmt in body:
        found[id(stmt)] = dict(now)
        match stmt:
            case k.For():
                now = _after_loop(stmt, now, facts, change, found)
            case k.If():
                then = _follow(stmt.then, now, facts, change, found)
                other = _follow(stmt.other, now, facts, change, found)
                condition = facts.settle(stmt.condition)
                now = {key: then[key] if then[key] == other[key] else s.Select(condition, then[key], other[key]) for key in now}
            case _:
                made = change(stmt)
                if made is not None:
                    start = TRUE if made.clears else now.get(made.accumulator, TRUE)
                    now[made.accumulator] = conjoin(start, negate(made.terms))
    return now


def _after_loop(stmt: k.For, before: dict[Hashable, s.Scalar], facts: Facts, change: Callable[[k.Stmt], Change | None],
                found: dict[int, Conditions]) -> dict[Hashable, s.Scalar]:
    start, stop = facts.settle(stmt.start), facts.settle(stmt.stop)
    changed = {made.accumulator: made.name for inner in walk(stmt.body) if (made := change(inner)) is not None}
    first = s.Binary(Op.EQ, stmt.var, start)
    entry = {key: conjoin(value, first) if key in changed else value for key, value in before.items()}
    after = _follow(stmt.body, entry, facts, change, found)
    runs = facts.at_least_one(facts.settle(s.sub(stop, start)))
    for key in before:
        if key in changed and after[key] != FALSE:
            raise CubeError(f"`{changed[key]}` is first added to in an iteration of a loop that is known only at run time", stmt.span,
                            expected="a loop of which every iteration adds a product, or products before the loop",
                            help="leave iterations out by the loop's bounds, or keep the sum in the workload with one task an iteration")
    return {key: conjoin(value, negate(runs)) if key in changed else value for key, value in before.items()}


# -- nonzero parts of products ---------------------------------------------------------------------


Part: TypeAlias = tuple[s.Scalar, s.Scalar]     # row and column counts


class NonzeroParts:
    """The nonzero parts of a kernel's products and of the accumulators that sum products.

    `part` and `covers` raise N104 at a loop whose first added product may fall in an iteration other than the first.
    """

    def __init__(self, kernel: k.Kernel, access: Mapping[str, ParamAccess]) -> None:
        self._facts = Facts(kernel, access, leaves=False)
        self._makers = {result.id: stmt for stmt in walk(kernel.body) if (result := result_of(stmt)) is not None}
        self._sums: dict[int, list[k.Accumulate]] = {}
        for stmt in walk(kernel.body):
            if isinstance(stmt, k.Accumulate):
                self._sums.setdefault(stmt.buffer.id, []).append(stmt)
        self._kernel = kernel

    @cached_property
    def _fresh(self) -> Mapping[int, Conditions]:
        return fresh_before(self._kernel.body, self._facts, self._change)

    def part(self, value: k.Value) -> Part | None:
        """Return the row and column counts of the nonzero part of a product or sum; None if the whole tile has terms."""
        nonzero = self._part(self._makers[value.id])
        return None if nonzero == _whole(value) else nonzero

    def covers(self, stmt: k.Store) -> bool:
        """Return whether every stored element of a product has terms."""
        given = self.part(stmt.value)
        wanted = self._facts.valid(stmt)
        return given is None or all(self._facts.settle(s.minimum(*pair)) == pair[0] for pair in zip(wanted, given, strict=True))

    def _part(self, maker: k.Stmt) -> Part:
        match maker:
            case k.Compute(_, op) if isinstance(find(op), Matmul):
                return _where_not(negate(self.terms(maker)), self.product(maker))
            case k.Read(result, buffer) if buffer.id in self._sums:
                parts = {self.product(one) for one in self._sums[buffer.id]}
                return _where_not(self._fresh[id(maker)].get(buffer.id, FALSE), parts.pop() if len(parts) == 1 else _whole(result))
            case _:
                made = result_of(maker)
                assert made is not None
                return _whole(made)

    def product(self, stmt: k.Compute | k.Accumulate) -> Part:
        """Return the nonzero row and column counts of a product, assuming that its contraction is not empty."""
        lhs, rhs = uses_of(stmt)[:2]
        return self._valid(lhs)[0], self._valid(rhs)[1]

    def terms(self, stmt: k.Compute | k.Accumulate) -> s.Scalar:
        """Return the condition that the contraction of a product is not empty."""
        lhs, rhs = uses_of(stmt)[:2]
        return self._facts.at_least_one(self._facts.settle(s.minimum(self._valid(lhs)[1], self._valid(rhs)[0])))

    def _valid(self, value: k.Value) -> Part:
        """Return the row and column counts of an operand's part that may be nonzero."""
        match self._makers[value.id]:
            case k.Load() as stmt if stmt.fill == 0:
                rows, cols = self._facts.valid(stmt)
                return (cols, rows) if stmt.transpose else (rows, cols)
            case k.Compute(_, transpose.name, (k.Value() as source,)):
                rows, cols = self._valid(source)
                return cols, rows
            case k.Compute(_, op) as stmt if isinstance(find(op), Matmul):
                return self._part(stmt)
            case k.Read() as stmt:
                return self._part(stmt)
            case _:
                return _whole(value)

    def _change(self, stmt: k.Stmt) -> Change | None:
        match stmt:
            case k.Alloc(buffer) if buffer.id in self._sums:
                return Change(buffer.id, buffer.name, clears=True)
            case k.Accumulate(buffer):
                return Change(buffer.id, buffer.name, clears=False, terms=self.terms(stmt))
            case _:
                return None


def _whole(value: k.Value) -> Part:
    return s.Const(value.type.rows), s.Const(value.type.cols)


def _where_not(empty: s.Scalar, part: Part) -> Part:
    """Return a part that has no rows if `empty` holds."""
    return s.select(empty, s.Const(0), part[0]), part[1]
