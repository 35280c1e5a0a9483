"""The statements of a kernel as a graph: which core each needs, and what must run no later than what.

Loads, and what is made from them in a step or two, belong to no core: each part that needs one makes it again, where its core can.
A transposition between a value and a product belongs to the product, which reads its operand that way round.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TypeAlias

from pto_wsp.errors import unreachable
from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import Body, bodies_of, result_of, uses_of
from pto_wsp.expr.tile_program import ParamAccess
from pto_wsp.ops.entries.movement import transpose
from pto_wsp.ops.entry import Unit
from pto_wsp.ops.spec import Cast, Elementwise, Expand, Iota
from pto_wsp.ops.table import find
from pto_wsp.plan.npu.known.given import Given
from pto_wsp.plan.npu.split.cores.part_products import is_product
from pto_wsp.source import UNKNOWN, Span
from pto_wsp.types.dtype import DType
from pto_wsp.values import dataclass

FROM_ACCUMULATOR = (DType.F32, DType.I32)     # what the cube core stores as it is
_AGAIN_DEPTH = 3                              # so many operations deep a part makes a value again
_AGAIN_BYTES = 4                              # ... that reads at most so many times what it gives

Container: TypeAlias = k.For | k.If


@dataclass(frozen=True, slots=True)
class Leaf:
    """A statement without a body, and the loops and branches that it stands in, outermost first."""

    stmt: k.Stmt
    path: tuple[Container, ...]
    at: int                               # in program order

    @property
    def loops(self) -> tuple[k.For, ...]:
        """The loops that it stands in."""
        return tuple(step for step in self.path if isinstance(step, k.For))

    @property
    def span(self) -> Span:
        """Where the user wrote it."""
        return UNKNOWN if isinstance(self.stmt, k.Rows | k.Columns) else self.stmt.span


@dataclass(frozen=True, slots=True)
class Edge:
    """`first` runs in no later part than `then`. `chained`: the result of a product is an operand of another, which another task loads."""

    first: Leaf
    then: Leaf
    chained: bool = False


@dataclass(slots=True)
class Flow:
    """What is known of a kernel: its leaves, who makes and uses each value, and which core each leaf that matters needs.

    `shared`: pairs of memory parameters that may overlap. `units`: by id() of the statement.
    """

    kernel: k.Kernel
    access: Mapping[str, ParamAccess]
    shared: frozenset[tuple[str, str]]
    leaves: tuple[Leaf, ...] = field(init=False)
    makers: dict[int, Leaf] = field(init=False)
    users: dict[int, list[Leaf]] = field(init=False)
    accumulators: frozenset[int] = field(init=False)
    stored: frozenset[str] = field(init=False)
    given: Given = field(init=False)
    units: dict[int, Unit] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.leaves = tuple(_leaves(self.kernel.body))
        self.makers = {result.id: leaf for leaf in self.leaves if (result := result_of(leaf.stmt)) is not None}
        self.users = {}
        for leaf in self.leaves:
            for value in uses_of(leaf.stmt):
                self.users.setdefault(value.id, []).append(leaf)
        self.accumulators = frozenset(leaf.stmt.buffer.id for leaf in self.leaves if isinstance(leaf.stmt, k.Accumulate))
        written = {leaf.stmt.param for leaf in self.leaves if isinstance(leaf.stmt, k.Store | k.Scatter)}
        self.stored = frozenset(name for name in self.access if any(self.overlap(name, other) for other in written))
        self.given = Given(self.kernel, self.access)
        self._find_nodes()

    # ---- questions ----

    def nodes(self) -> tuple[Leaf, ...]:
        """Return the leaves that belong to one part, in program order."""
        return tuple(leaf for leaf in self.leaves if id(leaf.stmt) in self.units)

    def value_of(self, leaf: Leaf) -> k.Value:
        """Return the value that a leaf makes."""
        value = result_of(leaf.stmt)
        return unreachable("value of a statement without one") if value is None else value

    def unit(self, leaf: Leaf) -> Unit:
        """Return the core of a node."""
        return self.units[id(leaf.stmt)]

    def overlap(self, one: str, other: str) -> bool:
        """Tell whether two memory parameters may name the same elements."""
        return one == other or (one, other) in self.shared

    def needed(self, leaf: Leaf, unit: Unit) -> Iterator[tuple[k.Value, Leaf, bool]]:
        """Yield the values that a leaf needs on that core, with their makers, and whether its core makes them again.

        Where a product reads an operand transposed, the transposition comes first, as made again, then what it is of.
        """
        for value in uses_of(leaf.stmt):
            maker = self.makers[value.id]
            yield value, maker, self.is_free(maker, unit) or self.is_turn(maker, unit)

    def is_turn(self, leaf: Leaf, unit: Unit) -> bool:
        """Tell whether a leaf is a transposition, on the cube core: a load the other way round."""
        return unit is Unit.CUBE and isinstance(leaf.stmt, k.Compute) and leaf.stmt.op == transpose.name

    def is_free(self, leaf: Leaf, unit: Unit, depth: int = 0) -> bool:
        """Tell whether each part on that core makes what the leaf gives again, rather than be given it."""
        match leaf.stmt:
            case k.Load(param=param):
                return param not in self.stored and (unit is Unit.VECTOR or self._cube_loads(leaf.stmt))
            case k.Compute(result, op, operands) if unit is Unit.VECTOR and leaf.stmt.guard is None and depth < _AGAIN_DEPTH:
                values = [operand for operand in operands if isinstance(operand, k.Value)]
                quick = isinstance(find(op), Elementwise | Cast | Expand | Iota)
                small = sum(value.type.size_bytes for value in values) <= _AGAIN_BYTES * result.type.size_bytes
                return quick and small and all(self.is_free(self.makers[value.id], unit, depth + 1) for value in values)
            case _:
                return False

    def is_product(self, leaf: Leaf) -> bool:
        """Tell whether the leaf's value lies in the accumulator of the cube core."""
        return is_product(leaf.stmt) or (isinstance(leaf.stmt, k.Read) and leaf.stmt.buffer.id in self.accumulators)

    def edges(self) -> Iterator[Edge]:
        """Yield what orders the nodes: values, buffers, memory, and prints, which keep their order."""
        yield from self._value_edges()
        yield from self._buffer_edges()
        yield from self._memory_edges()
        prints = [leaf for leaf in self.nodes() if isinstance(leaf.stmt, k.Print)]
        yield from (Edge(one, other) for one, other in itertools.pairwise(prints))

    def sources(self, leaf: Leaf, unit: Unit) -> Iterator[tuple[k.Value, Leaf]]:
        """Yield the values of other nodes that a leaf of that core rests on, through all that its part makes again."""
        for value, maker, again in self.needed(leaf, unit):
            if again:
                yield from self.sources(maker, unit)
            else:
                yield value, maker

    # ---- which core ----

    def _find_nodes(self) -> None:
        """Give a core to whatever has an effect, then to what that rests on."""
        pending = [leaf for leaf in self.leaves if result_of(leaf.stmt) is None]
        while pending:
            leaf = pending.pop()
            if id(leaf.stmt) in self.units:
                continue
            unit = self._unit_of(leaf)
            self.units[id(leaf.stmt)] = unit
            pending += [maker for _, maker in self.sources(leaf, unit)]
        for leaf in self.leaves:      # a buffer that nothing reads or writes any more is not made
            if isinstance(leaf.stmt, k.Alloc) and not any(
                    isinstance(other.stmt, k.Read | k.Write | k.Accumulate) and other.stmt.buffer.id == leaf.stmt.buffer.id
                    and id(other.stmt) in self.units for other in self.leaves):
                del self.units[id(leaf.stmt)]

    def _unit_of(self, leaf: Leaf) -> Unit:
        match leaf.stmt:
            case k.Compute(op=op):
                return find(op).unit
            case k.Accumulate():
                return Unit.CUBE
            case k.Alloc(buffer) | k.Read(_, buffer) | k.Write(buffer):
                return Unit.CUBE if buffer.id in self.accumulators else Unit.VECTOR
            case k.Load():
                return Unit.CUBE if self._is_multiplied_alone(leaf) else Unit.VECTOR
            case k.Store(param=param):
                alone = all(self._on_cube(other) for other in self.leaves
                            if isinstance(other.stmt, k.Load | k.Store | k.Gather | k.Scatter) and self.overlap(other.stmt.param, param))
                return Unit.CUBE if alone else Unit.VECTOR
            case _:
                return Unit.VECTOR

    def _on_cube(self, leaf: Leaf) -> bool:
        """Tell whether the cube core can do this load or store."""
        match leaf.stmt:
            case k.Load():
                return self._is_multiplied_alone(leaf)
            case k.Store(param, value):
                return (self.is_product(self.makers[value.id]) and value.type.dtype in FROM_ACCUMULATOR
                        and self.access[param].unit_cols and self.given.covers(leaf.stmt))
            case _:
                return False

    def _is_multiplied_alone(self, leaf: Leaf) -> bool:
        """Tell whether products take what is loaded, as it is or transposed, and nothing else does."""
        assert isinstance(leaf.stmt, k.Load)

        def multiplied(value: k.Value) -> bool:
            return all(is_product(user.stmt) or isinstance(user.stmt, k.Accumulate)
                       or (isinstance(user.stmt, k.Compute) and user.stmt.op == transpose.name and multiplied(user.stmt.result))
                       for user in self.users.get(value.id, ()))

        return self._cube_loads(leaf.stmt) and multiplied(leaf.stmt.result)

    def _cube_loads(self, load: k.Load) -> bool:
        """Tell whether the cube core can load it: neighbours in memory along one axis, zeros outside the valid part."""
        access = self.access[load.param]
        return (access.unit_cols or access.unit_rows) and load.fill == 0

    # ---- what orders them ----

    def _value_edges(self) -> Iterator[Edge]:
        for leaf in self.nodes():
            unit = self.unit(leaf)
            multiplies = is_product(leaf.stmt) or isinstance(leaf.stmt, k.Accumulate)
            for _, maker in self.sources(leaf, unit):
                yield Edge(maker, leaf, unit is Unit.CUBE and multiplies and self.unit(maker) is Unit.CUBE and self.is_product(maker))

    def _buffer_edges(self) -> Iterator[Edge]:
        last: dict[int, Leaf] = {}
        for leaf in self.nodes():
            if isinstance(leaf.stmt, k.Alloc | k.Read | k.Write | k.Accumulate):
                before = last.get(leaf.stmt.buffer.id)
                if before is not None:
                    yield Edge(before, leaf)
                    yield Edge(leaf, before)
                last[leaf.stmt.buffer.id] = leaf

    def _memory_edges(self) -> Iterator[Edge]:
        touching = [(leaf, leaf.stmt.param) for leaf in self.nodes() if isinstance(leaf.stmt, k.Load | k.Store | k.Gather | k.Scatter)]
        for at, (leaf, param) in enumerate(touching):
            for before, other in touching[:at]:
                if self.overlap(param, other) and isinstance(leaf.stmt, k.Store | k.Scatter) | isinstance(before.stmt, k.Store | k.Scatter):
                    yield Edge(before, leaf)
                    if set(map(id, leaf.loops)) & set(map(id, before.loops)):
                        yield Edge(leaf, before)


def _leaves(body: Body, path: tuple[Container, ...] = (), first: int = 0) -> Iterator[Leaf]:
    at = first
    for stmt in body:
        if isinstance(stmt, k.For | k.If):
            for inner in bodies_of(stmt):
                for leaf in _leaves(inner, (*path, stmt), at):
                    at = leaf.at + 1
                    yield leaf
        else:
            yield Leaf(stmt, path, at)
            at += 1
