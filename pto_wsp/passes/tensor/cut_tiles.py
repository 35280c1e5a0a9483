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

from collections.abc import Mapping
from dataclasses import replace

from pto_wsp.ir import flow
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import Const, Scalar, Var, add, ceil_div, minimum, mul, sub
from pto_wsp.ir.tensor_function import (
    Apply,
    Array,
    ArrayStep,
    ArrayView,
    Body,
    BodyNote,
    Item,
    Make,
    Operand,
    Put,
    Statement,
    TensorFunction,
    TileCut,
    views_read,
)
from pto_wsp.ir.view import Cut
from pto_wsp.ops.entries import cast, elementwise
from pto_wsp.ops.entry import Finish, Identity
from pto_wsp.ops.spec import ColReduce, Matmul, RowReduce
from pto_wsp.ops.table import TABLE
from pto_wsp.passes.tensor.axes import ARANGE, TAKE, Dim
from pto_wsp.passes.tensor.choose_tiles import axis_names
from pto_wsp.passes.tensor.effects import highest_id, users_of
from pto_wsp.passes.tensor.groups import KernelGroup, group_of
from pto_wsp.passes.tensor.partition import bounds_of_symbols, runs_of
from pto_wsp.passes.tensor.planned import PlannedFunction, TensorContext
from pto_wsp.passes.tensor.substitute import substituted
from pto_wsp.schedule.tiling import TilePlan
from pto_wsp.source import Span


def cut_tiles(planned: PlannedFunction, context: TensorContext) -> PlannedFunction:
    """Return the function in tiled form: loops of tasks around the statements of each group."""
    work = _Cutting(planned.function, planned.plan)
    return replace(planned, function=replace(planned.function, body=work.cut(planned.function.body)))


class _Cutting:
    def __init__(self, function: TensorFunction, plan: TilePlan) -> None:
        self._plan = plan
        self._users = users_of(function)
        self._bounds = bounds_of_symbols(function)
        self._next = highest_id(function)

    def fresh(self) -> int:
        self._next += 1
        return self._next

    def cut(self, body: Body) -> Body:
        items: list[Item] = []
        for name, run in runs_of(body, self._users):
            if not name:
                items.extend(one if isinstance(one, flow.Do) else flow.with_bodies(one, self.cut) for one in run)
                continue
            group = group_of(run, self._users, self._bounds)
            assert group is not None, name
            items.extend(_GroupCut(self, name, group, self._plan, self._bounds).items())
        return replace(body, items=tuple(items))


