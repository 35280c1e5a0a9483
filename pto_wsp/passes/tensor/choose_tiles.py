"""Choose the tiles of each group: how much of each axis one task computes, and the steps of a sum that is walked.

The plan's keys are `tiles` (the extent of a tile along an axis) and `inner` (the steps of a walked sum). An axis is called after its
symbol, else after its dimension in the group's largest result. Two axes at most have tiles of more than one position: the columns, the last
dimension, and the rows, the longest of the others; a task loop runs over every other axis. Of the candidates that fit the memories of the
arch, the one that costs least is taken (`tile_costs`).

Where a task is small beside what the control processors take for it, and its tile cannot grow, it computes several neighbouring tiles, one
after the other: the key `batch`. Where a sum is short, a task of a product takes its tile in steps of rows or columns, `m` or `n` of
`inner`: one operand stays, and loads of the other, products and stores overlap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf

from pto_wsp.arch.model import Arch
from pto_wsp.ir import flow
from pto_wsp.ir.scalar import Const, SymbolRef, ceil_div, sub
from pto_wsp.ir.tensor_function import Apply, Array, ArrayView, Body
from pto_wsp.ops.spec import Convert, Elementwise, Expand, RowReduce
from pto_wsp.ops.table import TABLE
from pto_wsp.passes.tensor.axes import Dim
from pto_wsp.passes.tensor.group_costs import COPY, DescribedGroup, axis_names, group_costs, planned_extent, said_of
from pto_wsp.passes.tensor.groups import KernelGroup, groups_of
from pto_wsp.passes.tensor.partition import group_facts
from pto_wsp.passes.tensor.planned import PlannedFunction, TensorContext
from pto_wsp.passes.tensor.steps import product_steps, steps_to_try
from pto_wsp.passes.tensor.tile_costs import Ranking, TileChoice, fit_error, rank_tiles
from pto_wsp.schedule.tiling import TilePlan
from pto_wsp.schedule.tiling_entries import PlanEntry, match_of
from pto_wsp.schedule.tiling_file import GroupCost
from pto_wsp.source import Span

_Rankings = dict[object, tuple[tuple[str, ...], Ranking]]      # by what they are of, each with the names of its axes


def choose_tiles(planned: PlannedFunction, context: TensorContext) -> PlannedFunction:
    """Return the function as it is, and the plan with `tiles` and `inner` for each group."""
    plan, context = planned.plan, replace(context, bounds=planned.function.bounds)
    groups, known = list(groups_in(planned, context)), _Rankings()
    for name, group, repeats in groups:
        plan = _chosen(plan, name, group, repeats, context, _of_shared_loops(name, group, groups, plan), known)
    return replace(planned, plan=plan, groups={name: group for name, group, _ in groups})


def groups_in(planned: PlannedFunction, context: TensorContext) -> Iterator[tuple[str, KernelGroup, int]]:
    """Yield the groups of a divided function with their names, and how often tasks of each run side by side, in program order."""
    facts = group_facts(planned.function, planned.plan)

    def inside(body: Body, repeats: int) -> Iterator[tuple[str, KernelGroup, int]]:
        for name, group, items in groups_of(body, facts, planned.groups):
            if group is not None:
                yield name, group, repeats
            else:
                for item in items:
                    n_iterations = 1
                    if isinstance(item, flow.Loop) and not item.ordered:
                        n_iterations = planned_extent(ceil_div(sub(item.stop, item.start), item.step), context.sizes)
                    for inner in flow.children(item):
                        assert isinstance(inner, flow.Sequence)
                        yield from inside(inner, repeats * n_iterations)

    yield from inside(planned.function.body, 1)


def _of_shared_loops(name: str, group: KernelGroup, groups: Sequence[tuple[str, KernelGroup, int]], plan: TilePlan) -> dict[Dim, int]:
    """Return, by axis, the tile sizes of the groups that share a loop with this group; this group's sizes divide them or are multiples."""
    found: dict[Dim, int] = {}
    task = [entry for entry in plan.entries if entry.key == "keep" and entry.first == "task"]
    for other_name, other, _ in groups if task else ():
        for array in (*group.outputs, *other.outputs) if other_name != name else ():
            said = plan.said("keep", array.name, counts=False)
            if said is None or said.first != "task":
                continue
            for mine, theirs in zip(_axes_in(group, array), _axes_in(other, array), strict=False):
                tile = None if theirs is None else said_of(plan, "tiles", other_name, other, theirs, counts=False)
                if mine is not None and tile is not None and isinstance(tile.first, int):
                    found[mine] = max(found.get(mine, 1), tile.first)
    return found


def _axes_in(group: KernelGroup, array: Array) -> tuple[Dim | None, ...]:
    """Return the axes that the dimensions of an array are in a group that makes the array, or reads the whole of it; () otherwise."""
    if array in group.outputs:
        return group.axes.of_array(array)
    read = next((view for one in group.statements for view in one.reads if view == ArrayView(array)), None)
    return () if read is None else group.axes.of_view(read)


