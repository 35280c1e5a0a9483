"""Check a plan read as data: the numbers of tensors, kernels, channels and events that it names are of its own tables."""

from __future__ import annotations

from collections.abc import Sequence

from pto_wsp.ir import flow
from pto_wsp.ir.plan import ElementRead, Item, Place, Submit, TaskPlan
from pto_wsp.ir.rewrite import nodes
from pto_wsp.trace.kernel_data import refuse


def check_plan(plan: TaskPlan) -> None:
    """Raise W113 for a plan whose numbers are of no table, or whose tasks do not have the arguments of their kernel.

    Types of fields, and kernels, are checked apart: `codec.check_types`, `check_kernel`.
    """
    for use in plan.kernels:
        if len(use.unit_inner) != len(use.kernel.memory_params):
            refuse(f"a use of kernel `{use.kernel.name}` with {len(use.unit_inner)} memory parameters")
    for node in nodes(plan.body):
        match node:
            case Place(slot=slot) | ElementRead(slot=slot):
                _among("tensor", slot, plan.tensors)
            case Submit():
                _task(plan, node)
            case flow.Process():
                for channel in (*node.consumes, *node.produces):
                    _among("channel", channel, plan.channels)
            case flow.Pipeline():
                for channel in node.channels:
                    _among("channel", channel, plan.channels)
                for event in node.events:
                    _among("event", event, plan.events)
            case flow.Fresh() | flow.Send() | flow.Receive() | flow.Consume() | flow.RecordEvent() | flow.AwaitEvent():
                _statement(plan, node)


def _task(plan: TaskPlan, task: Submit) -> None:
    _among("kernel", task.kernel, plan.kernels)
    kernel = plan.kernels[task.kernel].kernel
    if len(task.places) != len(kernel.memory_params) or len(task.scalars) != len(kernel.scalar_params):
        refuse(f"a task of kernel `{kernel.name}` with {len(task.places)} places and {len(task.scalars)} scalars",
               expected=f"{len(kernel.memory_params)} and {len(kernel.scalar_params)}")
    if not 0 <= task.site < plan.n_sites:
        refuse(f"a task at site {task.site}", expected=f"0 .. {plan.n_sites - 1}")


def _statement(plan: TaskPlan, item: Item) -> None:
    match item:
        case flow.Fresh(tensor):
            _among("tensor", tensor, plan.tensors)
        case flow.Send(channel) | flow.Receive(channel) | flow.Consume(channel):
            _among("channel", channel, plan.channels)
        case flow.RecordEvent(event) | flow.AwaitEvent(event):
            _among("event", event, plan.events)
        case _:
            pass


def _among(what: str, number: int, table: Sequence[object]) -> None:
    if not 0 <= number < len(table):
        refuse(f"{what} {number}", expected=f"one of the plan's {len(table)}")
