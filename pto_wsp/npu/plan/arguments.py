"""Decide how each tensor of a plan reaches the device: allocated by the runtime, or an argument with a direction.

A `Tensor.empty` that tasks both write and read is an intermediate: the runtime allocates it, so it is not an argument. If the first use of
the tensor is a single launch that surely overwrites the whole of it, that launch allocates it; otherwise a scope does. Its scope spans the
statements that use it:

>>> # parts = Tensor.empty((2, 4, 64, 128), F32)       scope:
>>> # for i in P(2): …parts[i]…                         parts = allocate()
>>> #                                                   for i in range(2): …

`tensor_directions` makes an argument OUT only if tasks surely write all of it: the device returns garbage in elements that no task wrote,
so a partly written tensor is INOUT. `merge_dims` folds leading dimensions beyond the runtime's maximum into one, if tasks index each of
them with one position:

    X [2, 3, 4, 5, 16, 16], X[a, b, c, d]      →      X [6, 4, 5, 16, 16], X[a * 3 + b, c, d]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import assert_never

from pto_wsp.errors import DeviceLimitError, raise_all
from pto_wsp.ir import scalar as s
from pto_wsp.ir.flow import Do, Loop, Sides, leaves
from pto_wsp.ir.flow import Sequence as PlanSequence
from pto_wsp.ir.kernel import Kernel, Role, Store, TileParam
from pto_wsp.ir.layout import Layout, TensorRef
from pto_wsp.ir.plan import Check, CheckKind, Place, Submit, TaskPlan, TensorSlot
from pto_wsp.ir.plan_walk import map_submits
from pto_wsp.ir.rewrite import nodes, rewrite
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.view import Clip, Cut, Permute, Pick, Reshape, Step, View, declared, place_of, print_view
from pto_wsp.npu.isa.runtime import limit
from pto_wsp.npu.plan.model import Around, Descriptor, Launch, NpuBody, NpuItem, NpuKernel, NpuLoop, NpuPlan, Scope, Window, launches_within
from pto_wsp.npu.tiles.touches import linear
from pto_wsp.passes.task_checks import view_checks
from pto_wsp.source import Span
from pto_wsp.values import dataclass


def mark_between_tasks(plan: TaskPlan, intermediates: Set[int]) -> TaskPlan:
    """Return the plan with `allocated` set on the tensors that the package does not take as arguments.

    `intermediates`: ids of the workload's `Tensor.empty`. Tensors made inside a body are always allocated.
    """
    def mark(slot: TensorSlot) -> TensorSlot:
        inside = slot.fresh or (slot.is_between_tasks(intermediates) and all(slot.ref.shape))
        return replace(slot, allocated=True) if inside else slot

    return replace(plan, tensors=tuple(map(mark, plan.tensors)))


def with_known_extents(plan: TaskPlan) -> TaskPlan:
    """Return the plan with constant extents and strides of allocated tensors: no run can bind another array to them."""
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
    """Return the extents of a tensor: constants if it is allocated, else dimensions that a run binds."""
    return tuple(s.Const(extent) if allocated else s.DimOf(tensor, dim) for dim, extent in enumerate(tensor.shape))


def add_allocations(plan: NpuPlan) -> NpuPlan:
    """Return the plan with a scope around the users of each allocated tensor. Tensors made inside a body have a scope already."""
    plan = replace(plan, body=_with_makers(plan.body))
    slots = {slot.ref.id: number for number, slot in enumerate(plan.tensors) if slot.allocated and not slot.fresh}
    body = _scoped(plan.body, frozenset(slots.values()), _Users({tensor: slot for tensor, slot in slots.items()
                                                                 if plan.tensors[slot].scalars}))
    return replace(plan, body=body)


def _with_makers(body: NpuBody) -> NpuBody:
    """Return a body in which the first launch that uses a tensor of a scope in it makes the tensor, where it can."""
    def change(node: object) -> object | None:
        match node:
            case Scope(inner, _, tensors) if tensors:
                items, users = list(inner), _Users({}).of(frozenset(tensors), inner)
                for slot, at in users.items():
                    for first in at[:1]:
                        items[first] = _allocating(items[first], slot)
                return replace(node, items=tuple(items))
            case _:
                return None

    return rewrite(body, change)


def allocated_by_launches(body: NpuBody) -> frozenset[int]:
    """Return the slots of the tensors that launches of a body make."""
    return frozenset(found.slot for launch in leaves(body) for found in launch.arguments
                     if isinstance(found, Descriptor) and found.allocates)


@dataclass(frozen=True, slots=True)
class _Users:
    """Finds the users of tensors. `read`: slots of tensors whose elements are read while tasks are created, by tensor id."""

    read: Mapping[int, int]

    def of(self, slots: Set[int], items: Sequence[NpuItem]) -> dict[int, list[int]]:
        """Return, by slot, the positions of the items that use the tensor."""
        found = [set(self._used(item)) for item in items]
        return {slot: [at for at, used in enumerate(found) if slot in used] for slot in slots}

    def _used(self, item: NpuItem) -> Iterator[int]:
        yield from (found.slot for launch in leaves(item) for found in launch.arguments if isinstance(found, Descriptor))
        if self.read:
            yield from (self.read[node.tensor.id] for node in nodes(item) if isinstance(node, s.Element) and node.tensor.id in self.read)


def _scoped(body: NpuBody, slots: Set[int], users_of: _Users) -> NpuBody:
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
        found.append(Scope(tuple(items[first:last + 1]), (), made))
        at = last + 1
    return PlanSequence((*found, *items[at:]))


def _allocating(item: NpuItem, slot: int) -> NpuItem:
    """Return the item, marked as the tensor's allocator if it is one launch that writes the whole tensor and nothing else."""
    match item:
        case Do(Launch(arguments=arguments) as launch):
            whole = Descriptor(slot, Role.OUT)
            concerned = [found for found in arguments if found.role.writes or (isinstance(found, Descriptor) and found.slot == slot)]
            if concerned != [whole]:
                return item
            return Do(replace(launch, arguments=tuple(replace(whole, allocates=True) if found == whole else found for found in arguments)))
        case _:
            return item


