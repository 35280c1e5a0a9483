"""What crosses from part to part: how it is stored behind what makes it, and loaded where the other parts would make it.

Each turn of the loops around it has rows of its own. Whole tiles cross, so that what lies outside of a valid part is there too; but of
a product the part that has terms, as the cube core makes no zeros. A mask crosses as numbers, 1 and 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from pto_wsp.expr import kernel as k
from pto_wsp.expr.tile_program import ParamAccess
from pto_wsp.ops.entries.cast import cast
from pto_wsp.ops.entries.compare import ne
from pto_wsp.plan.npu.known.given import Part
from pto_wsp.plan.npu.split.cores.flow import Flow
from pto_wsp.plan.npu.split.cores.parts import Crossing
from pto_wsp.plan.npu.split.cores.statements import Leaf
from pto_wsp.plan.npu.split.cores.turns import Turns, turns_of
from pto_wsp.plan.npu.split.products.part_products import is_product
from pto_wsp.source import Span
from pto_wsp.types import scalar as s
from pto_wsp.types.dtype import DType
from pto_wsp.types.tile import TileType
from pto_wsp.values import dataclass

_MASK = DType.F32      # what a mask crosses as


@dataclass(frozen=True, slots=True)
class Bridge:
    """A value that crosses: the parameter that parts hand it on by, the turns of it, and the part of it that crosses (None: all).

    `first`: the row of the parameter where it begins.
    """

    value: k.Value
    crossing: Crossing
    turns: Turns
    part: Part | None = None
    first: s.Scalar = s.Const(0)

    @property
    def type(self) -> TileType:
        """What lies in memory for one turn."""
        return TileType(self.value.type.rows, self.value.type.cols, self.crossing.dtype)

    @property
    def rows(self) -> s.Scalar:
        """How many rows all turns take; one has room in any case."""
        return s.mul(s.maximum(self.turns.count, s.Const(1)), s.Const(self.type.rows))

    @property
    def access(self) -> ParamAccess:
        """How a part finds it: contiguous rows."""
        rows = self.crossing.rows
        return ParamAccess(0, 1, rows=int(rows.value) if isinstance(rows, s.Const) else None, cols=self.type.cols,
                           unit_rows=self.type.cols == 1)

    def param(self, name: str, role: k.Role) -> k.MemoryParam:
        """Return the parameter of a part by that name: a tile where there is no more than one turn of one value, else a region."""
        if self.crossing.rows == s.Const(self.type.rows):
            return k.TileParam(name, role, self.type)
        return k.TensorParam(name, role, self.type.dtype)

    def stored(self, value_ids: Iterator[int], span: Span) -> Iterator[k.Stmt]:
        """Yield what hands the value on, behind the statement that makes it."""
        value = self.value
        if value.type.dtype.is_bool:
            value = k.Value(next(value_ids), self.type, self.value.name)
            yield k.Compute(value, cast.name, (self.value,), (("dtype", _MASK),), span)
        rows, cols = self.part or (None, None)
        yield k.Store(self.crossing.name, value, self._row(), s.Const(0), rows, cols, span=span)

    def loaded(self, value_ids: Iterator[int], span: Span) -> Iterator[k.Stmt]:
        """Yield what gives the value in another part, in place of the statement that makes it."""
        mask = self.value.type.dtype.is_bool
        value = k.Value(next(value_ids), self.type, self.value.name) if mask else self.value
        rows, cols = self.part or (None, None)
        yield k.Load(value, self.crossing.name, self._row(), s.Const(0), rows, cols, span=span)
        if mask:
            yield k.Compute(self.value, ne.name, (value, k.ScalarOperand(s.Const(0.0), _MASK)), span=span)

    def _row(self) -> s.Scalar:
        return s.add(self.first, self.turns.row(self.type.rows))


def bridges_of(flow: Flow, makers: Sequence[Leaf]) -> tuple[Bridge, ...]:
    """Return a bridge for the value that each of these leaves makes, with a name of its own.

    Raises: N102 where nobody can say how many turns there are.
    """
    taken = {param.name for param in flow.of.kernel.params}
    found: list[Bridge] = []
    for maker in makers:
        value = flow.of.value_of(maker)
        label = _label(value, maker)
        name = free_name(label, taken)
        taken.add(name)
        dtype = _MASK if value.type.dtype.is_bool else value.type.dtype
        turns = turns_of(maker.loops, f"`{name}`")
        part = flow.given.part(value) if flow.of.is_product(maker) else None
        bridge = Bridge(value, Crossing(name, label, dtype, s.Const(0), value.type.cols), turns, part)
        found.append(replace(bridge, crossing=replace(bridge.crossing, rows=bridge.rows)))
    return tuple(found)


def packed(bridges: Sequence[Bridge]) -> tuple[Bridge, ...]:
    """Return bridges of values that one part makes, those of one dtype and width in one tensor, one below the other."""
    groups: dict[tuple[DType, int], list[Bridge]] = {}
    for bridge in bridges:
        groups.setdefault((bridge.crossing.dtype, bridge.crossing.cols), []).append(bridge)
    moved: dict[int, Bridge] = {}
    for group in groups.values():
        rows: s.Scalar = s.Const(0)
        for bridge in group:
            moved[bridge.value.id] = replace(bridge, first=rows)
            rows = s.add(rows, bridge.rows)
        for bridge in group:
            place = moved[bridge.value.id]
            moved[bridge.value.id] = replace(place, crossing=replace(group[0].crossing, rows=rows))
    return tuple(moved[bridge.value.id] for bridge in bridges)


def _label(value: k.Value, maker: Leaf) -> str:
    """Return the user's name for a value, or what made it."""
    match maker.stmt:
        case k.Compute(op=op):
            made = "product" if is_product(maker.stmt) else op
        case k.Read(_, buffer):
            made = buffer.name
        case k.Load(param=param) | k.Gather(param=param):
            made = param
        case _:
            made = "value"
    return value.name or made


def free_name(name: str, taken: Collection[str]) -> str:
    """Return the name, with a number where it is taken."""
    numbers = itertools.count(2)
    free = name
    while free in taken:
        free = f"{name}_{next(numbers)}"
    return free
