"""Put kernels whose values lie in scratch of a task into one loop of tasks, as the plan's `keep` says or where that needs less memory.

    normed = empty((t, 4096))                        before: scratch of the whole tensor
    for t_i in each(ceildiv(t, 16)):
        normed[t_i * 16 :+ 16] = …
    for t_i in each(ceildiv(t, 128)):
        out[t_i * 128 :+ 128] = normed[t_i * 128 :+ 128] @ w

    for t_i in each(ceildiv(t, 128)):                after: scratch of 128 rows, another one in each iteration
        normed = empty((min(128, t - t_i * 128), 4096))
        for t_in in each(8):
            normed[t_in * 16 :+ 16] = …
        out[t_i * 128 :+ 128] = normed @ w

The loops are unordered, so that the shared one may be taken to the outside. Kernels share a loop if each takes blocks of one dimension of
every array that one of them writes and another uses, and if their tiles divide each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TypeAlias

from pto_wsp.errors import PlanConflictError
from pto_wsp.ir import flow
from pto_wsp.ir.extents import same
from pto_wsp.ir.layout import TensorRef
from pto_wsp.ir.scalar import Const, Scalar, Var, add, ceil_div, elements_in, minimum, mul, sub
from pto_wsp.ir.tensor_function import (
    Array,
    ArrayStep,
    ArrayView,
    Body,
    BodyNote,
    Insert,
    Item,
    Make,
    Put,
    Refold,
    Statement,
    TensorFunction,
    TileCut,
)
from pto_wsp.ir.view import Cut, Permute, Pick
from pto_wsp.passes.tensor.effects import Effects, effects_of, fresh_ids, group_name, made_by, with_views
from pto_wsp.passes.tensor.group_costs import planned_extent
from pto_wsp.passes.tensor.planned import PlannedFunction, TensorContext
from pto_wsp.passes.tensor.substitute import substituted
from pto_wsp.schedule.tiling import TilePlan
from pto_wsp.source import Span
from pto_wsp.values import dataclass

TaskLoop: TypeAlias = "flow.Loop[Statement, BodyNote, TensorRef, TensorRef, TensorRef]"


def share_loops(planned: PlannedFunction, context: TensorContext) -> PlannedFunction:
    """Return the function with shared loops of tasks, and the plan with `keep` for each value between kernels."""
    work = _Sharing(planned.function, planned.plan, context)
    body = work.shared(planned.function.body)
    return replace(planned, function=replace(planned.function, body=body), plan=work.plan)


@dataclass(slots=True, eq=False)
class _Nest:
    """A nest of loops of tasks around the statements of one kernel. `loops`: the outermost first."""

    item: Item
    loops: tuple[TaskLoop, ...]
    body: Body
    effects: Effects

    @property
    def name(self) -> str:
        """The name of the kernel's group."""
        return next((group_name(item) for item in self.body.items if group_name(item)), "")


@dataclass(frozen=True, slots=True)
class _BlockCut:
    """A cut of a dimension in blocks, one block for each iteration of a loop. `step`: the index of the cut among the view's steps."""

    step: int
    var: Var
    size: int