def _runs(users: list[tuple[int, int, int]]) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Yield (first, last, slots) for maximal groups of overlapping statement ranges, so that scopes do not cross."""
    while users:
        first, last, slot = users.pop(0)
        slots = [slot]
        while users and users[0][0] <= last:
            _, other, slot = users.pop(0)
            last = max(last, other)
            slots.append(slot)
        yield first, last, tuple(sorted(slots))


def _may_hold_scopes(item: NpuItem) -> bool:
    """Return whether a scope may be placed inside an item: not inside one task, nor in a loop, whose iterations share the tensor."""
    match item:
        case PlanSequence() | Sides():
            return len({launch.source for launch in leaves(item)}) > 1
        case _:
            return False


def _scoped_inside(item: NpuItem, slots: Set[int], users_of: _Users) -> NpuItem:
    match item:
        case PlanSequence():
            return _scoped(item, slots, users_of)
        case Sides(sides):
            users = users_of.of(slots, sides)
            shared = {slot for slot, at in users.items() if len(at) > 1}
            inside = Sides(tuple(_scoped(side, {slot for slot, at in users.items() if at == [position]}, users_of)
                                     for position, side in enumerate(sides)))
            return Scope((inside,), (), tuple(sorted(shared))) if shared else inside
        case _:
            return item


# -- directions ------------------------------------------------------------------------------------


def tensor_directions(plan: NpuPlan) -> tuple[Role, ...]:
    """Return the direction of each argument tensor of the package, in order."""
    return tuple(_direction(plan, number) for number, slot in enumerate(plan.tensors) if not slot.allocated)


def _direction(plan: NpuPlan, number: int) -> Role:
    slot = plan.tensors[number]
    if not slot.writes:
        return Role.IN
    if slot.reads or slot.scalars:
        return Role.INOUT
    whole = any(_covers(found, plan.kernels[launch.kernel], position, slot.ref, around)
                for launch, around in launches_within(plan.body)
                for position, found in enumerate(launch.arguments) if isinstance(found, Descriptor) and found.slot == number)
    return Role.OUT if whole else Role.INOUT


def _covers(found: Descriptor, use: NpuKernel, position: int, ref: TensorRef, around: tuple[Around, ...]) -> bool:
    """Return whether the iterations of the loops around a launch surely write every element of a tensor.

    False under a fork, whose branch may not run.
    """
    access = use.access[position]
    loops = tuple(one for one in around if isinstance(one, Loop))
    if len(loops) < len(around):
        return False
    if not _stores_all(use.kernel, position) or access.row_step != 1 or access.col_step != 1:     # steps skip elements
        return False
    if not found.steps:
        return all(_constant(loop.start) is not None and _surely_iterates(loop) for loop in loops)
    if len(found.steps) != 1 or not isinstance(found.steps[0], Window):
        return False
    turned = {loop.var: loop for loop in loops}
    window, used = found.steps[0], set[s.Var]()
    for offset, shape, extent in zip(window.offset, window.shape, ref.shape, strict=True):
        tiles = _tiled(declared(offset), declared(shape), extent, turned)
        if tiles is None or tiles & used:
            return False
        used |= tiles
    return all(_surely_iterates(loop) for var, loop in turned.items() if var not in used)


def _stores_all(kernel: Kernel, position: int) -> bool:
    """Return whether a kernel unconditionally writes the whole of a Tile parameter."""
    param = kernel.memory_params[position]
    return isinstance(param, TileParam) and any(
        isinstance(stmt, Store) and stmt.param == param.name and stmt.row == s.Const(0) and stmt.col == s.Const(0)
        and stmt.valid_rows is None and stmt.valid_cols is None and stmt.value.type.shape == param.type.shape for stmt in kernel.body)


def _tiled(offset: s.Scalar, shape: s.Scalar, extent: int, loops: Mapping[s.Var, NpuLoop]) -> frozenset[s.Var] | None:
    """Return the loop variables by which windows along one dimension cover its extent, None where that is not plain."""
    size = _constant(shape)
    if offset == s.Const(0) and size == extent:
        return frozenset()
    match offset:
        case s.Var():
            var, step = offset, 1
        case s.Binary(s.Op.MUL, s.Var() as var, s.Const(value)):
            step = int(value)
        case _:
            return None
    if size is None:
        limits = tuple(_limits(shape))
        size = min((int(limit.value) for limit in limits if isinstance(limit, s.Const)), default=0)
        if not all(isinstance(limit, s.Const) or _reaches(s.add(offset, limit), extent) for limit in limits):
            return None     # a window is shorter than `size` before the end of the tensor
    loop = loops.get(var)
    if loop is None or size < step or step < 1 or loop.start != s.Const(0) or loop.step != s.Const(1):
        return None
    stop = _constant(declared(loop.stop))
    return frozenset({var}) if stop is not None and stop * step >= extent else None


def _limits(node: s.Scalar) -> Iterator[s.Scalar]:
    """Yield the operands of a nested minimum."""
    match node:
        case s.Binary(s.Op.MIN, one, other):
            yield from _limits(one)
            yield from _limits(other)
        case _:
            yield node


def _reaches(end: s.Scalar, extent: int) -> bool:
    """Return whether a sum is a constant of at least `extent`."""
    found = linear(end, {})
    return found is not None and not found.terms and found.number >= extent


def _surely_iterates(loop: NpuLoop) -> bool:
    """Tell whether a loop surely runs at least once."""
    start, stop = _constant(declared(loop.start)), _constant(declared(loop.stop))
    return start is not None and stop is not None and stop > start


def _constant(node: s.Scalar) -> int | None:
    return int(node.value) if isinstance(node, s.Const) else None


# -- reshaped dimensions ---------------------------------------------------------------------------


def with_whole_reshapes(plan: TaskPlan) -> TaskPlan:
    """Return the plan with every view reshaped as a whole: a descriptor of the runtime has no other reshape.

            X[:].reshape(n, 4, 8) of a tensor of shape (64, 32)    →    refused where n is not 64, which a guard compares

    Raises: N101 for a view of which another dimension has an extent that only a run knows.
    """
    errors: list[DeviceLimitError] = []

    def task(one: Submit) -> Submit:
        params = plan.kernels[one.kernel].kernel.memory_params
        places: list[Place] = []
        checks: list[Check] = []
        for place, param in zip(one.places, params, strict=True):
            if any(isinstance(step, Reshape) and step.dims for step in place.view.steps):
                try:
                    place = replace(place, view=_reshaped_whole(place.view, one.span))
                    checks += (check for check in view_checks(place.view, param, one.span) if check not in one.note.checks)
                except DeviceLimitError as error:
                    errors.append(error)
            places.append(place)
        return replace(one, places=tuple(places), note=replace(one.note, checks=(*one.note.checks, *dict.fromkeys(checks))))

    changed = map_submits(plan, task)
    raise_all(errors)
    return changed


def _reshaped_whole(view: View, span: Span) -> View:
    made = View(view.tensor)
    for step in view.steps:
        if isinstance(step, Reshape) and step.dims:
            extents = [declared(dim.extent) for dim in place_of(made).dims]
            first, last = step.span(len(extents))
            around = (*extents[:first], *map(s.Const, step.shape), *extents[last:])
            shape = tuple(int(extent.value) for extent in around if isinstance(extent, s.Const))
            if len(shape) < len(around):
                raise DeviceLimitError(f"`{print_view(view)}` reshapes a view whose size only a run knows", span,
                                       expected="extents of numbers", found=f"[{', '.join(map(print_scalar, around))}]",
                                       help="reshape the tensor first, and cut it then: X.reshape(64, 4, 8)[:n]")
            step = Reshape(shape)
        made = View(made.tensor, (*made.steps, step))
    return made


# -- tensors with too many dimensions --------------------------------------------------------------


MAX_DIMS = limit("dims")


def merge_dims(plan: TaskPlan) -> TaskPlan:
    """Return the plan with every tensor limited to the runtime's maximum of dimensions.

    Raises: N101 for a view that takes more than one position of a merged dimension.
    """
    merged = {slot.ref.id: _fold_leading_dims(slot.ref) for slot in plan.tensors if slot.ref.rank > MAX_DIMS}
    if not merged:
        return plan
    errors: list[DeviceLimitError] = []

    def task(one: Submit) -> Submit:
        places: list[Place] = []
        checks: list[Check] = []
        for place in one.places:
            if place.view.tensor.id in merged:
                try:
                    place = replace(place, view=_merged_view(place.view, merged[place.view.tensor.id], one.span))
                except DeviceLimitError as error:
                    errors.append(error)
                whole = place.view.tensor
                checks.append(Check(CheckKind.TILE, s.DimOf(whole, 0), s.Const(whole.shape[0]), s.Const(whole.shape[0]), whole.shown,
                                    span=one.span))
            places.append(place)
        return replace(one, places=tuple(places), note=replace(one.note, checks=(*one.note.checks, *dict.fromkeys(checks))))

    changed = map_submits(plan, task)
    raise_all(errors)
    return rewrite(changed, _changer(merged))


def _fold_leading_dims(ref: TensorRef) -> TensorRef:
    """Return a tensor with its leading dimensions folded into one, contiguous as on the device."""
    n_leading = ref.rank - MAX_DIMS + 1
    shape = (math.prod(ref.shape[:n_leading]), *ref.shape[n_leading:])
    return replace(ref, shape=shape, layout=Layout.contiguous(shape))


def _merged_view(view: View, whole: TensorRef, span: Span) -> View:
    return View(whole, tuple(_steps(view, whole, span)))


def _steps(view: View, whole: TensorRef, span: Span) -> Iterator[Step]:
    """Yield the steps of a view on the merged tensor: one pick of the folded dimension once all leading dimensions are picked."""
    shape = view.tensor.shape
    n_leading = view.tensor.rank - whole.rank + 1
    left = list(range(n_leading))                # leading dimensions that no step has picked yet
    index: s.Scalar = s.Const(0)
    for step in view.steps:
        if not left:
            yield step
            continue
        match step:
            case Pick(dim, position) if dim < len(left):
                index = s.add(index, s.mul(position, s.Const(math.prod(shape[left.pop(dim) + 1:n_leading]))))
                if not left:
                    yield Pick(0, index)
            case Pick(dim) | Cut(dim) if dim >= len(left):
                yield replace(step, dim=dim - len(left) + 1)
            case Pick() | Cut() | Clip() | Permute() | Reshape():
                break
            case _:
                assert_never(step)
    if left:
        raise DeviceLimitError(f"`{print_view(view)}` has too many dimensions for the device runtime", span,
                               expected=f"at most {MAX_DIMS}, or one position of each of the first {n_leading} of them",
                               found=f"{view.tensor.rank}: {list(shape)}",
                               help="wrap the array with its leading dimensions as one: Tensor(array.reshape(-1, ...))")


def _changer(merged: Mapping[int, TensorRef]) -> Callable[[object], object | None]:
    """Return the rewrite that puts the merged tensors into slots and scalars."""
    def old(ref: TensorRef) -> bool:
        return ref.id in merged and ref.rank != merged[ref.id].rank

    def change(node: object) -> object | None:
        match node:
            case TensorSlot(ref) if old(ref):
                return replace(node, ref=merged[ref.id])
            case s.DimOf(ref, dim) if old(ref):
                n_leading = ref.rank - MAX_DIMS + 1
                return s.Const(ref.shape[dim]) if dim < n_leading else s.DimOf(merged[ref.id], dim - n_leading + 1)
            case s.StrideOf(ref, dim) if old(ref):
                n_leading = ref.rank - MAX_DIMS + 1
                inside = math.prod(ref.shape[dim + 1:n_leading])
                stride = s.StrideOf(merged[ref.id], max(dim - n_leading + 1, 0))
                return s.mul(stride, s.Const(inside)) if dim < n_leading else stride
            case s.Element(ref, index) if old(ref):
                n_leading = ref.rank - MAX_DIMS + 1
                first: s.Scalar = s.Const(0)
                for dim, position in enumerate(index[:n_leading]):
                    first = s.add(first, s.mul(position, s.Const(math.prod(ref.shape[dim + 1:n_leading]))))
                return s.Element(merged[ref.id], (first, *index[n_leading:]))
            case _:
                return None

    return change
