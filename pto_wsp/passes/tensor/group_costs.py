"""Describe a group to `tile_costs` in plain numbers, with its axes under the names that plans use."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from math import prod

from pto_wsp.ir import flow
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import Const, Scalar, SymbolRef, Var, add, elements_in, evaluate, sub
from pto_wsp.ir.tensor_function import (
    Apply,
    Array,
    ArrayStep,
    ArrayView,
    Extents,
    Item,
    Make,
    Put,
    Show,
    Statement,
    TileCut,
    limit_of,
)
from pto_wsp.ir.view import Cut
from pto_wsp.ops.spec import ColReduce, Matmul
from pto_wsp.ops.table import TABLE
from pto_wsp.passes.tensor.axes import ROWS_OF, AxisRole, Dim
from pto_wsp.passes.tensor.counting_sort import held_places, sort_counts
from pto_wsp.passes.tensor.effects import vars_in
from pto_wsp.passes.tensor.flatten import ExtentLimits, NoTile, flattened
from pto_wsp.passes.tensor.groups import KernelGroup, can_walk
from pto_wsp.passes.tensor.planned import USUAL_SIZE, Fineness, TensorContext
from pto_wsp.passes.tensor.tile_costs import CutValue, TileAxis, TileOp, candidates_of, check_tiles, smallest_tiles
from pto_wsp.passes.tensor.view_steps import dims_of_array
from pto_wsp.schedule.tiling import TilePlan
from pto_wsp.schedule.tiling_entries import PlanEntry
from pto_wsp.values import dataclass

COPY = "copy"      # no op: what a store moves
FILL = ".fill"     # behind the name of memory: the kernel that fills it
NO_TILES: Mapping[Dim, int] = {}
_ONE = Const(1)


def fits(name: str, group: KernelGroup, plan: TilePlan, context: TensorContext) -> bool:
    """Tell whether the smallest tiles of a group fit the memories of the arch."""
    costs = group_costs(name, group, plan, context, any_rows=True)
    if check_tiles(costs.axes, costs.values, costs.ops, context.arch, smallest_tiles(costs.axes, costs.values, costs.ops)) is None:
        return True      # whichever axis the rows of a tile are
    costs = group_costs(name, group, plan, context)
    smallest = candidates_of(costs.axes, costs.values, costs.ops)[0]
    tiles = {axis.name: extent for axis, extent in zip(costs.axes, smallest, strict=True)}
    return check_tiles(costs.axes, costs.values, costs.ops, context.arch, tiles) is None


@lru_cache(maxsize=64)
def axis_names(group: KernelGroup) -> dict[Dim, str]:
    """Return the names of a group's axes, as the plan's keys have them: symbols, and dimensions of what the group computes or writes.

    Of axes with one symbol, as those of [t, t], the symbol names the first dimension.
    """
    extents = {axis: extent for axis in (*group.tiled, *group.whole) if isinstance(extent := group.axes.extent(axis), SymbolRef)}
    counts = Counter(extents.values())
    names = {axis: extent.name for axis, extent in extents.items() if counts[extent] == 1}
    results = _results_of(group)
    own = {str(k) for array, _ in results[:1] for k, extent in enumerate(array.shape) if extent != Const(1)}      # no other array's
    for n, (array, axes) in enumerate(results):
        for k, axis in enumerate(axes):
            if axis is not None and axis not in names and (axis in group.tiled or axis in group.whole):
                key = _axis_key(array, k)
                names[axis] = f"{array.name}:{k}" if key in names.values() or (n and key in own) else key
    reads = [view for statement in group.statements for view in reversed(statement.reads) if view.array.id not in group.local]
    for view in sorted(reads, key=lambda view: bool(view.steps)):      # a summed axis is one of what is read: `w:0`
        for k, axis in enumerate(_along_array(view, group.axes.of_view(view))):
            if axis is not None and axis not in names:
                names[axis] = key if (key := _read_key(view.array, k)) not in names.values() else f"{view.array.name}:{k}"
    others = [axis for axis in (*group.tiled, *group.whole) if axis not in names]
    for k, axis in enumerate(sorted(others)):
        names[axis] = f"inner{k or ''}"
    return names


def said_of(plan: TilePlan, key: str, name: str, group: KernelGroup, axis: Dim | None = None, *, counts: bool = True) -> PlanEntry | None:
    """Return the plan's entry about a group or one of its axes, under the name of the group or of a value that the group computes.

    `counts`: as of `TilePlan.said`.
    """
    if key not in [entry.key for entry in plan.entries]:
        return None
    known = _known_as(name, group)
    also: Sequence[tuple[str, str]] = known.get(axis, ())
    if axis is None:
        return plan.said(key, name, "", also, counts=counts)
    if key == "inner" and [one for one in group.whole if AxisRole.SUMMED in group.axes.roles(one)] == [axis]:
        also = (*also, (name, "k"), *((value, "k") for value, _ in known[None]))
    return plan.said(key, name, axis_names(group)[axis], also, counts=counts)


@lru_cache(maxsize=64)      # a group is asked about its axes by many keys
def _known_as(name: str, group: KernelGroup) -> Mapping[Dim | None, Sequence[tuple[str, str]]]:
    """Return what a plan may call each axis of a group, as (value, dimension), and under None the group: its values, without dimensions."""
    results = [] if name.endswith(FILL) else _results_of(group)      # a kernel that fills memory is not the one that computes it
    names = axis_names(group)
    found: dict[Dim | None, list[tuple[str, str]]] = defaultdict(list)
    for array, axes in results:
        for k, axis in enumerate(axes):
            found[axis].append((array.name, _axis_key(array, k)))
    for statement in group.statements:
        for view in statement.reads:
            if view.array.id not in group.local:
                for k, axis in enumerate(_along_array(view, group.axes.of_view(view))):
                    key = _read_key(view.array, k)
                    if key not in names.values() or (axis is not None and names.get(axis) == key):      # else another axis is called so
                        found[axis] += [(name, key), *[(array.name, key) for array, _ in results]]
    return {**found, None: [(array.name, "") for array, _ in results]}


@lru_cache(maxsize=64)
def _results_of(group: KernelGroup) -> list[tuple[Array, Sequence[Dim | None]]]:
    """Return the arrays that a group writes and computes, each with the axes of its dimensions: first what the group is called after."""
    outputs = [(array, group.axes.of_array(array)) for array in group.outputs]
    written = [(view.array, _along_array(view, group.axes.of_view(view))) for one in group.statements if isinstance(one, Put)
               for view in (one.target,)]
    made = [(array, group.axes.of_array(array)) for one in group.statements if isinstance(one, Apply) for array in one.results]
    last = (outputs or written)[-1:]
    copied = [one for one in made if last and last[0][0].name == f"{one[0].name}.copy"]      # a result's copy is known by the value
    return [*(copied or last), *sorted((*outputs, *written, *made), key=lambda one: -one[0].rank)]


def _along_array(view: ArrayView, axes: Sequence[Dim | None]) -> Sequence[Dim | None]:
    """Return the axis of each dimension of an array, from the axes of a view of the array; None for dimensions the view lacks."""
    found = dict(zip(dims_of_array(view)[0], axes, strict=True))
    return [found.get(k) for k in range(view.array.rank)]


def _axis_key(array: Array, k: int) -> str:
    extent = array.shape[k]
    return extent.name if isinstance(extent, SymbolRef) and extent not in array.shape[:k] else str(k)


def _read_key(array: Array, k: int) -> str:
    key = _axis_key(array, k)
    return f"{array.name}:{k}" if key.isdigit() else key


def planned_extent(extent: Scalar, sizes: Mapping[str, int]) -> int:
    """Return the number that stands for an extent in costs; 256 for an extent that depends on data."""
    limit = limit_of(extent)
    if limit is not None:
        return max(1, limit)
    if elements_in((extent,)):
        return sizes.get("", 256)

    def leaf(node: Scalar) -> int:
        return sizes.get(node.name, USUAL_SIZE) if isinstance(node, SymbolRef) else 0      # a loop variable, in the first iteration
    return max(1, int(evaluate(extent, leaf)))


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """A group as `tile_costs` takes it. `walked`: the summed axis that may be walked in steps."""

    axes: tuple[TileAxis, ...]
    values: tuple[CutValue, ...]
    ops: tuple[TileOp, ...]
    walked: Dim | None


def _may_say_rows(plan: TilePlan, name: str, group: KernelGroup, axes: Sequence[Dim]) -> bool:
    """Tell whether `flat` can choose the rows of a tile: `flat` names one of the axes, and `tiles` by hand leaves one of the axes open."""
    names = {axis_names(group)[axis] for axis in axes}
    said = any(entry.key == "flat" and isinstance(entry.first, tuple) and names & set(map(str, entry.first)) for entry in plan.entries)
    return said and any((tile := said_of(plan, "tiles", name, group, axis, counts=False)) is None or not tile.by_hand for axis in axes)


def _rows_and_step(group: KernelGroup, columns: Dim | None, walked: Dim | None, others: Sequence[Dim]) -> tuple[Dim | None, bool]:
    """Return the axis that gives a task its rows, and whether a sum is walked in steps of several positions.

    The axis is the first of `others`, or None, with which every view of memory is still a tile.
    """
    several: frozenset[Dim | None] = frozenset((columns, *(axis for axis in group.whole if group.axes.extent(axis) != Const(1))))
    if len(several) < 2:
        return next(iter(others), None), True      # two axes are a tile in any order
    for taken, steps in ((several, True), (several - {walked}, False)):
        if _has_tiles(group, taken, walked):
            return next((axis for axis in others if _has_tiles(group, taken | {axis}, walked)), None), steps
    return next(iter(others), None), True      # what stands in the way is said where the tiles are bound


@lru_cache(maxsize=256)      # a group is costed several times
def _has_tiles(group: KernelGroup, several: frozenset[Dim | None], walked: Dim | None) -> bool:
    """Tell whether tasks can bind every view of memory as a tile, with several positions along the axes `several` and one along all others.

    The last tile along an axis may be short. Axes that a task takes whole are among `several`.
    """
    views = {view for statement in group.statements for view in (*statement.views, *map(ArrayView, statement.defines))
             if view.array.id not in group.local}
    bounds = {extent.name: 2 for axis in several if axis is not None and isinstance(extent := group.axes.extent(axis), SymbolRef)}
    for view in views:
        if len(view.shape) <= 2 and not view.steps:
            continue      # rows and columns of a matrix
        steps: list[ArrayStep] = []
        step: Var | None = None
        for dim, axis in enumerate(group.axes.of_view(view)):
            step = Var("tile", dim) if axis == walked else step
            if axis is not None and group.axes.extent(axis) != _ONE and axis not in several:
                steps.append(_position(dim))
            elif axis in group.tiled and group.axes.extent(axis) != _ONE:
                steps.append(TileCut(dim, Var("tile", dim), 2))
        if not _is_tile(view.array.shape, view.steps + tuple(steps), tuple(bounds.items()), step):
            return False
    return True


@lru_cache(maxsize=16)
def _position(dim: int) -> Cut:
    """Return the cut of a dimension to one position."""
    return Cut(dim, Var("tile", dim), add(Var("tile", dim), _ONE))


@lru_cache(maxsize=1024)      # groups that differ in names alone have the same views
def _is_tile(shape: Extents, steps: tuple[ArrayStep, ...], bounds: tuple[tuple[str, int], ...], step: Var | None) -> bool:
    """Tell whether a task can bind a view of an array of a shape as a tile. `step`: the variable that changes while the task runs."""
    try:
        flattened(ArrayView(Array(0, "", shape, DType.F32), steps), ExtentLimits(dict(bounds)), partial(_reads, step))
    except NoTile:
        return False
    return True


def _reads(var: Var | None, node: Scalar) -> bool:
    return var is not None and var in vars_in((node,))


def _leading_axes(group: KernelGroup) -> set[Dim | None]:
    """Return the axes in front of the two that a product or a sum of columns works on: a task has one position of these."""
    found: set[Dim | None] = set()
    for statement in group.statements:
        if isinstance(statement, Apply) and isinstance(TABLE.get(statement.op), Matmul | ColReduce):
            for array in statement.results:
                found.update(group.axes.of_array(array)[:-2])
            for view in statement.reads:
                found.update(group.axes.of_view(view)[:-2])
    return found


def group_costs(name: str, group: KernelGroup, plan: TilePlan, context: TensorContext,
                shared: Mapping[Dim, int] = NO_TILES, steps: Mapping[Dim, int] = NO_TILES, any_rows: bool = False) -> DescribedGroup:
    """Return a group's axes, values and operations as plain numbers; extents that the plan gives are given.

    `shared`: the tiles of groups in the same loop of tasks, by axis; `steps`: of loops inside the task over a tile, the outermost first.
    `any_rows`: leave open which axis the rows of a tile are.
    """
    names = axis_names(group)
    extents = {axis: planned_extent(group.axes.extent(axis), context.sizes) for axis in (*group.tiled, *group.whole)}
    summed = [axis for axis in group.whole if AxisRole.SUMMED in group.axes.roles(axis) and can_walk(group.axes, group.items, axis)]
    walked = group.walked if group.walked is not None else max(summed, key=lambda axis: (extents[axis], axis), default=None)
    columns = group.tiled[-1] if group.tiled and _is_last(group, group.tiled[-1]) else None

    def given_of(axis: Dim, key: str) -> int | None:
        said = said_of(plan, key, name, group, axis)
        return said.first if said is not None and isinstance(said.first, int) else None

    tiles = {axis: given_of(axis, "tiles") for axis in group.tiled}
    leading = _leading_axes(group)
    others = [axis for axis in group.tiled if axis != columns and axis not in leading]
    flat = said_of(plan, "flat", name, group, counts=False) if _may_say_rows(plan, name, group, others) else None
    asked = flat.first if flat is not None and isinstance(flat.first, tuple) else ()
    others.sort(reverse=True, key=lambda axis: (names[axis] in asked, (tiles[axis] or 1) > 1, extents[axis],
                                                group.tiled.index(axis)))      # of equal ones the inner, whose rows lie closer
    row, steps_of_several = (None, True) if any_rows else _rows_and_step(group, columns, walked, others)
    if row is not None and names[row] in asked:
        said_of(plan, "flat", name, group)      # it decides
    fineness = context.fineness_of(group.statements)
    several = {*((columns,) if fineness < Fineness.POSITIONS else ()), *((walked,) if fineness < Fineness.COLUMNS else ()),
               *((*others,) if any_rows else (row,) if fineness < Fineness.SUMS else ())}

    def axis_of(axis: Dim, key: str) -> TileAxis:
        given = tiles[axis] if key == "tiles" else given_of(axis, key)
        tails = said_of(plan, "tails", name, group, axis) if key == "tiles" and given is None else None
        if tails is not None and isinstance(tails.first, tuple) and isinstance(tails.first[0], int):
            given = tails.first[0]
        if given is None and (axis not in several or (axis == walked and not steps_of_several)):
            given = 1
        if key == "inner" and given is None and group.walked is None and (context.arch.neutral or context.arch.cores.shared):
            given = extents[axis]       # a CPU sums a long axis in one piece: its caches bound no tile
        return TileAxis(names[axis], extents[axis], not isinstance(group.axes.extent(axis), Const), key == "inner", given=given,
                        divides=shared.get(axis, 0), step=steps.get(axis, 0), level=list(steps).index(axis) if axis in steps else 0,
                        varies=limit_of(group.axes.extent(axis)) is None and bool(elements_in((group.axes.extent(axis),))))

    axes = [axis_of(axis, "tiles") for axis in group.tiled]
    if walked is not None:
        axes.append(axis_of(walked, "inner"))
    cut = {*group.tiled, walked}

    def dims_of(found: Sequence[Dim | None]) -> tuple[str | int, ...]:
        return tuple(1 if axis is None else names[axis] if axis in cut else extents.get(axis, 1) for axis in found)

    values: dict[object, CutValue] = {}
    ops: list[TileOp] = []

    def value_of(value: ArrayView | Array, **marks: bool) -> str:
        array = value.array if isinstance(value, ArrayView) else value
        own = array.id in group.local
        key: object = array.id if own else value
        if key not in values:
            found = group.axes.of_array(array) if own else group.axes.of_view(value if isinstance(value, ArrayView) else ArrayView(value))
            values[key] = CutValue(f"{array.name}.{len(values)}", array.dtype, dims_of(found), loaded=not own and not marks)
        if marks:
            values[key] = replace(values[key], **marks)      # type: ignore[arg-type]
        return values[key].name

    def visit(item: Item, times: int) -> None:
        match item:
            case flow.Do(leaf):
                count(leaf, times)
            case flow.Loop(start=start, stop=stop, step=step, body=body):
                n_iterations = -(-planned_extent(sub(stop, start), context.sizes) // max(1, planned_extent(step, context.sizes)))
                for inner in body.items:
                    visit(inner, times * max(1, n_iterations))
            case _:
                for inner in flow.children(item):
                    assert isinstance(inner, flow.Sequence)
                    for one in inner.items:
                        visit(one, times)

    def sort(statement: Apply, table: ArrayView, times: int) -> None:
        """Describe the counting sort of `rows_of`: two rounds over the table, on chip or by accesses of memory, an element each."""
        n_places = prod([planned_extent(extent, context.sizes) for extent in table.shape])
        n, (order, starts, *ranks) = int(dict(statement.attrs)["n"]), statement.results
        read = {view.array.id for one in group.statements for view in one.reads}
        kept = [array for array in (order, *ranks) if array in group.outputs or array.id in read]
        on_chip = not context.makes_package and bool(held_places(table, ExtentLimits(context.bounds)))
        each = [value_of(table), *map(value_of, kept)]
        singles = (value_of(starts),) if on_chip else (value_of(starts), *each)
        values.update({key: replace(value, dims=(1,)) for key, value in values.items() if value.name in singles})
        # packages look through the whole table for each number
        accesses = 1 if on_chip else n_places * n if context.makes_package else n_places
        ops.append(TileOp(statement.op, tuple(each[1:]), tuple(each[:1]), times * accesses))
        ops.append(TileOp(COPY, (value_of(starts),), (), times * (n + 1)))
        n_rows = planned_extent(table.shape[0], context.sizes)
        for width, count in sort_counts(table, n, len(kept), n_rows, n_places, on_chip):
            if count:
                part = CutValue(f"{order.name}.counts.{width}", DType.I32, (width,))
                values[part.name] = part
                ops.append(TileOp(statement.op, (part.name,), (part.name,), times * count))

    def count(statement: Statement, times: int) -> None:
        match statement:
            case Apply(op, (ArrayView() as table,)) if op == ROWS_OF:
                sort(statement, table, times)
            case Apply(op, operands, results):
                reads = tuple(value_of(view) for view in operands if isinstance(view, ArrayView))
                ops.append(TileOp(op, tuple(value_of(array) for array in results), reads, times))
            case Make(array):
                value_of(array, held=True)
            case Put(target, value):
                source = (value_of(value),) if isinstance(value, ArrayView) else ()
                ops.append(TileOp(COPY, (value_of(target, stored=True) if target.array.id not in group.local else value_of(target.array),),
                                  source, times))
            case Show(_, value):
                ops.append(TileOp(COPY, (value_of(value),), (value_of(value),), times))

    for item in group.items:
        visit(item, 1)
    for array in group.outputs:
        value_of(array, stored=True)
    return DescribedGroup(tuple(axes), tuple(values.values()), tuple(ops), walked)


def _is_last(group: KernelGroup, axis: Dim) -> bool:
    """Tell whether an axis is the last dimension of what the group computes or writes."""
    for statement in group.statements:
        if isinstance(statement, Apply) and any(group.axes.of_array(array)[-1:] == (axis,) for array in statement.results):
            return True
        if isinstance(statement, Put) and group.axes.of_view(statement.target)[-1:] == (axis,):
            return True
    return False
