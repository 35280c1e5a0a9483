"""The statements of a kernel, who makes and who uses each value, and what each core can do again rather than be given.

Loads, and what is made from them in a step or two, belong to no core: each part that needs one makes it again, where its core can.
A transposition between a value and a product belongs to the product, which reads its operand that way round.
"""

from __future__ import annotations

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
from pto_wsp.plan.npu.split.products.part_products import is_product
from pto_wsp.source import UNKNOWN, Span
from pto_wsp.values import dataclass

_AGAIN_DEPTH = 3                              # so many operations deep a part makes a value again
_AGAIN_BYTES = 4                              # ... that reads at most so many times what it gives

Container: TypeAlias = k.For | k.If
Moving: TypeAlias = k.Load | k.Store | k.Gather | k.Scatter


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


@dataclass(slots=True)
class Statements:
    """The leaves of a kernel. `access`: of its memory parameters; `shared`: pairs of those that may overlap."""

    kernel: k.Kernel
    access: Mapping[str, ParamAccess]
    shared: frozenset[tuple[str, str]]
    leaves: tuple[Leaf, ...] = field(init=False)
    makers: dict[int, Leaf] = field(init=False)          # by value
    users: dict[int, list[Leaf]] = field(init=False)     # by value
    accumulators: frozenset[int] = field(init=False)     # buffers that products are added to in place
    stored: frozenset[str] = field(init=False)           # parameters that may change while the kernel runs

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

    def value_of(self, leaf: Leaf) -> k.Value:
        """Return the value that a leaf makes."""
        value = result_of(leaf.stmt)
        return unreachable("value of a statement without one") if value is None else value

    def overlap(self, one: str, other: str) -> bool:
        """Tell whether two memory parameters may name the same elements."""
        return one == other or (one, other) in self.shared

    def is_turn(self, leaf: Leaf) -> bool:
        """Tell whether a leaf is a transposition: on the cube core a load the other way round."""
        return isinstance(leaf.stmt, k.Compute) and leaf.stmt.op == transpose.name

    def is_product(self, leaf: Leaf) -> bool:
        """Tell whether the leaf's value lies in the accumulator of the cube core."""
        return is_product(leaf.stmt) or (isinstance(leaf.stmt, k.Read) and leaf.stmt.buffer.id in self.accumulators)

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

    def on_cube(self, load: Leaf) -> bool:
        """Tell whether the cube core loads what a product takes of this load."""
        return self.is_free(load, Unit.CUBE) or self.is_multiplied_alone(load)

    def is_multiplied_alone(self, load: Leaf) -> bool:
        """Tell whether products take what is loaded, as it is or transposed, and nothing else does."""
        assert isinstance(load.stmt, k.Load)

        def multiplied(value: k.Value) -> bool:
            return all(is_product(user.stmt) or isinstance(user.stmt, k.Accumulate)
                       or (self.is_turn(user) and multiplied(self.value_of(user))) for user in self.users.get(value.id, ()))

        return self._cube_loads(load.stmt) and multiplied(load.stmt.result)

    def _cube_loads(self, load: k.Load) -> bool:
        """Tell whether the cube core can load it: neighbours in memory along one axis, zeros outside the valid part."""
        access = self.access[load.param]
        return (access.unit_cols or access.unit_rows) and load.fill == 0


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
