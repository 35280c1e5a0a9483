"""Pass: say which outputs need not stay in the caches: those larger than they are, that no task reads back.

A store past the caches writes whole lines without reading them first: a third less traffic for one output of two inputs. What
fits is left alone, because whoever reads it next finds it there.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from pto_wsp.errors import InternalError
from pto_wsp.plan.model import Context, TaskPlan, TensorSlot
from pto_wsp.plan.walk import submits


def stream_outputs(plan: TaskPlan, context: Context) -> TaskPlan:
    """Set `streamed` of every kernel: parameters that are such an output in every task."""
    if context.cache_bytes is None:
        return plan
    large = [_passes_through(slot, context.cache_bytes) for slot in plan.tensors]
    kept: list[set[str]] = [set() for _ in plan.kernels]
    for task in submits(plan):
        params = plan.kernels[task.kernel].kernel.memory_params
        kept[task.kernel] |= {param.name for param, place in zip(params, task.places, strict=True) if not large[place.slot]}
    kernels = tuple(replace(use, streamed=tuple(p.name for p in use.kernel.memory_params if p.name not in kept[at]))
                    for at, use in enumerate(plan.kernels))
    return replace(plan, kernels=kernels)


def verify_after_stream_outputs(plan: TaskPlan) -> None:
    """What is streamed is only written."""
    for use in plan.kernels:
        if any(param.role.reads for param in use.kernel.memory_params if param.name in use.streamed):
            raise InternalError("an output that is read goes past the caches", ", ".join(use.streamed))


def _passes_through(slot: TensorSlot, cache_bytes: int) -> bool:
    return slot.writes and not slot.reads and prod(slot.ref.shape) * slot.ref.dtype.nbytes > cache_bytes
