"""Which kernels a plan runs on the NPU: one for each kernel and way of finding its parameters in memory.

Tasks that differ only in how many rows or columns they are given share a kernel, which reads those from its descriptors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from pto_wsp.expr.kernel import Kernel, MemoryParam, TileParam
from pto_wsp.expr.kernel_digest import kernel_digest
from pto_wsp.expr.tile_program import ParamAccess
from pto_wsp.plan.model import Check, Submit, TaskPlan
from pto_wsp.plan.npu.split.checks import extent_checks
from pto_wsp.plan.npu.split.descriptors import Described, describe, known_window, merged_access
from pto_wsp.plan.walk import submits
from pto_wsp.types import scalar as s
from pto_wsp.types.view import declared
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class NpuUse:
    """A kernel, and how it finds its memory parameters. `shared`: pairs of parameters that some task binds to one tensor."""

    kernel: Kernel
    access: tuple[ParamAccess, ...]
    shared: frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class NpuTask:
    """A task site: its use, its arguments as descriptors, and what must hold for extents that its kernel takes for numbers."""

    use: int
    arguments: tuple[Described, ...]
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class NpuUses:
    """The uses in order of the first task, and the tasks by site."""

    uses: tuple[NpuUse, ...]
    tasks: Mapping[int, NpuTask]


def find_uses(plan: TaskPlan) -> NpuUses:
    """Return the kernels that a plan runs on the NPU, and its tasks with their descriptors.

    Raises: N101 for views that have no descriptor.
    """
    numbers: dict[object, int] = {}
    members: list[list[tuple[Submit, tuple[Described, ...]]]] = []
    for task in submits(plan):
        arguments = tuple(describe(place.view, task.span, allocated=plan.tensors[place.slot].allocated) for place in task.places)
        kernel = plan.kernels[task.kernel].kernel
        fits = tuple(_known(param, found) for param, found in zip(kernel.memory_params, arguments, strict=True))
        arguments = tuple(replace(found, access=access) for found, access in zip(arguments, fits, strict=True))
        key = kernel_digest(kernel), tuple(replace(access, rows=None, cols=None) for access in fits)
        if key not in numbers:
            numbers[key] = len(members)
            members.append([])
        members[numbers[key]].append((task, arguments))
    uses = tuple(_use(plan.kernels[group[0][0].kernel].kernel, group) for group in members)
    tasks = {task.site: NpuTask(number, tuple(known_window(found, access) for found, access in zip(arguments, uses[number].access,
                                                                                                   strict=True)),
                                extent_checks(task, uses[number].kernel, arguments, uses[number].access))
             for number, group in enumerate(members) for task, arguments in group}
    return NpuUses(uses, tasks)


def _known(param: MemoryParam, found: Described) -> ParamAccess:
    """Return the access with the extents that a kernel may count on: those of the tile, or of a region its columns and a fixed number
    of rows. A region may have more rows, or fewer, when another array is bound."""
    access = found.access
    if isinstance(param, TileParam):
        rows, cols = param.type.shape
        return replace(access, rows=rows if access.rows == rows else None, cols=cols if access.cols == cols else None)
    return access if isinstance(found.extents[0], s.Const) else replace(access, rows=None)


def _use(kernel: Kernel, group: Sequence[tuple[Submit, tuple[Described, ...]]]) -> NpuUse:
    names = [param.name for param in kernel.memory_params]
    access = tuple(merged_access([arguments[k].access for _, arguments in group]) for k in range(len(names)))
    shared = {(one, other) for task, _ in group
              for one, first in zip(names, task.places, strict=True)
              for other, second in zip(names, task.places, strict=True) if one != other and first.slot == second.slot}
    rows, cols = (_comparable([tuple(arguments[k].extents[dim] for _, arguments in group) for k in range(len(names))],
                              [param.role.writes for param in kernel.memory_params]) for dim in (0, 1))
    grouped = tuple(replace(one, row_group=None if one.rows is not None else _group(rows, k),
                            col_group=None if one.cols is not None else _group(cols, k), memory=memory)
                    for k, (one, memory) in enumerate(zip(access, _memories(kernel, shared), strict=True)))
    return NpuUse(kernel, grouped, frozenset(shared))


def _memories(kernel: Kernel, shared: Set[tuple[str, str]]) -> list[int | None]:
    """Return for each memory parameter a number that those have in common which may meet, None for one that nothing else writes."""
    found = {param.name: k for k, param in enumerate(kernel.memory_params)}
    writes = {param.name for param in kernel.memory_params if param.role.writes}
    meeting = [(one, other) for one, other in sorted(shared) if one in writes or other in writes]
    for one, other in meeting:
        first, then = sorted((found[one], found[other]))
        found = {name: first if number == then else number for name, number in found.items()}
    met = {name for pair in meeting for name in pair}
    return [found[param.name] if param.name in met else None for param in kernel.memory_params]


def _comparable(extents: Sequence[tuple[s.Scalar, ...]], written: Sequence[bool]) -> list[tuple[s.Scalar, ...]]:
    """Return the extents as they are, or as declared where they are as declared for an output: those stay alike, by a check."""
    told = [tuple(declared(extent) for extent in one) for one in extents]
    outputs = {one for one, is_output in zip(told, written, strict=True) if is_output}
    return [short if short in outputs else one for one, short in zip(extents, told, strict=True)]


def _group(extents: Sequence[tuple[s.Scalar, ...]], k: int) -> int | None:
    """Return the first parameter of those with equal extents in every task; None where there is no other."""
    return extents.index(extents[k]) if extents.count(extents[k]) > 1 else None
