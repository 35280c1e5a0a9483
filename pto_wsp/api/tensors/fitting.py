"""Fit the tiles of a plan: kernels have a form as tiles, and those of a package have room for the device's instructions.

Costs count the tiles of values. Whether tiles have a form is known once kernels are written, and how much memory the device's instructions
need once the package has been compiled. Then values are cut more finely, or tiles take a smaller part of the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import sqrt

from pto_wsp.errors import CapacityError, NoTileFormError, PlanFitError, PtoError
from pto_wsp.ir import flow
from pto_wsp.ir.scalar import Const, Scalar, elements_in
from pto_wsp.ir.tensor import Tensor
from pto_wsp.ir.tensor_function import Array, ArrayParam, ArrayView, Put, TensorFunction, limit_of
from pto_wsp.ir.view import Pick
from pto_wsp.passes.tensor.effects import group_name, vars_in
from pto_wsp.passes.tensor.emit import emit
from pto_wsp.passes.tensor.emitted import EmittedModule
from pto_wsp.passes.tensor.group_costs import axis_names, planned_extent, said_of
from pto_wsp.passes.tensor.groups import KernelGroup, looks_up
from pto_wsp.passes.tensor.passes import run_tensor_passes
from pto_wsp.passes.tensor.planned import Fineness, PlannedFunction, TensorContext
from pto_wsp.passes.tensor.substitute import substituted, with_scalars
from pto_wsp.schedule.tiling import TilePlan
from pto_wsp.schedule.tiling_entries import PlanEntry
from pto_wsp.source import here
from pto_wsp.values import replaced

_MOST_TRIALS = 12       # of tiles for a package
_SHRINK = 0.85          # of the memory for tiles, at least, from trial to trial
_LEAST = 0.01           # of the memory for tiles
_SAME = 0.98            # parts of the memory whose quotient is above this are one
_LENGTHS = 128          # of an axis, that are told apart where the longest that fits is looked for


def fitted(start: PlannedFunction, context: TensorContext) -> PlannedFunction:
    """Return a function in tiled form whose kernels have a form as tiles, and, for a package, room for the device's instructions.

    Without a form, values are cut more finely; tiles of kernels that do not fit are chosen again from a smaller part of the memory.
    Where no tiles have a form the function is as costs alone cut it, and `emit` raises J310.
    Raises: J304 where no tiles fit; of tiles by hand also J310.
    """
    planned, problem, name = _search(start, context)
    if isinstance(problem, CapacityError):
        raise _too_large(start, planned, context, name, problem)
    if problem is not None and any(entry.by_hand for entry in start.plan.entries):
        problem.also, problem.span = (("the group computes this", problem.span or here()),), here()
        raise problem
    return planned


def _search(start: PlannedFunction, context: TensorContext, must_lower: bool = False,
            ) -> tuple[PlannedFunction, CapacityError | NoTileFormError | None, str]:
    """Return the function in tiled form, and what is wrong with which group where no other tiles are better.

    `must_lower`: raise what else is in the way of a package.
    """
    first = planned = run_tensor_passes(start, context)
    by_hand = any(entry.by_hand for entry in start.plan.entries)
    trials = 0
    while context.makes_package or by_hand or _has_stacks(planned.function):
        try:
            emitted = emit(planned, context)
        except NoTileFormError as problem:
            finer = _with_finer_cuts(planned, context, problem.group)
            if finer is None:
                return first, problem, problem.group
            try:
                planned, context = run_tensor_passes(start, finer), finer
            except PlanFitError:
                return first, problem, problem.group
        else:
            trials += 1
            full = _overfull(emitted, planned.plan, context, must_lower) if trials <= _MOST_TRIALS else {}
            if not full:
                break
            key, error = next(iter(full.items()))
            smaller = _with_less_memory(start, planned, context, key, error)
            if smaller is None:
                return planned, error, key[0]
            planned, context = smaller
    return planned, None, ""


def _has_stacks(function: TensorFunction) -> bool:
    """Tell whether a tile of a function in tiled form may have no form in a kernel: one that is no matrix, or that an element picks."""
    return any((view.rank > 2 and _is_stack(view.shape)) or (leaf.elements and _is_picked(view))
               for leaf in flow.leaves(function.body) for view in leaf.views)


def _is_picked(view: ArrayView) -> bool:
    return any(isinstance(step, Pick) and elements_in((step.index,)) for step in view.steps) and sum(n != Const(1) for n in view.shape) > 1


def _is_stack(shape: Sequence[Scalar]) -> bool:
    above = sum(extent != Const(1) for extent in shape)
    return above > 2 or (above == 2 and shape[-1] == Const(1))


def _with_finer_cuts(planned: PlannedFunction, context: TensorContext, group: str) -> TensorContext | None:
    """Return the context in which a group without a form is cut more finely, first by its loops that look up elements; None for no cut."""
    loops = {item.var.name for item in flow.walk(planned.function.body) if isinstance(item, flow.Loop) and group_name(item) == group
             and looks_up(item)} - context.of_tasks
    if loops:
        return replace(context, of_tasks=context.of_tasks | loops)
    entry = planned.plan.said("groups", group)
    values = tuple(map(str, entry.value)) if entry is not None and isinstance(entry.value, tuple) else ()
    fineness = max((context.fineness.get(value, Fineness.ANY) for value in values), default=max(Fineness)) + 1
    if fineness > max(Fineness):
        return None
    return replace(context, fineness={**context.fineness, **dict.fromkeys(values, Fineness(fineness))})


def _overfull(emitted: EmittedModule, plan: TilePlan, context: TensorContext, must_lower: bool) -> Mapping[tuple[str, str], CapacityError]:
    """Return the errors of the kernels that do not fit a memory, by group and memory."""
    if not context.makes_package or context.ranks is not None:
        return {}
    sizes = dict(plan.sizes)
    tensors = {one.path: Tensor(shape=[planned_extent(extent, sizes) for extent in one.array.shape], dtype=one.array.dtype, name=one.path)
               for one in emitted.bound if not one.is_result}
    try:
        emitted.workload(tensors).lower(context.target, arch=context.arch)
    except PtoError as problem:
        full = {(group, error.memory): error for error in (problem, *problem.others)
                if isinstance(error, CapacityError) and (group := _group_of(error.kernel, emitted.groups))}
        if must_lower and not full:
            raise
        return full
    return {}


def _group_of(kernel: str, groups: Mapping[str, str]) -> str:
    """Return the group of a kernel, or of the kernel that a part for one core was split from; "" where none is known."""
    whole = [name for name in groups if f"{kernel}_".startswith(f"{name}_")]
    return groups[max(whole, key=len)] if whole else ""


def _with_less_memory(start: PlannedFunction, planned: PlannedFunction, context: TensorContext, key: tuple[str, str],
                      error: CapacityError) -> tuple[PlannedFunction, TensorContext] | None:
    """Return the function with smaller tiles of a group, from a smaller part of a memory; None where the group has no smaller tiles.

    What instructions need may shrink faster than tiles, or more slowly: the part is looked for between one in which no tiles fit and one
    for which the tiles are chosen that are too large. A group whose tiles do not count in the memory, as those of products that the vector
    core adds up, takes a smaller part of every memory.
    """
    group, memory = key
    for memories in ((memory,), tuple(one.name for one in context.arch.memories if one.usable_bytes is not None)):
        def less(part: float, memories: Sequence[str] = memories) -> TensorContext:
            return replace(context, shares={**context.shares, **{(group, one): part for one in memories}})

        if _tiled(start, less(_LEAST), planned.plan) is planned.plan:
            continue
        none, same = 0.0, min(context.shares.get((group, one), 1.0) for one in memories)
        share = same * min(error.limit_bytes / error.needed_bytes, _SHRINK)
        while none < same * _SAME:
            smaller = _tiled(start, less(share), planned.plan)
            if isinstance(smaller, PlannedFunction):
                return smaller, less(share)
            none, same = (share, same) if smaller is None else (none, share)
            share = sqrt(none * same) if none else same * _SHRINK
        break
    return None


def _tiled(start: PlannedFunction, context: TensorContext, plan: TilePlan) -> PlannedFunction | TilePlan | None:
    """Return a function in tiled form; `plan` where the plan is this one again, and None where no tiles fit."""
    try:
        planned = run_tensor_passes(start, context)
    except PlanFitError:
        return None
    return plan if planned.plan == plan else planned


# -- refusal -----------------------------------------------------------------------------------------------------------
def _too_large(start: PlannedFunction, planned: PlannedFunction, context: TensorContext, name: str, problem: CapacityError) -> PtoError:
    """Return the error for a group whose smallest tiles, or tiles by hand, leave the device's instructions too little memory."""
    group = planned.groups.get(name)
    if group is None:
        return problem
    by_data = any(statement.elements for statement in group.statements)      # which decide what it computes: nothing runs it alone
    alone = start if by_data else replace(start, function=_alone(start.function, name, group))
    names = axis_names(group)
    said = {axis: entry for axis in names if (entry := said_of(planned.plan, "tiles", name, group, axis)) is not None}
    whole = {names[axis]: extent for axis in group.whole if axis in names and (extent := limit_of(group.axes.extent(axis)) or 1) > 1}
    by_hand = {names[axis]: entry for axis, entry in said.items() if entry.by_hand and isinstance(entry.first, int)}
    tiles = [f"{names[axis]}={entry.first}" for axis, entry in said.items()]
    memory, machine, needs = problem.memory, context.arch.name, f"needs {problem.needed_bytes:,} of {problem.limit_bytes:,} bytes"
    if by_hand:
        largest = [f"{axis}={most:,}" for axis, entry in by_hand.items() if isinstance(entry.first, int) and not by_data
                   and (most := _largest(entry.first, partial(_with_entry, alone, entry), context))]
        fits = f"the largest that fits, with the others as they are: {', '.join(largest)}" if largest else f"tiles that fit {machine}"
        return PlanFitError(f"group `{name}`: these tiles do not fit", here(), expected=fits, notes=problem.notes,
                            found=f"{' '.join(tiles)} {needs} of {memory}", help="take a smaller extent, or let the compiler choose",
                            also=(("the group computes this", problem.span or here()),))
    axis, extent = max(whole.items(), key=lambda one: one[1], default=("", 0))
    most = None if by_data else _largest(extent, partial(_with_extent, alone, extent), context)
    return PlanFitError(f"group `{name}`: no tiles of it fit", problem.span, notes=problem.notes,
                        expected=f"`{axis}` of at most {most:,}" if most else f"tiles that fit {machine}",
                        found=f"{' '.join((*tiles, *([f'all {extent:,} of `{axis}`'] if axis else ())))} {needs} of {memory} of {machine}",
                        help="no plan cuts what a task needs whole: join results of pieces; "
                        f"archs with more {memory}, and cpu_sim, take more")


