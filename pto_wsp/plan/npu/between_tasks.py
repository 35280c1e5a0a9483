"""Tensors that only hand values from task to task: the runtime allocates them, so they are no arguments of a package.

A `Tensor.empty` of a workload is one where tasks both write and read it. Where the first task surely writes all of it, and nothing else,
the runtime allocates it for that task; else it is allocated before. What it lies in ends with the statements that use it.

>>> # parts = Tensor.empty((2, 4, 64, 128), F32)       scope:
>>> # for i in P(2): …parts[i]…                         parts = allocate()
>>> #                                                   for i in range(2): …
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace

from pto_wsp.expr.kernel import Role
from pto_wsp.expr.rewrite import nodes, rewrite
from pto_wsp.plan.model import TaskPlan, TensorSlot
from pto_wsp.plan.npu.model import Block, Descriptor, Launch, NpuItem, NpuPlan, Scope, Unordered
from pto_wsp.plan.npu.walk import launches_of
from pto_wsp.types import scalar as s
from pto_wsp.types.layout import Layout, TensorRef
from pto_wsp.values import dataclass


def mark_between_tasks(plan: TaskPlan, intermediates: Set[int]) -> TaskPlan:
    """Return the plan with those of its intermediate tensors marked that a package need not be given. `intermediates`: ids.

    What a body makes for itself is never given.
    """
    def mark(slot: TensorSlot) -> TensorSlot:
        inside = slot.fresh or (slot.is_between_tasks(intermediates) and all(slot.ref.shape))
        return replace(slot, allocated=True) if inside else slot

    return replace(plan, tensors=tuple(map(mark, plan.tensors)))


def with_known_extents(plan: TaskPlan) -> TaskPlan:
    """Return the plan with numbers for the extents and strides of tensors that are no arguments: no run can bind others."""
    known = {slot.ref.id for slot in plan.tensors if slot.allocated}

    def change(node: object) -> object | None:
        match node:
            case s.DimOf(tensor, dim) if tensor.id in known:
                return s.Const(tensor.shape[dim])
            case s.StrideOf(tensor, dim) if tensor.id in known:
                return s.Const(Layout.contiguous(tensor.shape).strides[dim])
            case s.Unary(op, value):
                return s.unary(op, value)
            case s.Binary(op, lhs, rhs):
                return s.binary(op, lhs, rhs)
            case s.Select(condition, then, other):
                return s.select(condition, then, other)
            case _:
                return None

    return replace(plan, body=rewrite(plan.body, change)) if known else plan


def extents_of(tensor: TensorRef, *, allocated: bool) -> tuple[s.Scalar, ...]:
    """Return the extents of a tensor, numbers where no run can bind others."""
    return tuple(s.Const(extent) if allocated else s.DimOf(tensor, dim) for dim, extent in enumerate(tensor.shape))


def add_allocations(plan: NpuPlan) -> NpuPlan:
    """Return the plan with scopes around what uses each tensor that is no argument. What a body makes for itself has one already."""
    plan = replace(plan, body=_with_makers(plan.body))
    slots = {slot.ref.id: number for number, slot in enumerate(plan.tensors) if slot.allocated and not slot.fresh}
    body = _scoped(plan.body, frozenset(slots.values()), _Users({tensor: slot for tensor, slot in slots.items()
                                                                 if plan.tensors[slot].scalars}))
    return replace(plan, body=body)


def _with_makers(body: Block) -> Block:
    """Return a body in which the first launch that uses a tensor of a scope in it makes the tensor, where it can."""
    def change(node: object) -> object | None:
        match node:
            case Scope(intermediates, inner, tensors) if tensors:
                items, users = list(inner.items), _Users({}).of(frozenset(tensors), inner.items)
                for slot, at in users.items():
                    for first in at[:1]:
                        items[first] = _allocating(items[first], slot)
                return Scope(intermediates, Block(tuple(items)), tensors)
            case _:
                return None

    return rewrite(body, change)


def allocated_by_launches(body: Block) -> frozenset[int]:
    """Return the slots of the tensors that launches of a body make."""
    return frozenset(found.slot for launch in launches_of(body) for found in launch.arguments
                     if isinstance(found, Descriptor) and found.allocates)


@dataclass(frozen=True, slots=True)
class _Users:
    """Finds what uses tensors. `read`: slots of those of which elements are read while tasks are made, by the ids of the tensors."""

    read: Mapping[int, int]

    def of(self, slots: Set[int], items: Sequence[NpuItem]) -> dict[int, list[int]]:
        """Return by slot at which places among the items it is used."""
        found = [set(self._used(item)) for item in items]
        return {slot: [at for at, used in enumerate(found) if slot in used] for slot in slots}

    def _used(self, item: NpuItem) -> Iterator[int]:
        yield from (found.slot for launch in launches_of(item) for found in launch.arguments if isinstance(found, Descriptor))
        if self.read:
            yield from (self.read[node.tensor.id] for node in nodes(item) if isinstance(node, s.Element) and node.tensor.id in self.read)


def _scoped(body: Block, slots: Set[int], users_of: _Users) -> Block:
    """Return a body with a scope around the statements that use each of these tensors, in the narrowest block that holds them all."""
    users = users_of.of(slots, body.items)
    inner = {slot: at[0] for slot, at in users.items() if len(at) == 1 and _may_hold_scopes(body.items[at[0]])}
    items = list(body.items)
    for position in set(inner.values()):
        items[position] = _scoped_inside(items[position], {slot for slot, at in inner.items() if at == position}, users_of)
    found: list[NpuItem] = []
    at = 0
    for first, last, made in _runs(sorted((at[0], at[-1], slot) for slot, at in users.items() if slot not in inner)):
        found += items[at:first]
        for slot in made:
            items[users[slot][0]] = _allocating(items[users[slot][0]], slot)
        found.append(Scope((), Block(tuple(items[first:last + 1])), made))
        at = last + 1
    return Block((*found, *items[at:]))


def _allocating(item: NpuItem, slot: int) -> NpuItem:
    """Return the first item that uses a tensor: where it is one launch that writes all of it and nothing else, it makes it."""
    match item:
        case Launch(arguments=arguments):
            whole = Descriptor(slot, Role.OUT)
            concerned = [found for found in arguments if found.role.writes or (isinstance(found, Descriptor) and found.slot == slot)]
            if concerned != [whole]:
                return item
            return replace(item, arguments=tuple(replace(whole, allocates=True) if found == whole else found for found in arguments))
        case _:
            return item


def _runs(users: list[tuple[int, int, int]]) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Yield the first and the last of statements that belong together, and the tensors they share: where two overlap, they are one."""
    while users:
        first, last, slot = users.pop(0)
        slots = [slot]
        while users and users[0][0] <= last:
            _, other, slot = users.pop(0)
            last = max(last, other)
            slots.append(slot)
        yield first, last, tuple(sorted(slots))


def _may_hold_scopes(item: NpuItem) -> bool:
    """Tell whether a scope may stand inside an item: what is one task stays one, and a loop's turns share the tensor."""
    match item:
        case Block() | Unordered():
            return len({launch.source for launch in launches_of(item)}) > 1
        case _:
            return False


def _scoped_inside(item: NpuItem, slots: Set[int], users_of: _Users) -> NpuItem:
    match item:
        case Block():
            return _scoped(item, slots, users_of)
        case Unordered(sides):
            users = users_of.of(slots, sides)
            shared = {slot for slot, at in users.items() if len(at) > 1}
            inside = Unordered(tuple(_scoped(side, {slot for slot, at in users.items() if at == [position]}, users_of)
                                     for position, side in enumerate(sides)))
            return Scope((), Block((inside,)), tuple(sorted(shared))) if shared else inside
        case _:
            return item
