"""Choose the tiles of each group: how much of each axis one task computes, and the steps of a sum that is walked.

The plan's keys are `tiles` (the extent of a tile along an axis) and `inner` (the steps of a walked sum). An axis is called after its
symbol, else after its dimension in the group's largest result. Two axes at most have tiles of more than one position: the columns, the last
dimension, and the rows, the longest of the others; a task loop runs over every other axis.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from pto_wsp.ir import flow
from pto_wsp.ir.scalar import Scalar, SymbolRef, evaluate
from pto_wsp.ir.tensor_function import Apply, ArrayView, Body, TensorFunction, limit_of
from pto_wsp.ops.spec import Matmul
from pto_wsp.ops.table import TABLE
from pto_wsp.passes.tensor.axes import AxisRole, Dim
from pto_wsp.passes.tensor.capacity import room_of, tile_bytes
from pto_wsp.passes.tensor.effects import elements_in, users_of
from pto_wsp.passes.tensor.groups import KernelGroup, bound_of, can_walk, group_of
from pto_wsp.passes.tensor.partition import bounds_of_symbols, runs_of
from pto_wsp.passes.tensor.planned import PlannedFunction, TensorContext
from pto_wsp.schedule.tiling import TilePlan


def choose_tiles(planned: PlannedFunction, context: TensorContext) -> PlannedFunction:
    """Return the function as it is, and the plan with `tiles` and `inner` for each group."""
    plan = planned.plan
    for name, group in groups_in(planned.function):
        plan = _chosen(plan, name, group, bounds_of_symbols(planned.function), context)
    return PlannedFunction(planned.function, plan)


def groups_in(function: TensorFunction) -> Iterator[tuple[str, KernelGroup]]:
    """Yield the groups of a divided function, with their names, in program order."""
    users, bounds = users_of(function), bounds_of_symbols(function)

    def inside(body: Body) -> Iterator[tuple[str, KernelGroup]]:
        for name, items in runs_of(body, users):
            if name:
                group = group_of(items, users, bounds)
                assert group is not None, name
                yield name, group
            else:
                for item in items:
                    for inner in flow.children(item):
                        assert isinstance(inner, flow.Sequence)
                        yield from inside(inner)

    yield from inside(function.body)


def axis_names(group: KernelGroup) -> dict[Dim, str]:
    """Return the names of a group's axes, as the plan's keys have them."""
    names: dict[Dim, str] = {}
    arrays = [*group.outputs, *(array for statement in group.statements if isinstance(statement, Apply) for array in statement.results)]
    for array in sorted(arrays, key=lambda one: -one.rank):
        for k, axis in enumerate(group.axes.of_array(array)):
            if axis is not None:
                names.setdefault(axis, str(k))
    others = [axis for axis in (*group.tiled, *group.whole) if axis not in names]
    for k, axis in enumerate(sorted(others, key=repr)):
        names[axis] = f"inner{k or ''}"
    for axis in names:
        extent = group.axes.extent(axis)
        if isinstance(extent, SymbolRef):
            names[axis] = extent.name
    return names


def planned_extent(extent: Scalar, sizes: Mapping[str, int]) -> int:
    """Return the number that an extent is planned for: 256 where only data tells."""
    limit = limit_of(extent)
    if limit is not None:
        return limit
    if elements_in((extent,)):
        return sizes.get("", 256)

    def leaf(node: Scalar) -> int:
        return sizes.get(node.name, 1024) if isinstance(node, SymbolRef) else 1024
    return max(1, int(evaluate(extent, leaf)))


def _chosen(plan: TilePlan, name: str, group: KernelGroup, bounds: Mapping[str, int], context: TensorContext) -> TilePlan:
    names = axis_names(group)
    room = room_of(context.arch)
    extents = {axis: planned_extent(group.axes.extent(axis), context.sizes) for axis in (*group.tiled, *group.whole)}
    sizes: dict[Dim, int] = dict.fromkeys(group.tiled, 1)
    walked = group.walked
    least = dict(sizes)
    if walked is not None:
        least[walked] = min(128, extents[walked])
    elif tile_bytes(group, least, bounds) > room // 2:
        summed = [axis for axis in group.whole if AxisRole.SUMMED in group.axes.roles(axis) and can_walk(group.axes, group.items, axis)]
        walked = max(summed, key=lambda axis: extents[axis], default=None)
        if walked is not None:
            least[walked] = min(128, extents[walked])
    step = least.get(walked) if walked is not None else None
    columns = group.tiled[-1] if group.tiled and _is_last(group, group.tiled[-1]) else None
    rows = max((axis for axis in group.tiled if axis != columns), key=lambda axis: extents[axis], default=None)
    product = any(isinstance(statement, Apply) and isinstance(TABLE.get(statement.op), Matmul) for statement in group.statements)
    executors = max(1, context.arch.cores.total or 1)
    current = dict(least)
    tasks = math.prod(extents[axis] for axis in group.tiled)
    most = {columns: 256 if product else 512, rows: 64}
    while True:
        grown = False
        for axis in (columns, rows):
            if axis is None or current[axis] >= min(most[axis], extents[axis]):
                continue
            tried = {**current, axis: min(current[axis] * 2, extents[axis])}
            n = math.prod(math.ceil(extents[one] / tried[one]) for one in group.tiled)
            if tile_bytes(group, tried, bounds) <= room // 2 and (n >= executors or tasks < executors):
                current, grown = tried, True
        if not grown:
            break
    for axis in group.tiled:
        said = plan.said("tiles", name, names[axis])
        plan = plan.with_choice("tiles", name, names[axis], current[axis], f"{tile_bytes(group, current, bounds)} of {room} bytes")
        if said is not None and isinstance(said.value, int):
            current[axis] = said.value
    if walked is not None and step is not None:
        reason = "no bound is known" if bound_of(group.axes, walked, bounds) is None else f"{extents[walked]} in one piece do not fit"
        plan = plan.with_choice("inner", name, names[walked], step, reason)
    return plan


def _is_last(group: KernelGroup, axis: Dim) -> bool:
    """Tell whether an axis is the last dimension of a value of the group."""
    views = [ArrayView(array) for array in group.outputs]
    arrays = [array for statement in group.statements if isinstance(statement, Apply) for array in statement.results]
    return any(group.axes.of_array(array)[-1:] == (axis,) for array in (*arrays, *(view.array for view in views)))