def _chosen(plan: TilePlan, name: str, group: KernelGroup, repeats: int, context: TensorContext, shared: Mapping[Dim, int],
            known: _Rankings) -> TilePlan:
    names = axis_names(group)
    costs = group_costs(name, group, plan, context, shared, product_steps(name, group, plan))
    batch = said_of(plan, "batch", name, group)
    may_batch = batch is None and not shared and _may_batch(name, group, plan, context)
    arch = context.arch_of_tiles(name)
    ranking = _ranked(costs, arch, repeats, batch.first if batch is not None and isinstance(batch.first, int) else 1, known)
    in_steps = None if batch is not None or shared else _in_steps(plan, name, group, costs, repeats, context, known)
    if in_steps is not None:
        costs, ranking, steps = in_steps
        plan = plan if steps is None else plan.with_choice("inner", name, steps.axis, steps.value, steps.reason)
    chosen = ranking.chosen
    if chosen is None:
        raise fit_error(name, costs.axes, costs.values, costs.ops, arch, ranking.refused, _line_of(group))
    reason = "; ".join((ranking.reason, *(f"instructions work in the other {1 - share:.0%} of {memory}"
                                          for (group_name, memory), share in context.shares.items() if group_name == name)))
    tiles = {axis.name: axis.given or chosen.tiles[axis.name] for axis in costs.axes}
    for axis in group.tiled:
        if said_of(plan, "tiles", name, group, axis) is None:
            plan = plan.with_choice("tiles", name, names[axis], tiles[names[axis]], reason)
    whole = tuple(names[axis] for axis in group.whole if axis != costs.walked and group.axes.extent(axis) != Const(1))
    if may_batch and all(tiles[axis.name] >= axis.extent for axis in costs.axes if axis.summed):
        plan, chosen = _batched(plan, name, costs, chosen, repeats, arch)
    plan = plan.with_cost(GroupCost(name, tuple(dict.fromkeys(op.op for op in costs.ops if op.op != COPY)), ranking.unit, whole,
                                    chosen.n_tasks, chosen.cycles))
    if costs.walked is not None and said_of(plan, "inner", name, group, costs.walked) is None:
        step, extent = tiles[names[costs.walked]], group.axes.extent(costs.walked)
        if extent != Const(step):
            plan = plan.with_choice("inner", name, names[costs.walked], step, reason)
    return plan


def _in_steps(plan: TilePlan, name: str, group: KernelGroup, costs: DescribedGroup, repeats: int, context: TensorContext,
              known: _Rankings) -> tuple[DescribedGroup, Ranking, PlanEntry | None] | None:
    """Return a product's group with steps of its rows or columns, the tiles, and the entry for the steps; None where steps do not pay.

    Steps pay if tasks take at most `_PAYS` of the cycles of the best tiles without steps, submissions apart. Of the tiles and steps within
    `_NEAR` of the fewest such cycles, the least cost with submissions is taken. For steps by hand, the entry is None.
    """
    arch, by_hand = context.arch_of_tiles(name), [axis for axis in costs.axes if axis.step]
    submit = arch.aicpu.submit_cycles
    if not submit or arch.neutral or arch.cores.shared or any(axis.varies for axis in costs.axes) or len(by_hand) > 1:
        return None
    names = axis_names(group)
    tried = [(letter, names[axis], step) for letter, axis, step in steps_to_try(name, group, plan, by_hand=bool(by_hand))]
    if not tried:
        return None
    kept = tuple([entry for entry in plan.entries if not entry.by_hand or entry.key not in ("tiles", "inner")])
    free = group_costs(name, group, replace(plan, entries=kept), context) if len(kept) < len(plan.entries) else costs
    whole = _ranked(free, arch, repeats, 1, known).chosen
    if whole is None or any(axis.summed and 2 * whole.tiles[axis.name] < axis.extent for axis in free.axes):
        return None      # a sum in more steps overlaps loads and products itself
    before = whole.cycles - whole.n_tasks * submit
    least = min((_ranked(stepped, arch, repeats, 1, known).least_cycles for _, _, _, stepped in _stepped(free, tried)), default=inf)
    below = min(before * _PAYS, least * _NEAR)
    found = [(ranking.choices[0], letter, step, stepped, ranking)
             for letter, along, step, stepped in _stepped(costs, [("", axis.name, axis.step) for axis in by_hand] or tried)
             if (ranking := _ranked(stepped, arch, repeats, 1, known, below)).choices]
    if not found:
        return None
    found.sort(key=lambda one: one[0].cycles)
    best, letter, step, stepped, ranking = found[0]
    following = [f"; next {other}={n} with {choice.shown}: {100 * (choice.cycles - best.cycles) / best.cycles:+.0f}%"
                 for choice, other, n, _, _ in found[1:2]]
    reason = (f"best of {len(tried)}: {best.cycles - best.n_tasks * submit:,} cycles without submissions, "
              f"{before:,} of {whole.shown} without steps{''.join(following)}")
    return stepped, ranking, None if by_hand else PlanEntry("inner", name, letter, step, reason)


