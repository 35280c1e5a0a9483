"""A run whose pipeline came to a stop, as the user's error, with depths that would have done for what was bound."""

from __future__ import annotations

from collections.abc import Sequence

from pto_wsp.errors import PtoError
from pto_wsp.plan.model import Pipeline, TaskPlan
from pto_wsp.plan.waits.channel_state import Stuck
from pto_wsp.plan.waits.elements import has_waits
from pto_wsp.plan.walk import items_of
from pto_wsp.runtime.bound.binding import Bindings
from pto_wsp.types import scalar as s
from pto_wsp.types.scalar_text import print_scalar
from pto_wsp.verify.deadlock.check import advice
from pto_wsp.verify.deadlock.report import stuck_error
from pto_wsp.verify.deadlock.skeleton import Budget, Leaf, NotKnown, Number, Outcome, Skeletons

_BUDGET = 20_000


def run_stuck_error(plan: TaskPlan, rows: Sequence[Stuck], bindings: Bindings) -> PtoError:
    """Return the error.

    Where the processes read what tasks compute, nothing is said about depths: a run with others would read something else.
    """
    pipeline = _pipeline_of(plan, rows[0].stream)
    if pipeline is None or has_waits(plan):
        return stuck_error(plan, rows)
    skeletons = Skeletons(plan, bound_leaf(plan, bindings), Budget(_BUDGET))
    return stuck_error(plan, rows, *advice(skeletons, pipeline, Outcome(tuple(rows), {})))


def bound_leaf(plan: TaskPlan, bindings: Bindings) -> Leaf:
    """Return what gives symbols, extents and elements as they are bound.

    Raises (when called): NotKnown for variables of the main program.
    """
    slots = {slot.ref.id: k for k, slot in enumerate(plan.tensors)}
    symbols = {symbol.id: bindings.symbols[k] for k, symbol in enumerate(plan.symbols)}

    def leaf(node: s.Scalar) -> Number:
        match node:
            case s.SymbolRef(_, symbol):
                return symbols[symbol]
            case s.DimOf(tensor, dim) if not plan.tensors[slots[tensor.id]].fresh:
                return int(bindings.arrays[slots[tensor.id]].shape[dim])
            case s.Element(tensor, index) if not plan.tensors[slots[tensor.id]].fresh:
                read: Number = bindings.arrays[slots[tensor.id]][tuple(int(s.evaluate(i, leaf)) for i in index)].item()
                return read
            case _:
                raise NotKnown(print_scalar(node))

    return leaf


def _pipeline_of(plan: TaskPlan, stream: int) -> Pipeline | None:
    for item in items_of(plan):
        if isinstance(item, Pipeline):
            for process in item.processes:
                if process.stream <= stream < process.stream + process.replicas:
                    return item
    return None
