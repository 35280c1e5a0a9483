"""Races by enumeration: run the interpreter's stream of tasks, order it by the edges of structure, and compare element by element."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from pto_wsp.api.workload import Workload
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.passes.lower import lower
from pto_wsp.run.bound import bind
from pto_wsp.run.interpreter import stream_of
from pto_wsp.run.orchestrator import MarkInstance, PlacedView, TaskInstance
from pto_wsp.run.record import MarkFlag


def plan_of(made: Workload) -> TaskPlan:
    """Lower a workload; its plan orders by structure and by after=."""
    return lower(made.node)


def arrays_of(made: Workload) -> dict[int, np.ndarray]:
    """Return what the tensors of a workload hold, by their ids in its plan."""
    return {number: tensor.data for number, tensor in enumerate(made.tensors)}  # type: ignore[misc]


def races_of(made: Workload, plan: TaskPlan, arrays: Mapping[str, np.ndarray] | None = None, symbols: Mapping[str, int] | None = None,
             ) -> set[str]:
    """Return the names of tensors that some two unordered tasks share an element of, one writing.

    A plan without structure has no edges of program order; then a process stands where a mark blocks it.
    """
    given, values = dict(arrays or {}), dict(symbols or {})
    named = {tensor.ref.name: tensor.data for tensor in made.tensors}
    bound = bind(plan, [given.get(slot.ref.name, named.get(slot.ref.name)) for slot in plan.tensors],
                 [values.get(symbol.name, symbol.default) for symbol in plan.symbols])
    nodes = stream_of(plan, bound)
    before = np.zeros((len(nodes), len(nodes)), bool)       # before[i, j]: i is ordered before j
    blocked: dict[int, int] = {}
    for j, node in enumerate(nodes):
        stands = blocked.get(node.stream) if isinstance(node, TaskInstance | MarkInstance) and not plan.structure else None
        if isinstance(node, MarkInstance) and MarkFlag.BLOCKS in node.flags:
            blocked[node.stream] = j
        for i in (*_before(node), *(() if stands is None else (stands,))):
            before[i, j] = True
            before[:, j] |= before[:, i]
    tasks = [(k, node) for k, node in enumerate(nodes) if isinstance(node, TaskInstance)]
    touched = [(k, list(_touched(plan, node))) for k, node in tasks]
    found: set[str] = set()
    for at, (j, ours) in enumerate(touched):
        for i, theirs in touched[:at]:
            if not before[i, j]:
                found |= {plan.tensors[a].ref.name for a, writes, here in ours for b, also, there in theirs
                          if a == b and (writes or also) and here & there}
    return found


def _before(node: object) -> tuple[int, ...]:
    """Return the nodes that structure, after=, tokens, credits and events put before a node."""
    match node:
        case TaskInstance():
            return (*node.order, *node.after)
        case MarkInstance():
            return (*node.before, *node.order)
        case tuple():
            return node
        case _:
            return ()


def _touched(plan: TaskPlan, task: TaskInstance) -> Iterator[tuple[int, bool, set[int]]]:
    for view, param in zip(task.views, plan.kernels[task.submit.kernel].kernel.memory_params, strict=True):
        yield view.slot, param.role.writes, elements_of(view)


def elements_of(view: PlacedView) -> set[int]:
    """Return the offsets of a view's elements."""
    rows, cols = (np.arange(extent) * stride for extent, stride in zip(view.extent, view.stride, strict=True))
    return set((view.offset + rows[:, None] + cols[None, :]).ravel().tolist())