class _GroupCut:
    """The items of one group in tiled form."""

    def __init__(self, cutting: _Cutting, name: str, group: KernelGroup, plan: TilePlan, bounds: Mapping[str, int]) -> None:
        self._cutting = cutting
        self._name = name
        self._group = group
        self._bounds = bounds
        names = axis_names(group)
        self._sizes: dict[Dim, int] = {}
        self._vars: dict[Dim, Var] = {}
        for axis in group.tiled:
            said = plan.said("tiles", name, names[axis])
            assert said is not None and isinstance(said.value, int)
            self._sizes[axis] = said.value
            label = f"{names[axis]}_i" if not names[axis].isdigit() else f"{name.replace('.', '_').replace('#', '_')}_{names[axis]}"
            self._vars[axis] = Var(label, cutting.fresh())
        self._walked = next((axis for axis in group.whole if plan.said("inner", name, names[axis]) is not None), None)
        if self._walked is not None:
            said = plan.said("inner", name, names[self._walked])
            assert said is not None and isinstance(said.value, int)
            self._sizes[self._walked] = said.value
            self._vars[self._walked] = Var(f"{name.replace('.', '_').replace('#', '_')}_step", cutting.fresh())
        self._tiles: dict[int, Array] = {}

    def items(self) -> list[Item]:
        group = self._group
        inside = self._walk_items() if self._walked is not None else [self._item(item) for item in group.items]
        made: list[Item] = []
        for array in group.outputs:
            made.append(flow.Do(Make(array, None, self._span_of(array))))
            if self._walked is None or self._walked not in group.axes.of_array(array):
                inside.append(self._stored(array))
        body: Body = flow.Sequence(tuple(inside))
        for axis in reversed(group.tiled):
            count = self._count(axis)
            if count == Const(1):
                body = _without(body, self._vars[axis])
                continue
            loop = flow.Loop(self._vars[axis], Const(0), count, Const(1), False, body, BodyNote())
            body = flow.Sequence((loop,))
        return [*made, *body.items]

    # -- tiles ---------------------------------------------------------------------------------------------------------
    def _count(self, axis: Dim) -> Scalar:
        return ceil_div(self._group.axes.extent(axis), Const(self._sizes[axis]))

    def _step(self, axis: Dim | None, dim: int) -> ArrayStep | None:
        """Return the step from dimension `dim` to the tile of the task; None for an axis that is whole."""
        if axis is None or axis not in self._sizes:
            bound = None if axis is None else self._bounds.get(getattr(self._group.axes.extent(axis), "name", ""))
            return None if bound is None else TileCut(dim, Const(0), bound)
        size, start = self._sizes[axis], mul(self._vars[axis], Const(self._sizes[axis]))
        extent = self._group.axes.extent(axis)
        if extent == Const(size):
            return None
        if size == 1 or (isinstance(extent, Const) and int(extent.value) % size == 0):
            return Cut(dim, start, add(start, Const(size)))
        return TileCut(dim, start, size)

    def _extent(self, axis: Dim | None, own: Scalar) -> Scalar:
        """Return the extent of a tile along an axis."""
        if axis is None:
            return own
        step = self._step(axis, 0)
        extent = self._group.axes.extent(axis)
        match step:
            case Cut(_, start, stop):
                return sub(stop, start)
            case TileCut(_, start, size):
                return minimum(Const(size), sub(extent, start))
            case _:
                return extent

    def _tile(self, array: Array) -> Array:
        """Return the array of a task that stands for an array of the group."""
        if array.id not in self._tiles:
            axes = self._group.axes.of_array(array)
            shape = tuple(self._extent(axis, extent) for axis, extent in zip(axes, array.shape, strict=True))
            shared = array in self._group.outputs
            self._tiles[array.id] = replace(array, id=self._cutting.fresh() if shared else array.id, shape=shape,
                                            name=f"{array.name}.tile" if shared else array.name)
        return self._tiles[array.id]

    def _view(self, view: ArrayView, skip: int = 0) -> ArrayView:
        """Return the tile of a view; the first `skip` dimensions stay whole."""
        axes = self._group.axes.of_view(view)
        if view.array.id in self._group.local:
            return ArrayView(self._tile(view.array), view.steps)
        steps = [self._step(axis, dim) for dim, axis in enumerate(axes) if dim >= skip]
        return view.then(*(step for step in steps if step is not None))

    def _operand(self, operand: Operand) -> Operand:
        return self._view(operand) if isinstance(operand, ArrayView) else operand

    def _span_of(self, array: Array) -> Span:
        return next(statement.span for statement in self._group.statements
                    if isinstance(statement, Apply) and array in statement.results)

    def _stored(self, array: Array) -> Item:
        target = ArrayView(array)
        axes = self._group.axes.of_array(array)
        steps = [self._step(axis, dim) for dim, axis in enumerate(axes)]
        view = target.then(*(step for step in steps if step is not None))
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
        """Return the operands of an operation without arrays, for the tile: a range starts later."""
        if statement.op != ARANGE:
            return statement.operands
        start, step = statement.operands
        assert not isinstance(start, ArrayView) and not isinstance(step, ArrayView)
        axis = self._group.axes.of_array(statement.results[0])[-1]
        if axis is None or axis not in self._sizes:
            return statement.operands
        return add(start, mul(mul(self._vars[axis], Const(self._sizes[axis])), step)), step

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
            reads = list(views_read(statement))
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
        count = self._count(axis)
        loop: Item = flow.Loop(self._vars[axis], Const(0), count, Const(1), True, flow.Sequence(tuple(steps)), BodyNote(self._name))
        return [*before, loop, *after]

    def _summed(self, statement: Apply) -> tuple[Item, list[Item], list[Item]]:
        """Return the start of a carried sum, what a step adds, and what is done with the sum in the end."""
        entry = TABLE[statement.op]
        tile = self._tile(statement.results[0])
        wide = DType.F32 if tile.dtype.is_half else tile.dtype
        carried = replace(tile, id=self._cutting.fresh(), name=f"{tile.name}.sum", dtype=wide)
        part = replace(carried, id=self._cutting.fresh(), name=f"{tile.name}.step")
        changed = self._statement(statement)
        assert isinstance(changed, Apply)
        inside: list[Item] = []
        op, joined = changed.op, elementwise.add.name
        operands = changed.operands
        start: int | float = 0
        if isinstance(entry, RowReduce | ColReduce):
            op, joined, start = _carried(entry, wide)
            source = operands[0]
            assert isinstance(source, ArrayView)
            if source.dtype is not wide:
                widened = Array(self._cutting.fresh(), f"{tile.name}.wide", source.shape, wide)
                inside.append(flow.Do(Apply(cast.cast.name, (source,), (widened,), (("dtype", wide),), self._name, statement.span)))
                operands = (ArrayView(widened),)
        else:
            assert isinstance(entry, Matmul)
            operands = operands[:2]
        total = replace(carried, id=self._cutting.fresh(), name=f"{tile.name}.total")
        inside.append(flow.Do(Apply(op, operands, (part,), (), self._name, statement.span)))
        inside.append(flow.Do(Apply(joined, (ArrayView(carried), ArrayView(part)), (total,), (), self._name, statement.span)))
        inside.append(flow.Do(Put(ArrayView(carried), ArrayView(total), group=self._name, span=statement.span)))
        end: list[Item] = []
        value = carried
        if isinstance(entry, RowReduce | ColReduce) and entry.finish is Finish.DIVIDE_BY_COUNT:
            assert self._walked is not None
            mean = replace(carried, id=self._cutting.fresh(), name=f"{tile.name}.mean")
            end.append(flow.Do(Apply(elementwise.div.name, (ArrayView(value), self._group.axes.extent(self._walked)), (mean,), (),
                                     self._name, statement.span)))
            value = mean
        if value.dtype is not tile.dtype:
            narrow = replace(tile, id=self._cutting.fresh(), name=f"{tile.name}.rounded")
            end.append(flow.Do(Apply(cast.cast.name, (ArrayView(value),), (narrow,), (("dtype", tile.dtype),), self._name, statement.span)))
            value = narrow
        self._tiles[statement.results[0].id] = value
        return flow.Do(Make(carried, start, statement.span)), inside, end