@dataclass(slots=True, eq=False)
class _Shared:
    """Nests that share a loop. `blocks`: of each nest, by its place, the loop variable and the size of its blocks.

    `extent`: of the axis that the loop runs over; `scratch`: the arrays that lie in the loop, each with the dimension of the axis.
    """

    extent: Scalar
    blocks: dict[int, tuple[Var, int]]
    scratch: dict[int, tuple[Array, int]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The positions of the axis in one iteration of the loop."""
        return max(size for _, size in self.blocks.values())


class _Sharing:
    def __init__(self, function: TensorFunction, plan: TilePlan, context: TensorContext) -> None:
        self.plan = plan
        self._sizes = context.sizes
        self._ids = fresh_ids(function)
        self._effects: list[Effects] = []          # of the items of the body at hand
        self._results = {view.array.id for view in function.results}
        self._uses = _uses_of(function)

    def shared(self, body: Body) -> Body:
        """Return a body in which kernels share loops; the bodies inside included."""
        items = list(body.items)
        nests = {place: nest for place, item in enumerate(items) if (nest := _nest_of(item)) is not None}
        groups: list[_Shared] = []
        self._effects = [effects_of(item) for item in items]
        between = list(_between_kernels(items, nests, self._results, self._effects))
        for array, writer in sorted(between, key=lambda pair: not self._asked(pair[0])):      # what a person wants goes first
            self._placed(array, writer, items, nests, groups)
        merged = {place: group for group in groups for place in group.blocks}
        scratch = {one for group in groups for one in group.scratch}
        out: list[Item] = []
        for place, item in enumerate(items):
            made = made_by(item)
            if made is not None and made.id in scratch:
                continue
            if place not in merged:
                out.append(item if isinstance(item, flow.Do) or place in nests else flow.with_bodies(item, self.shared))
            elif place == max(merged[place].blocks):
                out.append(self._loop(merged[place], nests, {made.id: _make(one) for one in items if (made := made_by(one)) is not None}))
        return replace(body, items=tuple(out))

    # -- choosing ------------------------------------------------------------------------------------------------------
    def _asked(self, array: Array) -> bool:
        said = self.plan.said("keep", array.name)
        return said is not None and said.by_hand

    def _placed(self, array: Array, writer: int, items: Sequence[Item], nests: Mapping[int, _Nest], groups: list[_Shared]) -> None:
        """Decide where an array lies that a nest writes and others use; add what shares a loop for its sake to `groups`."""
        said = self.plan.said("keep", array.name)
        if said is not None and said.first != "task":
            return
        found = self._sharing(array, items, nests, groups)
        if isinstance(found, str):
            if said is not None and said.by_hand:
                raise PlanConflictError(f"`{array.name}` cannot lie in scratch of a task", _span_of(nests[writer]),
                                        expected="kernels that compute and use the value block by block, in blocks that divide each other",
                                        found=found, help=f'keep={{"{array.name}": "whole"}} keeps the whole of it in memory, which the '
                                        "compiler chooses where nothing is said")
            self.plan = self.plan.with_choice("keep", array.name, "", "whole", found)
            return
        joined, dim = found
        groups[:] = [one for one in groups if not one.blocks.keys() & joined.blocks.keys()]
        groups.append(joined)
        whole = array.dtype.nbytes
        for extent in array.shape:
            whole *= planned_extent(extent, self._sizes)
        part = whole * joined.size // max(1, planned_extent(array.shape[dim], self._sizes))
        self.plan = self.plan.with_choice("keep", array.name, "", "task",
                                          f"scratch of {min(part, whole):,} bytes an iteration, {whole:,} for the whole")

    def _sharing(self, array: Array, items: Sequence[Item], nests: Mapping[int, _Nest], groups: Sequence[_Shared],
                 ) -> tuple[_Shared, int] | str:
        """Return the nests that share a loop if an array lies in the loop, and the dimension of the axis; or why they cannot."""
        users = {place for place, nest in nests.items() if array.id in nest.effects.reads | nest.effects.writes}
        if self._uses.get(array.id, 0) > sum(_count(nests[place].item, array.id) for place in users):
            alone = any(isinstance(item, flow.Do) and made_by(item) is None and array.id in _touched(effects)
                        for item, effects in zip(items, self._effects, strict=True))
            return "one task uses the whole of it" if alone else "another loop of the function uses it"
        before = [one for one in groups if one.blocks.keys() & users]
        reason = ""
        for dim in range(array.rank):
            made = _blocks_along(array, dim, users, nests)
            if isinstance(made, str):
                reason = reason or made
                continue
            inside = [nests[place] for place, (var, _) in made.items() if nests[place].loops[0].var != var]
            ordered = next((nest.name for nest in inside if self._is_ordered(nest)), None)
            if ordered is not None:
                reason = reason or f"the order of the loops of `{ordered}` has another loop outermost"
                continue
            together = _Shared(array.shape[dim], made)
            joined = _joined(together, before)
            wrong = joined if isinstance(joined, str) else _why_not(joined, self._effects, nests)
            if isinstance(joined, str) or wrong:
                reason = reason or wrong
                continue
            joined.scratch[array.id] = array, dim
            return joined, dim
        return reason or "its kernels run over no axis in blocks"

    def _is_ordered(self, nest: _Nest) -> bool:
        """Tell whether a person says the order of a nest's loops."""
        group = self.plan.said("groups", nest.name)
        values = group.first if group is not None and isinstance(group.first, tuple) else ()
        return self.plan.said("order", nest.name, "", [(str(value), "") for value in values], counts=False) is not None

    # -- rewriting -----------------------------------------------------------------------------------------------------
    def _loop(self, group: _Shared, nests: Mapping[int, _Nest], makes: Mapping[int, Make]) -> Item:
        """Return the loop that the nests of a group share, with the scratch in its body."""
        size, extent = group.size, group.extent
        name = next(var.name for var, its in group.blocks.values() if its == size)
        iteration = Var(name, next(self._ids))
        exact = isinstance(extent, Const) and int(extent.value) % size == 0
        here = Const(size) if exact else minimum(Const(size), sub(extent, mul(iteration, Const(size))))
        scratch = {one: replace(array, id=next(self._ids), shape=(*array.shape[:dim], here, *array.shape[dim + 1:]))
                   for one, (array, dim) in group.scratch.items()}
        inside: list[Item] = [flow.Do(replace(makes[one], array=array)) for one, array in scratch.items()]
        for place in sorted(group.blocks):
            var, own = group.blocks[place]
            inner = Var(f"{var.name.removesuffix('_i')}_in", next(self._ids))

            def local(view: ArrayView, var: Var = var, own: int = own, inner: Var = inner) -> ArrayView:
                if view.array.id not in scratch:
                    return view
                dim = group.scratch[view.array.id][1]
                block = _block_of(view, dim, (var,))
                assert block is not None
                cut = view.steps[block.step]
                assert isinstance(cut, Cut | TileCut)
                start = mul(inner, Const(own))
                step: tuple[ArrayStep, ...] = ()
                if own != size:
                    step = (Cut(cut.dim, start, add(start, Const(own))) if exact else TileCut(cut.dim, start, own),)
                return ArrayView(scratch[view.array.id], (*view.steps[:block.step], *step, *view.steps[block.step + 1:]))

            nest = nests[place]
            body: Body = flow.rewrite_leaves(nest.body, lambda statement, local=local: with_views(statement, local))   # type: ignore[misc]
            for loop in reversed(nest.loops):
                if loop.var is not var:
                    body = flow.Sequence((replace(loop, body=body),))
                elif own != size:
                    body = flow.Sequence((replace(loop, var=inner, stop=ceil_div(here, Const(own)), body=body),))
            inside.extend(substituted(body, {var: iteration if own == size else add(mul(iteration, Const(size // own)), inner)}).items)
        return flow.Loop(iteration, Const(0), ceil_div(extent, Const(size)), Const(1), False, flow.Sequence(tuple(inside)), BodyNote())


# -- what stands in a body ---------------------------------------------------------------------------------------------
def _nest_of(item: Item) -> _Nest | None:
    """Return an item as a nest of loops of tasks around one kernel; None for another item."""
    loops: list[TaskLoop] = []
    inside: Item = item
    while isinstance(inside, flow.Loop) and not inside.ordered and not group_name(inside):
        loops.append(inside)
        body = inside.body
        assert isinstance(body, flow.Sequence)
        if len(body.items) == 1 and isinstance(body.items[0], flow.Loop) and not group_name(body.items[0]):
            inside = body.items[0]
            continue
        plain = all(isinstance(one, flow.Do) or group_name(one) for one in body.items)
        names = {group_name(one) for one in body.items} - {""}
        return _Nest(item, tuple(loops), body, effects_of(item)) if plain and len(names) == 1 else None
    return None


def _between_kernels(items: Sequence[Item], nests: Mapping[int, _Nest], results: set[int],
                     effects: Sequence[Effects]) -> Iterator[tuple[Array, int]]:
    """Yield the arrays that items make without contents, one nest writes and other items use, each with the place of the writer."""
    for item in items:
        array = made_by(item)
        if array is None or array.id in results or _make(item).fill is not None:
            continue
        writers = [place for place, nest in nests.items() if array.id in nest.effects.writes]
        if len(writers) == 1 and any(array.id in one.reads for place, one in enumerate(effects) if place != writers[0]):
            yield array, writers[0]


def _make(item: Item) -> Make:
    assert isinstance(item, flow.Do) and isinstance(item.leaf, Make)
    return item.leaf


def _touched(effects: Effects) -> frozenset[int]:
    return effects.reads | effects.writes


def _uses_of(function: TensorFunction) -> dict[int, int]:
    """Return by id of an array how many views of the function's statements are of it, elements that scalars read included."""
    found: dict[int, int] = {}
    for item in flow.walk(function.body):
        if isinstance(item, flow.Do):
            ids = [*[view.array.id for view in item.leaf.views], *item.leaf.elements]
        else:
            ids = [*elements_in(one for evaluation in flow.evaluations(item) for one in evaluation.scalars)]
        for one in ids:
            found[one] = found.get(one, 0) + 1
    return found


def _count(item: Item, array: int) -> int:
    return sum(view.array.id == array for leaf in flow.leaves(item) for view in leaf.views)


def _span_of(nest: _Nest) -> Span:
    return next(leaf.span for leaf in flow.leaves(nest.item))


# -- blocks ------------------------------------------------------------------------------------------------------------
def _block_of(view: ArrayView, dim: int, variables: Sequence[Var]) -> _BlockCut | None:
    """Return the cut in blocks that a view makes of a dimension of its array, one block for each iteration; None for another use."""
    at = dim
    for place, step in enumerate(view.steps):
        match step:
            case Cut(taken, start, stop, 1) if taken == at:
                return _block(place, start, sub(stop, start), variables)
            case TileCut(taken, start, size) if taken == at:
                return _block(place, start, Const(size), variables)
            case Permute(order):
                at = order.index(at)
            case Insert(new):
                at += new <= at
            case Refold():
                return None
            case Pick(taken) if taken < at:
                at -= 1
            case _ if step.dim == at:
                return None
            case _:
                pass
    return None


def _block(place: int, start: Scalar, size: Scalar, variables: Sequence[Var]) -> _BlockCut | None:
    if not isinstance(size, Const):
        return None
    var = next((var for var in variables if start == mul(var, size)), None)
    return None if var is None else _BlockCut(place, var, int(size.value))


def _blocks_along(array: Array, dim: int, users: set[int], nests: Mapping[int, _Nest]) -> dict[int, tuple[Var, int]] | str:
    """Return for each nest that uses an array the loop and the size of its blocks along a dimension; or why there is none."""
    found: dict[int, tuple[Var, int]] = {}
    for place in sorted(users):
        nest = nests[place]
        variables = [loop.var for loop in nest.loops]
        for leaf in flow.leaves(nest.item):
            if array.id in leaf.elements:
                return f"`{nest.name}` reads single elements of it as numbers"
            for view in leaf.views:
                if view.array.id != array.id:
                    continue
                block = None if _is_scattered(leaf, view) else _block_of(view, dim, variables)
                if block is None or found.setdefault(place, (block.var, block.size)) != (block.var, block.size):
                    return f"`{nest.name}` {'writes' if array.id in nest.effects.writes else 'reads'} it otherwise than block by block"
    return _undivided([size for _, size in found.values()]) or found


def _is_scattered(leaf: Statement, view: ArrayView) -> bool:
    """Tell whether a statement writes a view through a table."""
    return isinstance(leaf, Put) and leaf.table is not None and view is leaf.target


def _joined(new: _Shared, before: Sequence[_Shared]) -> _Shared | str:
    """Return groups of nests joined to one group, or the reason why they can share no loop."""
    blocks, scratch = dict(new.blocks), {}
    for one in before:
        scratch.update(one.scratch)
        for place, block in one.blocks.items():
            if blocks.setdefault(place, block) != block or not same(one.extent, new.extent):
                return "its kernels share a loop over another axis"
    return _undivided([size for _, size in blocks.values()]) or _Shared(new.extent, blocks, scratch)


def _undivided(sizes: Sequence[int]) -> str:
    """Return that sizes of tiles do not divide each other; "" where they divide the largest."""
    wrong = next((size for size in sizes if max(sizes) % size), None)
    return "" if wrong is None else f"tiles of {wrong} and {max(sizes)} do not divide each other"


def _why_not(group: _Shared, effects_by_place: Sequence[Effects], nests: Mapping[int, _Nest]) -> str:
    """Return the reason why nests cannot share one loop; "" if they can."""
    places = sorted(group.blocks)
    for place in range(places[0], places[-1]):
        if place not in group.blocks:
            effects = effects_by_place[place]
            if any(effects.must_follow(nests[one].effects) for one in places if one < place):
                return f"`{nests[place].name if place in nests else 'a loop'}` stands between and waits for it"
    for one in places:
        for other in places:
            for array in nests[one].effects.writes & _touched(nests[other].effects) if one != other else ():
                if not _in_same_blocks(array, (one, other), group, nests):
                    return f"`{nests[one].name}` writes what `{nests[other].name}` uses otherwise than block by block"
    return ""


def _in_same_blocks(array: int, places: Sequence[int], group: _Shared, nests: Mapping[int, _Nest]) -> bool:
    """Tell whether nests take an array by the blocks of the group's loop, along one dimension."""
    views = [(place, leaf, view) for place in places for leaf in flow.leaves(nests[place].item) for view in leaf.views
             if view.array.id == array]
    if any(array in leaf.elements for place in places for leaf in flow.leaves(nests[place].item)):
        return False
    if any(_is_scattered(leaf, view) for _, leaf, view in views):
        return False
    for dim in range(views[0][2].array.rank if views else 0):
        if same(views[0][2].array.shape[dim], group.extent) and all(
                (block := _block_of(view, dim, (group.blocks[place][0],))) is not None and block.size == group.blocks[place][1]
                for place, _, view in views):
            return True
    return False