_PAYS, _NEAR = 0.97, 1.1


def _stepped(costs: DescribedGroup, steps: Sequence[tuple[str, str, int]]) -> Iterator[tuple[str, str, int, DescribedGroup]]:
    """Yield each of the steps, given as (m or n, axis, step), that is less than the axis and its tile by hand, and the group with it."""
    for letter, along, step in steps:
        axes = tuple([replace(axis, step=step) if axis.name == along else axis for axis in costs.axes])
        if all((axis.given or axis.extent) > step for axis in axes if axis.name == along):
            yield letter, along, step, replace(costs, axes=axes)


def _ranked(costs: DescribedGroup, arch: Arch, repeats: int, batch: int, known: _Rankings, below: float = inf) -> Ranking:
    """Return the two best candidates of a group. `known`: the rankings so far; groups that differ in names alone have one."""
    names = tuple([axis.name for axis in costs.axes])
    axes = {name: at for at, name in enumerate(names)}
    values = {value.name: at for at, value in enumerate(costs.values)}
    content = (tuple([(axes[axis.name], replace(axis, name="")) for axis in costs.axes]),
               tuple([(value.dtype, value.loaded, value.stored, value.held,
                       tuple([(dim,) if isinstance(dim, int) else axes[dim] for dim in value.dims])) for value in costs.values]),
               tuple([(op.op, op.times, tuple([values[name] for name in op.results]), tuple([values[name] for name in op.operands]))
                      for op in costs.ops]), arch.memories, repeats, batch, below)
    if content not in known:
        known[content] = names, rank_tiles(costs.axes, costs.values, costs.ops, arch, most=2, repeats=repeats, batch=batch, below=below)
    theirs, found = known[content]
    if theirs == names or not found.choices:      # an error follows, and the group is the first
        return found
    mine = dict(zip(theirs, names, strict=True))

    def named(tiles: Mapping[str, int]) -> dict[str, int]:
        return {mine[name]: extent for name, extent in tiles.items()}

    refused = found.refused and replace(found.refused, tiles=named(found.refused.tiles), largest=named(found.refused.largest))
    return replace(found, choices=tuple([replace(one, tiles=named(one.tiles)) for one in found.choices]), refused=refused)


def _may_batch(name: str, group: KernelGroup, plan: TilePlan, context: TensorContext) -> bool:
    """Tell whether the compiler may choose how many neighbouring tiles a task of a group computes.

    The arch says what a task costs its control processors, nothing is said of the group's tiles, the number of the tasks is known whatever
    the call is, and what a task does with each tile is simple.
    """
    if not context.arch.aicpu.submit_cycles or context.arch.neutral or context.arch.cores.shared:
        return False
    said = any(said_of(plan, key, name, group, axis, counts=False) is not None for axis in group.tiled for key in ("tiles", "tails"))
    kept = [entry.name for entry in plan.entries if entry.key == "keep"]      # not asked for here: an entry without an effect is refused
    return (not said and said_of(plan, "order", name, group, counts=False) is None
            and not any(match_of(name, array.name) >= 0 for name in kept for array in group.outputs)
            and all(isinstance(extent := group.axes.extent(axis), Const) or (isinstance(extent, SymbolRef) and extent.name in context.sizes)
                    for axis in group.tiled)
            and all(isinstance(item, flow.Do) and isinstance(item.leaf, Apply)
                    and isinstance(TABLE.get(item.leaf.op), Elementwise | Convert | Expand | RowReduce) for item in group.items))


def _batched(plan: TilePlan, name: str, costs: DescribedGroup, single: TileChoice, repeats: int,
             arch: Arch) -> tuple[TilePlan, TileChoice]:
    """Return the plan with the number of tiles a task that costs least, if the number is above 1, and the choice with its costs.

    Numbers that leave an executor without a task are not tried.
    """
    axes = [replace(axis, given=single.tiles[axis.name]) for axis in costs.axes]
    found = {1: single}
    for batch in _BATCHES:
        ranking = rank_tiles(axes, costs.values, costs.ops, arch, most=1, repeats=repeats, batch=batch)
        if ranking.chosen is None or ranking.chosen.n_tasks < ranking.executors or ranking.chosen.n_tasks == found[batch // 2].n_tasks:
            break
        found[batch] = ranking.chosen
    best = min(found, key=lambda batch: (found[batch].cycles, batch))
    if best == 1:
        return plan, single
    following = min((batch for batch in found if batch != best), key=lambda batch: (found[batch].cycles, batch))
    more = [f"{batch}: {100 * (found[batch].cycles - found[best].cycles) / max(1, found[best].cycles):+.0f}%"
            for batch in dict.fromkeys((following, 1))]
    return plan.with_choice("batch", name, "", best, f"{best} tiles a task are best of {len(found)}; next {'; '.join(more)}"), found[best]


_BATCHES = (2, 4, 8, 16, 32, 64)


def _line_of(group: KernelGroup) -> Span:
    return group.statements[-1].span