def _alone(function: TensorFunction, name: str, group: KernelGroup) -> TensorFunction:
    """Return a function that computes a single group, on what the group reads and writes, in the first iteration of loops around it."""
    made = {array.id for statement in group.statements for array in statement.defines}
    written = {view.array.id for statement in group.statements if isinstance(statement, Put) for view in (statement.target,)}
    used = {view.array.id: view.array for statement in group.statements for view in statement.views if view.array.id not in made}
    known = {constant.array.id for constant in function.constants}
    own = {item.var for top in group.items for item in flow.walk(top) if isinstance(item, flow.Loop)}
    around = vars_in(one for statement in group.statements for one in statement.scalars) - own
    body = substituted(replace(function.body, items=group.items), dict.fromkeys(around, Const(0)))
    params = tuple(ArrayParam(array, id in written, array.name) for id, array in used.items() if id not in known)
    return replace(function, name=name, params=params, results=tuple(map(ArrayView, group.outputs)),
                   body=body)


def _with_entry(start: PlannedFunction, entry: PlanEntry, value: int) -> PlannedFunction:
    entries = tuple(replace(one, value=value) if one.place == entry.place else one for one in start.plan.entries)
    return replace(start, plan=replace(start.plan, entries=entries))


def _with_extent(start: PlannedFunction, extent: int, shorter: int) -> PlannedFunction:
    """Return a function with another extent in place of an extent, wherever an array has it."""
    def given(one: Scalar) -> Scalar:
        return Const(shorter) if one == Const(extent) else one

    def array(one: Array) -> Array:
        return replaced(one, shape=tuple(map(given, one.shape)))

    function = start.function
    params = tuple(replace(param, array=array(param.array)) for param in function.params)
    results = tuple(replaced(view, array=array(view.array)) for view in function.results)
    return replace(start, function=replace(function, params=params, body=with_scalars(function.body, given, shapes_only=True),
                                           results=results))


def _largest(above: int, of: Callable[[int], PlannedFunction], context: TensorContext) -> int | None:
    """Return the largest number whose function fits, a multiple of a `_LENGTHS`th of a power of two; None where none is known to."""
    step = max(1, (1 << above.bit_length()) // _LENGTHS)
    fits, full = 0, -(-above // step)
    try:
        while full - fits > 1:
            middle = (fits + full) // 2
            fits, full = (middle, full) if _fits(of(middle * step), context) else (fits, middle)
    except PtoError:
        return None
    return fits * step or None


def _fits(start: PlannedFunction, context: TensorContext) -> bool:
    try:
        return _search(start, context, must_lower=True)[1] is None
    except PlanFitError:
        return False
