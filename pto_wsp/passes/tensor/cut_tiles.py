"""Cut each group into tasks on tiles, as the plan says.

    out[t, 384] = x @ w                     before

    out = empty((t, 384))                   after: what others read is memory, written tile by tile
    for t_i in each(ceildiv(t, 32)):
        for out_1 in each(3):
            tile = x[t_i * 32 :+ 32] @ w[:, out_1 * 128 : out_1 * 128 + 128]
            out[t_i * 32 :+ 32, out_1 * 128 : out_1 * 128 + 128] = tile

A summed axis that is walked becomes a loop inside the task, which adds the sums of its steps up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pto_wsp.errors import PlanConflictError
from pto_wsp.ir import flow
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import Const, Op, Scalar, Var, add, binary, ceil_div, minimum, mul, sub
from pto_wsp.ir.tensor_function import Apply, Array, ArrayStep, ArrayView, Body, BodyNote, Item, Make, Operand, Put, Statement, TileCut
from pto_wsp.ir.view import Cut
from pto_wsp.ops.entries import cast, elementwise
from pto_wsp.ops.entry import Finish
from pto_wsp.ops.spec import ColReduce, Matmul, RowReduce
from pto_wsp.ops.table import TABLE
from pto_wsp.passes.tensor.axes import ARANGE, RANDOM, TAKE, AxisRole, Dim
from pto_wsp.passes.tensor.carried import carried_ops
from pto_wsp.passes.tensor.effects import fresh_ids
from pto_wsp.passes.tensor.group_costs import axis_names, said_of
from pto_wsp.passes.tensor.groups import KernelGroup, bound_of, can_walk, groups_of
from pto_wsp.passes.tensor.partition import group_facts
from pto_wsp.passes.tensor.planned import PlannedFunction, TensorContext
from pto_wsp.passes.tensor.steps import steps_of
from pto_wsp.schedule.tiling import TilePlan
from pto_wsp.source import Span
from pto_wsp.values import dataclass


def cut_tiles(planned: PlannedFunction, context: TensorContext) -> PlannedFunction:
    """Return the function in tiled form: loops of tasks around the statements of each group."""
    work = _Cutting(planned)
    return replace(planned, function=replace(planned.function, body=work.cut(planned.function.body)))


class _Cutting:
    def __init__(self, planned: PlannedFunction) -> None:
        self._plan = planned.plan
        self._facts = group_facts(planned.function, planned.plan)
        self._known = planned.groups
        self.ids = fresh_ids(planned.function)

    def cut(self, body: Body) -> Body:
        items: list[Item] = []
        for name, group, run in groups_of(body, self._facts, self._known):
            if group is None:
                items.extend(one if isinstance(one, flow.Do) else flow.with_bodies(one, self.cut) for one in run)
            else:
                items.extend(_GroupCut(self, name, group, self._plan, self._facts.bounds).items())
        return replace(body, items=tuple(items))


@dataclass(frozen=True, slots=True)
class _AxisLoop:
    """A part of an axis that one loop of tasks runs over: `count` tiles of `size`, from `start` on. `short`: the last may be shorter.

    `step`: what a loop inside the task takes of a tile at a time; 0 for all of it.
    """

    start: Scalar
    count: Scalar
    size: int
    short: bool
    step: int = 0


class _GroupCut:
    """The items of one group in tiled form."""

    def __init__(self, cutting: _Cutting, name: str, group: KernelGroup, plan: TilePlan, bounds: Mapping[str, int]) -> None:
        self._cutting = cutting
        self._name = name
        self._group = group
        self._bounds = bounds
        self._plain = name.replace(".", "_").replace("#", "_")
        self._names = axis_names(group)
        self._plan = plan
        order = said_of(plan, "order", name, group, counts=self._n_loops() > 1)
        asked = order.first if order is not None and isinstance(order.first, tuple) else ()
        place = {one: at for at, one in enumerate(asked)}
        self._order = sorted(group.tiled, key=lambda axis: place.get(self._names[axis], len(place)))
        self._steps = steps_of(name, group, plan, self._order, bounds)
        self._segments = {axis: self._segments_of(axis) for axis in group.tiled}
        self._walked = next((axis for axis in sorted(group.whole) if AxisRole.SUMMED in group.axes.roles(axis)
                             and self._step_of(axis) is not None), None)
        if self._walked is not None and not can_walk(group.axes, group.items, self._walked):
            raise PlanConflictError(f"the sum over {self._names[self._walked]} of `{name}` has no steps", group.statements[-1].span,
                                    expected="a sum that nothing else in the kernel waits for, step by step",
                                    found=str(said_of(plan, "inner", name, group, self._walked)),
                                    help="take the kernel apart: groups={...} names the values of each")
        self._now: dict[Dim, _AxisLoop] = {}
        self._vars: dict[Dim, Scalar] = {}      # of a loop of one iteration: 0
        self._inner: dict[Dim, Var] = {}        # of the loops over steps of a tile
        self._tiles: dict[int, Array] = {}      # of the task at hand, as the cuts and extents along its axes
        self._cuts: dict[tuple[Dim | None, int], tuple[ArrayStep, ...]] = {}
        self._extents: dict[Dim, Scalar] = {}
        self._again = False

    def _n_loops(self) -> int:
        """Return how many axes have loops of tasks; a tile of the whole axis has none."""
        tiles = {axis: said_of(self._plan, "tiles", self._name, self._group, axis) for axis in self._group.tiled}
        return sum(tile is None or not isinstance(tile.first, int) or self._group.axes.extent(axis) != Const(tile.first)
                   for axis, tile in tiles.items())

    def _step_of(self, axis: Dim) -> int | None:
        said = said_of(self._plan, "inner", self._name, self._group, axis)
        if said is None or not isinstance(said.first, int):
            return None
        bound = bound_of(self._group.axes, axis, self._bounds)
        return None if bound is not None and bound <= said.first else said.first

    def _segments_of(self, axis: Dim) -> tuple[_AxisLoop, ...]:
        """Return the loops of tasks over an axis: one loop with a short last tile, or a loop for each size in the plan's `tails`."""
        said = said_of(self._plan, "tiles", self._name, self._group, axis)
        assert said is not None and isinstance(said.first, int)
        extent, inside = self._group.axes.extent(axis), self._steps.get(axis)
        size, step = (said.first, 0) if inside is None else (inside.tile, inside.step)
        if isinstance(extent, Const):       # of a part that is written, the plan may name the axis of the longer whole
            size = max(1, min(size, int(extent.value)))
        tails = said_of(self._plan, "tails", self._name, self._group, axis)
        sizes = [one for one in (tails.first if tails is not None and isinstance(tails.first, tuple) else ()) if isinstance(one, int)]
        if not sizes or (isinstance(extent, Const) and int(extent.value) % size == 0):
            return (_AxisLoop(Const(0), ceil_div(extent, Const(size)), size, True, step),)
        if inside is not None:
            raise PlanConflictError(f"tasks of `{self._name}` take steps along {self._names[axis]}, which ends in tiles of falling sizes",
                                    self._group.statements[-1].span, expected="one of the two", found=str(tails),
                                    help=f"take {inside.said} or the tails back")
        segments: list[_AxisLoop] = []
        start: Scalar = Const(0)
        for one in sizes:
            rest = sub(extent, start)
            last = one == sizes[-1] and one != 1
            count = ceil_div(rest, Const(one)) if last else binary(Op.FLOORDIV, rest, Const(one))
            segments.append(_AxisLoop(start, count, one, last))
            start = add(start, mul(count, Const(one)))
        return tuple(segments)

    def items(self) -> list[Item]:
        """Return the memory of the group's results, then its loops of tasks."""
        group = self._group
        made: list[Item] = [flow.Do(Make(array, None, self._span_of(array))) for array in group.outputs]
        return [*made, *self._nested(self._order)]

    def _nested(self, axes: Sequence[Dim]) -> list[Item]:
        """Return the loops over axes, the first of them outermost, around a task; axes with several segments give several loops."""
        if not axes:
            return self._task()
        axis = axes[0]
        items: list[Item] = []
        for segment in self._segments[axis]:
            label = f"{self._names[axis]}_i" if not self._names[axis].isdigit() else f"{self._plain}_{self._names[axis]}"
            var = Var(label, next(self._cutting.ids))
            self._now[axis], self._vars[axis] = segment, Const(0) if segment.count == Const(1) else var
            inside = self._nested(axes[1:])
            if segment.count == Const(1):
                items.extend(inside)
            elif segment.count != Const(0):
                items.append(flow.Loop(var, Const(0), segment.count, Const(1), False, flow.Sequence(tuple(inside)), BodyNote()))
        return items

    def _task(self) -> list[Item]:
        """Return the items of one task."""
        group = self._group
        self._tiles, self._cuts, self._extents = {}, {}, {}
        if self._walked is not None:
            step = self._step_of(self._walked)
            assert step is not None
            self._now[self._walked] = _AxisLoop(Const(0), ceil_div(group.axes.extent(self._walked), Const(step)), step, True)
            self._vars[self._walked] = Var(f"{self._plain}_step", next(self._cutting.ids))
        taken = [axis for axis in self._steps if axis in self._now]
        self._inner = {axis: Var(f"{self._plain}_{self._steps[axis].name}", next(self._cutting.ids)) for axis in taken}
        inside = self._walk_items() if self._walked is not None else [self._item(item) for item in group.items]
        for array in group.outputs:
            if self._walked is None or self._walked not in group.axes.of_array(array):
                inside.append(self._stored(array))
        for axis in reversed(taken):
            count = ceil_div(self._tile_extent(axis), Const(self._now[axis].step))
            inside = [flow.Loop(self._inner[axis], Const(0), count, Const(1), True, flow.Sequence(tuple(inside)), BodyNote(self._name))]
        self._again = True
        return inside

    # -- tiles ---------------------------------------------------------------------------------------------------------
    def _taken(self, axis: Dim | None, dim: int) -> tuple[ArrayStep, ...]:
        """Return the view steps that cut `dim` to the task's tile, then to the step of a loop in the kernel; () for the whole axis."""
        if (axis, dim) not in self._cuts:
            self._cuts[axis, dim] = self._cut(axis, dim)
        return self._cuts[axis, dim]

    def _cut(self, axis: Dim | None, dim: int) -> tuple[ArrayStep, ...]:
        if axis is None or axis not in self._now:
            bound = None if axis is None else self._bounds.get(getattr(self._group.axes.extent(axis), "name", ""))
            return () if bound is None else (TileCut(dim, Const(0), bound),)
        segment, extent = self._now[axis], self._group.axes.extent(axis)
        steps: list[ArrayStep] = []
        exact = segment.size == 1 or (isinstance(extent, Const) and int(extent.value) % segment.size == 0)
        if extent != Const(segment.size):
            start = add(segment.start, mul(self._vars[axis], Const(segment.size)))
            whole = not segment.short or exact
            steps.append(Cut(dim, start, add(start, Const(segment.size))) if whole else TileCut(dim, start, segment.size))
        if segment.step:
            start = mul(self._inner[axis], Const(segment.step))
            whole = segment.step == 1 or (exact and segment.size % segment.step == 0)
            steps.append(Cut(dim, start, add(start, Const(segment.step))) if whole else TileCut(dim, start, segment.step))
        return tuple(steps)

    def _tile_extent(self, axis: Dim) -> Scalar:
        """Return the extent of the task's tile along an axis, of which a loop inside takes steps."""
        segment, extent = self._now[axis], self._group.axes.extent(axis)
        if isinstance(extent, Const) and int(extent.value) % segment.size == 0:
            return Const(segment.size)
        return minimum(Const(segment.size), sub(extent, add(segment.start, mul(self._vars[axis], Const(segment.size)))))

    def _extent(self, axis: Dim | None, own: Scalar) -> Scalar:
        """Return the extent along an axis of what a task computes at a time."""
        if axis is None:
            return own
        if axis in self._extents:
            return self._extents[axis]
        extent = self._group.axes.extent(axis)
        for step in self._taken(axis, 0):
            match step:
                case Cut(_, start, stop):
                    extent = sub(stop, start)
                case TileCut(_, start, size):
                    extent = minimum(Const(size), sub(extent, start))
                case _:
                    pass
        self._extents[axis] = extent
        return extent

    def _tile(self, array: Array) -> Array:
        """Return the array of a task that stands for an array of the group."""
        if array.id not in self._tiles:
            axes = self._group.axes.of_array(array)
            shape = tuple(self._extent(axis, extent) for axis, extent in zip(axes, array.shape, strict=True))
            shared = array in self._group.outputs
            self._tiles[array.id] = replace(array, id=next(self._cutting.ids) if shared or self._again else array.id, shape=shape,
                                            name=f"{array.name}.tile" if shared else array.name)
        return self._tiles[array.id]

    def _view(self, view: ArrayView, skip: int = 0) -> ArrayView:
        """Return the tile of a view; the first `skip` dimensions stay whole."""
        axes = self._group.axes.of_view(view)
        if view.array.id in self._group.local:
            return ArrayView(self._tile(view.array), view.steps)
        return view.then(*(step for dim, axis in enumerate(axes) if dim >= skip for step in self._taken(axis, dim)))

    def _operand(self, operand: Operand) -> Operand:
        return self._view(operand) if isinstance(operand, ArrayView) else operand

    def _span_of(self, array: Array) -> Span:
        return next(statement.span for statement in self._group.statements
                    if isinstance(statement, Apply) and array in statement.results)

    def _stored(self, array: Array) -> Item:
        target = ArrayView(array)
        axes = self._group.axes.of_array(array)
        view = target.then(*(step for dim, axis in enumerate(axes) for step in self._taken(axis, dim)))
        return flow.Do(Put(view, ArrayView(self._tile(array)), group=self._name, span=self._span_of(array)))

    # -- statements ----------------------------------------------------------------------------------------------------
    def _item(self, item: Item) -> Item:
        match item:
            case flow.Do(leaf):
                return flow.Do(self._statement(leaf))
            case _:
                return flow.with_bodies(item, lambda body: replace(body, items=tuple(map(self._item, body.items))))

    def _statement(self, statement: Statement) -> Statement:
        match statement:
            case Apply(op, operands, results):
                if op == TAKE:
                    source, table = operands
                    assert isinstance(source, ArrayView)
                    changed: tuple[Operand, ...] = (self._view(source, 1), self._operand(table))
                else:
                    changed = tuple(map(self._operand, operands))
                    if not operands or not any(isinstance(one, ArrayView) for one in operands):
                        changed = self._moved(statement)
                return replace(statement, operands=changed, results=tuple(map(self._tile, results)))
            case Make(array):
                return replace(statement, array=self._tile(array))
            case Put(target, value, table):
                return replace(statement, target=self._view(target, 0 if table is None else 1), value=self._operand(value),
                               table=None if table is None else self._view(table))
            case _:
                return replace(statement, value=self._view(statement.value))

    def _moved(self, statement: Apply) -> tuple[Operand, ...]:
        """Return the operands of an operation without arrays, for the tile: a range starts later, random numbers are drawn from there."""
        if statement.op not in (ARANGE, RANDOM):
            return statement.operands
        numbers = [one for one in statement.operands if not isinstance(one, ArrayView)]
        before = 1 if statement.op == RANDOM else 0         # its seed
        start, *strides = numbers[before:]
        axes = self._group.axes.of_array(statement.results[0])
        for axis, stride in zip(axes[len(axes) - len(strides):], strides, strict=True):
            if axis is not None and axis in self._now:
                first = add(self._now[axis].start, mul(self._vars[axis], Const(self._now[axis].size)))
                if axis in self._inner:
                    first = add(first, mul(self._inner[axis], Const(self._now[axis].step)))
                start = add(start, mul(first, stride))
        return (*numbers[:before], start, *strides)

    # -- walked sums ---------------------------------------------------------------------------------------------------
    def _walk_items(self) -> list[Item]:
        """Return the items with the walked axis as a loop: first the sums at their start, then the loop, then what uses the sums."""
        axis = self._walked
        assert axis is not None
        before: list[Item] = []
        steps: list[Item] = []
        after: list[Item] = []
        sums: set[int] = set()
        for item in self._group.items:
            assert isinstance(item, flow.Do)
            statement = item.leaf
            reads = statement.reads
            has = any(axis in self._group.axes.of_view(view) for view in reads)
            makes = isinstance(statement, Apply) and any(axis in self._group.axes.of_array(array) for array in statement.results)
            if makes:
                steps.append(self._item(item))
                assert isinstance(statement, Apply)
                steps.extend(self._stored(array) for array in statement.results if array in self._group.outputs)
            elif has:
                assert isinstance(statement, Apply)
                start, inside, end = self._summed(statement)
                before.append(start)
                steps.extend(inside)
                after.extend(end)
                sums.update(array.id for array in statement.results)
            elif any(view.array.id in sums for view in reads) or after:
                after.append(self._item(item))
                sums.update(array.id for array in (statement.results if isinstance(statement, Apply) else ()))
            else:
                before.append(self._item(item))
        iteration: Body = flow.Sequence(tuple(steps))
        var = self._vars[axis]
        assert isinstance(var, Var)
        loop: Item = flow.Loop(var, Const(0), self._now[axis].count, Const(1), True, iteration, BodyNote(self._name))
        return [*before, loop, *after]

    def _summed(self, statement: Apply) -> tuple[Item, list[Item], list[Item]]:
        """Return the statement that starts a carried sum, the statements of each step, and the statements behind the last step."""
        entry = TABLE[statement.op]
        tile = self._tile(statement.results[0])
        wide = DType.F32 if tile.dtype.is_half else tile.dtype
        carried = replace(tile, id=next(self._cutting.ids), name=f"{tile.name}.sum", dtype=wide)
        part = replace(carried, id=next(self._cutting.ids), name=f"{tile.name}.step")
        changed = self._statement(statement)
        assert isinstance(changed, Apply)
        inside: list[Item] = []
        op, joined = changed.op, elementwise.add.name
        operands = changed.operands
        start: int | float = 0
        if isinstance(entry, RowReduce | ColReduce):
            op, joined, start = carried_ops(entry, wide)
            source = operands[0]
            assert isinstance(source, ArrayView)
            if source.dtype is not wide:
                widened = Array(next(self._cutting.ids), f"{tile.name}.wide", source.shape, wide)
                inside.append(flow.Do(Apply(cast.cast.name, (source,), (widened,), (("dtype", wide),), self._name, statement.span)))
                operands = (ArrayView(widened),)
        else:
            assert isinstance(entry, Matmul)
            operands = operands[:2]
        total = replace(carried, id=next(self._cutting.ids), name=f"{tile.name}.total")
        inside.append(flow.Do(Apply(op, operands, (part,), (), self._name, statement.span)))
        inside.append(flow.Do(Apply(joined, (ArrayView(carried), ArrayView(part)), (total,), (), self._name, statement.span)))
        inside.append(flow.Do(Put(ArrayView(carried), ArrayView(total), group=self._name, span=statement.span)))
        end: list[Item] = []
        value = carried
        if isinstance(entry, RowReduce | ColReduce) and entry.finish is Finish.DIVIDE_BY_COUNT:
            assert self._walked is not None
            mean = replace(carried, id=next(self._cutting.ids), name=f"{tile.name}.mean")
            end.append(flow.Do(Apply(elementwise.div.name, (ArrayView(value), self._group.axes.extent(self._walked)), (mean,), (),
                                     self._name, statement.span)))
            value = mean
        if value.dtype is not tile.dtype:
            narrow = replace(tile, id=next(self._cutting.ids), name=f"{tile.name}.rounded")
            end.append(flow.Do(Apply(cast.cast.name, (ArrayView(value),), (narrow,), (("dtype", tile.dtype),), self._name, statement.span)))
            value = narrow
        self._tiles[statement.results[0].id] = value
        return flow.Do(Make(carried, start, statement.span)), inside, end
