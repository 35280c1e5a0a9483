"""The statements of a kernel as a graph: which core each needs, and what must run no later than what."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import field

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import result_of, uses_of
from pto_wsp.ops.entry import Unit
from pto_wsp.ops.table import find
from pto_wsp.plan.npu.known.given import Given
from pto_wsp.plan.npu.split.cores.statements import Leaf, Moving, Statements
from pto_wsp.plan.npu.split.products.part_products import is_product
from pto_wsp.types.dtype import DType
from pto_wsp.values import dataclass

FROM_ACCUMULATOR = (DType.F32, DType.I32)     # what the cube core stores as it is


@dataclass(frozen=True, slots=True)
class Edge:
    """`first` runs in no later part than `then`.

    `chained`: the result of a product is an operand of another, which another task loads. `ties`: no turn of a loop asks for it, but that
    a buffer is in one part.
    """

    first: Leaf
    then: Leaf
    chained: bool = False
    ties: bool = False


@dataclass(slots=True)
class Flow:
    """The leaves that matter, the core of each by id() of its statement, and what orders them."""

    of: Statements
    given: Given = field(init=False)
    units: dict[int, Unit] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.given = Given(self.of.kernel, self.of.access)
        self._find_nodes()

    def nodes(self) -> tuple[Leaf, ...]:
        """Return the leaves that belong to one part, in program order."""
        return tuple(leaf for leaf in self.of.leaves if id(leaf.stmt) in self.units)

    def unit(self, leaf: Leaf) -> Unit:
        """Return the core of a node."""
        return self.units[id(leaf.stmt)]

    def needed(self, leaf: Leaf, unit: Unit) -> Iterator[tuple[k.Value, Leaf, bool]]:
        """Yield the values that a leaf needs on that core, with their makers, and whether its core makes them again.

        Where a product reads an operand transposed, the transposition comes first, as made again, then what it is of.
        """
        for value in uses_of(leaf.stmt):
            maker = self.of.makers[value.id]
            yield value, maker, self.of.is_free(maker, unit) or (unit is Unit.CUBE and self.of.is_turn(maker))

    def sources(self, leaf: Leaf, unit: Unit) -> Iterator[tuple[k.Value, Leaf]]:
        """Yield the values of other nodes that a leaf of that core rests on, through all that its part makes again."""
        for value, maker, again in self.needed(leaf, unit):
            if again:
                yield from self.sources(maker, unit)
            else:
                yield value, maker

    def edges(self) -> Iterator[Edge]:
        """Yield what orders the nodes: values, buffers, memory, and prints, which keep their order."""
        yield from self._value_edges()
        yield from self._buffer_edges()
        yield from self._memory_edges()
        prints = [leaf for leaf in self.nodes() if isinstance(leaf.stmt, k.Print)]
        yield from (Edge(one, other) for one, other in itertools.pairwise(prints))

    # ---- which core ----

    def _find_nodes(self) -> None:
        """Give a core to whatever has an effect, then to what that rests on."""
        pending = [leaf for leaf in self.of.leaves if result_of(leaf.stmt) is None]
        while pending:
            leaf = pending.pop()
            if id(leaf.stmt) in self.units:
                continue
            unit = self._unit_of(leaf)
            self.units[id(leaf.stmt)] = unit
            pending += [maker for _, maker in self.sources(leaf, unit)]
        for leaf in self.of.leaves:      # a buffer that nothing reads or writes any more is not made
            if isinstance(leaf.stmt, k.Alloc) and not any(
                    isinstance(other.stmt, k.Read | k.Write | k.Accumulate) and other.stmt.buffer.id == leaf.stmt.buffer.id
                    and id(other.stmt) in self.units for other in self.of.leaves):
                del self.units[id(leaf.stmt)]

    def _unit_of(self, leaf: Leaf) -> Unit:
        match leaf.stmt:
            case k.Compute(op=op):
                return find(op).unit
            case k.Accumulate():
                return Unit.CUBE
            case k.Alloc(buffer) | k.Read(_, buffer) | k.Write(buffer):
                return Unit.CUBE if buffer.id in self.of.accumulators else Unit.VECTOR
            case k.Load():
                return Unit.CUBE if self.of.is_multiplied_alone(leaf) else Unit.VECTOR
            case k.Store(param=param):
                alone = all(self._on_cube(other) for other in self.of.leaves
                            if isinstance(other.stmt, Moving) and self.of.overlap(other.stmt.param, param))
                return Unit.CUBE if alone else Unit.VECTOR
            case _:
                return Unit.VECTOR

    def _on_cube(self, leaf: Leaf) -> bool:
        """Tell whether the cube core can do this load or store."""
        match leaf.stmt:
            case k.Load():
                return self.of.is_multiplied_alone(leaf)
            case k.Store(param, value):
                maker = self.of.makers[value.id]
                fits = value.type.dtype in FROM_ACCUMULATOR and self.of.access[param].unit_cols
                return fits and self.of.is_product(maker) and self.given.covers(leaf.stmt)
            case _:
                return False

    # ---- what orders them ----

    def _value_edges(self) -> Iterator[Edge]:
        for leaf in self.nodes():
            unit = self.unit(leaf)
            multiplies = is_product(leaf.stmt) or isinstance(leaf.stmt, k.Accumulate)
            for _, maker in self.sources(leaf, unit):
                yield Edge(maker, leaf, unit is Unit.CUBE and multiplies and self.unit(maker) is Unit.CUBE and self.of.is_product(maker))

    def _buffer_edges(self) -> Iterator[Edge]:
        first: dict[int, Leaf] = {}
        last: dict[int, Leaf] = {}
        for leaf in self.nodes():
            if isinstance(leaf.stmt, k.Alloc | k.Read | k.Write | k.Accumulate):
                before = last.get(leaf.stmt.buffer.id)
                if before is not None:
                    outside = first[leaf.stmt.buffer.id].loops
                    carried = any(loop is other for loop in leaf.loops[len(outside):] for other in before.loops)
                    yield Edge(before, leaf)
                    yield Edge(leaf, before, ties=not carried)
                first.setdefault(leaf.stmt.buffer.id, leaf)
                last[leaf.stmt.buffer.id] = leaf

    def _memory_edges(self) -> Iterator[Edge]:
        touching = [(leaf, leaf.stmt) for leaf in self.nodes() if isinstance(leaf.stmt, Moving)]
        for at, (leaf, stmt) in enumerate(touching):
            for before, other in touching[:at]:
                writes = isinstance(stmt, k.Store | k.Scatter) or isinstance(other, k.Store | k.Scatter)
                if writes and self.of.overlap(stmt.param, other.param):
                    yield Edge(before, leaf)
                    if set(map(id, leaf.loops)) & set(map(id, before.loops)):
                        yield Edge(leaf, before)
