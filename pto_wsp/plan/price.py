"""Pass: give every kernel its price on the arch, and every task the same in terms of its own views and scalars."""

from __future__ import annotations

from dataclasses import replace

from pto_wsp.arch.kernel_cost import kernel_cost
from pto_wsp.arch.model import Arch
from pto_wsp.errors import InternalError
from pto_wsp.expr.kernel import Kernel
from pto_wsp.plan.kernel.passes import TILE_PASSES, run_kernel_passes
from pto_wsp.plan.model import Context, Submit, TaskPlan
from pto_wsp.plan.walk import map_submits
from pto_wsp.types import scalar as s


def price_tasks(plan: TaskPlan, context: Context) -> TaskPlan:
    """Set `cost` of every kernel and task and the latency of every channel, in cycles of the arch."""
    kernels = tuple(replace(use, cost=kernel_cost(priced_kernel(use.kernel, context.arch), context.arch)) for use in plan.kernels)
    channels = tuple(replace(channel, latency=context.arch.channels.latency_cycles) for channel in plan.channels)
    priced = replace(plan, kernels=kernels, channels=channels)
    return map_submits(priced, lambda task: replace(task, cost=_instantiate(priced, task)))


def priced_kernel(kernel: Kernel, arch: Arch) -> Kernel:
    """Return the kernel whose statements are priced: as it was traced on a neutral arch, else as its passes leave its tiles."""
    return kernel if arch.neutral or not kernel.has_meaning else run_kernel_passes(kernel, passes=TILE_PASSES)


def verify_after_price_tasks(plan: TaskPlan) -> None:
    """No price refers to a kernel's parameters any more."""
    def check(task: Submit) -> Submit:
        if any(isinstance(leaf, s.ParamExtent | s.ParamScalar) for leaf in s.leaves(task.cost)):
            raise InternalError("a price was not instantiated", s.print_scalar(task.cost))
        return task
    map_submits(plan, check)


def _instantiate(plan: TaskPlan, task: Submit) -> s.Scalar:
    use = plan.kernels[task.kernel]
    places = {param.name: place for param, place in zip(use.kernel.memory_params, task.places, strict=True)}
    values = {param.name: value for param, value in zip(use.kernel.scalar_params, task.scalars, strict=True)}

    def change(node: s.Scalar) -> s.Scalar | None:
        match node:
            case s.ParamExtent(name, dim):
                return places[name].extent[dim]
            case s.ParamScalar(name):
                return values[name].value
            case _:
                return None
    return s.substitute(use.cost, change)