def _carried(entry: RowReduce | ColReduce, dtype: DType) -> tuple[str, str, int | float]:
    """Return the op that reduces a step, the op that joins two steps, and the number that the sum starts from."""
    reduce = entry.name
    if entry.finish is Finish.DIVIDE_BY_COUNT:
        reduce = next(one.name for one in TABLE.values() if type(one) is type(entry) and isinstance(one, RowReduce | ColReduce)
                      and one.identity is Identity.ZERO and one.finish is Finish.NONE)
    joined = {Identity.ZERO: elementwise.add, Identity.ONE: elementwise.mul, Identity.LOWEST: elementwise.maximum,
              Identity.HIGHEST: elementwise.minimum}[entry.identity]
    return reduce, joined.name, _number(entry.identity, dtype)


def _number(identity: Identity, dtype: DType) -> int | float:
    if identity in (Identity.ZERO, Identity.ONE):
        return int(identity is Identity.ONE) if dtype.is_integer else float(identity is Identity.ONE)
    sign = -1 if identity is Identity.LOWEST else 1
    if not dtype.is_integer:
        return sign * float("inf")
    bits = 8 * dtype.nbytes
    unsigned = str(dtype).startswith("u")
    lowest, highest = (0, (1 << bits) - 1) if unsigned else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    return lowest if sign < 0 else highest


def _without(body: Body, var: Var) -> Body:
    """Return a body in which a loop variable is 0: its loop has one turn."""
    return substituted(body, {var: Const(0)})

