"""Lower a `TaskPlan` to an `NpuPlan`: kernels of one core each, and launches with descriptors.

The lowering runs the kernel passes `NPU_PASSES`, splits each kernel into parts, replaces each task by the launches of its parts, and adds
scopes for the tensors that the runtime allocates.

>>> plan_for_npu(lower(workload), builtin_arch("ascend_910b")).kernels[0].core
<Unit.VECTOR: 'vector'>
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from pto_wsp.arch.model import Arch
from pto_wsp.errors import ArchOptionError, raise_all
from pto_wsp.ir import scalar as s
from pto_wsp.ir.digest import kernel_digest
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.flow import Do, Fresh, Sequence, converted
from pto_wsp.ir.plan import Body, Item, Precondition, ScalarValue, Submit, TaskPlan
from pto_wsp.npu.plan.arguments import add_allocations, with_known_extents
from pto_wsp.npu.plan.descriptors import NpuUse, NpuUses, empty_errors, find_uses, limit_errors
from pto_wsp.npu.plan.model import Descriptor, Intermediate, Launch, NpuBody, NpuItem, NpuKernel, NpuPlan, Passed, Scope
from pto_wsp.npu.plan.parts import Part, SplitKernel
from pto_wsp.npu.plan.passes import NPU_PASSES
from pto_wsp.npu.plan.split_kernel import split_kernel
from pto_wsp.passes.kernel.passes import KernelObserver, any_use
from pto_wsp.passes.pipeline import Runner
from pto_wsp.source import here
from pto_wsp.values import dataclass


def plan_for_npu(plan: TaskPlan, arch: Arch, observe: KernelObserver | None = None, runner: Runner | None = None) -> NpuPlan:
    """Return the plan for the NPU. `observe` receives each pass of each kernel; `runner` runs the passes of kernels and parts.

    Raises: C115 for an arch that is no NPU, N101 for a plan beyond the runtime's limits, N102 for a kernel that cannot be split.
    """
    if not arch.family:
        raise ArchOptionError(f"arch `{arch.name}` is no NPU", here(),
                              expected="an arch with a family of tile instructions, as ascend_910b and ascend_950 have")
    raise_all(empty_errors(plan))
    plan = with_known_extents(plan)
    found = find_uses(plan)
    lowering = _PlanLowering(plan, found, tuple(_split(use, observe, runner or Runner()) for use in found.uses))
    body = lowering.block(plan.body)
    made = NpuPlan(plan.name, plan.tensors, plan.symbols, tuple(lowering.kernels), body, plan.infer, plan.structure,
                   channels=plan.channels, events=tuple(event.name for event in plan.events))
    made = add_allocations(made)
    raise_all(limit_errors(made))
    return made


def run_kernels(plan: TaskPlan, runner: Runner) -> None:
    """Run the passes of all kernels of a plan up to the split, for a runner that stops at one of the passes."""
    for use in find_uses(with_known_extents(plan)).uses:
        runner.run(use.kernel, any_use(use.kernel), NPU_PASSES)


def _split(use: NpuUse, observe: KernelObserver | None, runner: Runner) -> SplitKernel:
    return split_kernel(runner.run(use.kernel, any_use(use.kernel), NPU_PASSES, observe), use, observe, runner)


@dataclass(slots=True)
class _PlanLowering:
    """The walk over a plan, with the kernels collected so far in order of first use."""

    plan: TaskPlan
    found: NpuUses
    split: tuple[SplitKernel, ...]
    kernels: list[NpuKernel] = field(default_factory=list)
    numbers: dict[object, int] = field(default_factory=dict)
    n_intermediates: int = 0

    def block(self, body: Body) -> NpuBody:
        """Return the items of a sequence."""
        return self.rest(body.items)

    def rest(self, items: tuple[Item, ...]) -> NpuBody:
        """Return items in order. Tensors that are made anew lie in one scope, from the first of them to the end."""
        def is_made(item: Item) -> bool:
            return isinstance(item, Fresh) and self.plan.tensors[item.tensor].allocated     # the tensors of a .pto file are not allocated

        made = tuple(item.tensor for item in items if isinstance(item, Fresh) and is_made(item))
        first = next((position for position, item in enumerate(items) if is_made(item)), len(items))
        before, rest = (tuple(self.item(item) for item in part if not is_made(item)) for part in (items[:first], items[first:]))
        return Sequence((*before, Scope(rest, (), made)) if made else before)

    def item(self, item: Item) -> NpuItem:
        """Return the item of the NPU plan for an item of the task plan."""
        return Sequence(()) if isinstance(item, Fresh) else converted(item, self.task, self.block)

    def task(self, task: Submit) -> NpuItem:
        """Return the launch of a task, or the launches of its parts, in a scope if values cross between them."""
        split = self.split[self.found.tasks[task.site].use]
        known = self.known_of(task)
        first = self.n_intermediates
        self.n_intermediates += len(split.crossings)
        inner = tuple(
            Intermediate(first + k, crossing.name, crossing.dtype, (s.substitute(crossing.rows, known.get), s.Const(crossing.cols)))
            for k, crossing in enumerate(split.crossings))
        launches = tuple(Do(self.launch(task, k, part, known, inner)) for k, part in enumerate(split.parts))
        if not inner:
            return launches[0] if len(launches) == 1 else Sequence(launches)
        return Scope(launches, inner)

    def launch(self, task: Submit, number: int, part: Part, known: Mapping[s.Scalar, s.Scalar],
               inner: tuple[Intermediate, ...]) -> Launch:
        """Return the launch of one part. All parts have the task's handle and its `after=`; the first part has its checks."""
        lowered = self.found.tasks[task.site]
        names = [param.name for param in self.found.uses[lowered.use].kernel.memory_params]
        places = dict(zip(names, zip(task.places, lowered.arguments, strict=True), strict=True))
        crossing = {one.name: one.id for one in inner}
        arguments = tuple(
            Passed(crossing[name], param.role) if name in crossing
            else Descriptor(places[name][0].slot, param.role, places[name][1].steps)
            for param, name in zip(part.kernel.memory_params, part.places, strict=True))
        dtypes = {param.name: param.dtype for param in part.kernel.scalar_params}
        scalars = tuple(ScalarValue(known[given], dtypes.get(given.name, DType.I64) if isinstance(given, s.ParamScalar) else DType.I64)
                        for given in part.scalars)
        checks = (*task.note.checks, *lowered.checks) if number == 0 else ()
        return Launch(task.site, number, self.kernel(part), arguments, scalars, task.index, task.labels, task.handle, task.after,
                      Precondition(checks), task.span)

    def known_of(self, task: Submit) -> Mapping[s.Scalar, s.Scalar]:
        """Return the values that the kernel's scalar parameters and extents have in this task."""
        lowered = self.found.tasks[task.site]
        kernel = self.plan.kernels[task.kernel].kernel
        known: dict[s.Scalar, s.Scalar] = {}
        for param, value in zip(kernel.scalar_params, task.scalars, strict=True):
            known[s.ParamScalar(param.name, param.dtype)] = value.value
        for memory, described in zip(kernel.memory_params, lowered.arguments, strict=True):
            for dim, extent in enumerate(described.extents):
                known[s.ParamExtent(memory.name, dim)] = extent
        return known

    def kernel(self, part: Part) -> int:
        """Return the number of a part's kernel, by first use."""
        key = kernel_digest(part.kernel), part.core, part.access
        if key not in self.numbers:
            self.numbers[key] = len(self.kernels)
            self.kernels.append(NpuKernel(part.kernel, part.core, part.access))
        return self.numbers[key]
