"""Compute the cost of every kernel on the arch, and of every task in terms of its own views and scalars."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from pto_wsp.arch.kernel_cost import kernel_cost, kernel_traffic
from pto_wsp.arch.model import Arch
from pto_wsp.errors import InternalError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.kernel import Kernel
from pto_wsp.ir.plan import Submit, TaskPlan
from pto_wsp.ir.plan_walk import map_submits, submits
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.passes.context import Context
from pto_wsp.passes.kernel.passes import TILE_PASSES, run_kernel_passes
from pto_wsp.passes.ranks import n_links
from pto_wsp.passes.schedule_keys import Keys


def price_tasks(plan: TaskPlan, context: Context) -> TaskPlan:
    """Set the cost of every kernel and task, and the latency of channels.

    A task's cost is that of the schedule's own function where there is one. Where cores share a memory with a bound, the bytes that each
    task moves are set too.

    Raises: S103 for a cost function that names what a task does not have; C115 for an arch that does not say how fast a unit is.
    """
    kernels = tuple(replace(use, cost=_price(use.kernel, context.arch)) for use in plan.kernels)
    channels = tuple(replace(channel, latency=context.arch.channels.latency_cycles) for channel in plan.channels)
    priced = replace(plan, kernels=kernels, channels=channels)
    graph = context.acting.task_graph
    said = None if graph is None or graph.trace is None else graph.trace.key
    keys = Keys(priced)
    bounded = bool(plan.rules.bytes_per_cycle)      # else nobody asks what moves
    traffic = tuple(kernel_traffic(priced_kernel(use.kernel, context.arch)) for use in plan.kernels) if bounded else ()

    def price(task: Submit) -> Submit:
        moved = _of_task(priced, task, traffic[task.kernel]) if traffic else s.Const(0)
        if said is None or (task.on is not None and task.on.crosses):
            return replace(task, cost=_over_link(priced, task, context.arch, _of_task(priced, task, priced.kernels[task.kernel].cost)),
                           traffic=moved)
        own = keys.of(task)
        return replace(task, cost=own.natural(said, "TracePolicy.cycles"), traffic=moved,
                       note=replace(task.note, checks=(*task.note.checks, *own.checks)))

    found = map_submits(priced, price)
    keys.raise_errors()
    return replace(found, symbols=tuple(keys.symbols))


def _over_link(plan: TaskPlan, task: Submit, arch: Arch, local: s.Scalar) -> s.Scalar:
    """Return the cycles of a task: of a copy between ranks those of all its links, of any other `local`."""
    on = task.on
    if on is None or not on.crosses or on.source is None or arch.links is None:
        return local
    place = task.places[-1]
    elements = s.mul(place.extent[0], place.extent[1])
    over = arch.links.cycles(elements, plan.tensors[place.slot].ref.dtype.nbytes)
    return s.select(s.binary(s.Op.EQ, on.source, on.rank), local, s.mul(over, n_links(on, arch.links)))


@lru_cache(maxsize=1024)
def _price(kernel: Kernel, arch: Arch) -> s.Scalar:
    return kernel_cost(priced_kernel(kernel, arch), arch)     # cached: a search over schedules prices the same kernels repeatedly


def priced_kernel(kernel: Kernel, arch: Arch) -> Kernel:
    """Return the kernel whose statements are priced: as traced on a neutral arch, otherwise after its tile passes."""
    return kernel if arch.neutral or not kernel.has_meaning else run_kernel_passes(kernel, passes=TILE_PASSES)


def verify_after_price_tasks(plan: TaskPlan) -> None:
    """No price refers to a kernel's parameters, or to names of a key, any more."""
    for task in submits(plan):
        leaves = (*s.leaves(task.cost), *s.leaves(task.traffic))
        if any(isinstance(leaf, s.ParamExtent | s.ParamScalar | s.ItemRef | s.AxisName | s.BracketIndex) for leaf in leaves):
            raise InternalError("a price was not instantiated", print_scalar(task.cost))


def _of_task(plan: TaskPlan, task: Submit, formula: s.Scalar) -> s.Scalar:
    """Return a kernel's formula for one task: with the extents of its views and the values of its scalars."""
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
    return s.substitute(formula, change)
