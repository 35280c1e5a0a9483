"""`read_ir`: the IR that a text prints, held to the rules of what a trace gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from pto_wsp.errors import DataFormatError, IrTextError, OwnBodyError, PtoError
from pto_wsp.ir import flow
from pto_wsp.ir.codec import check_types
from pto_wsp.ir.kernel import Kernel
from pto_wsp.ir.plan import ElementRead, Item, Place, Submit, TaskPlan
from pto_wsp.ir.plan_tags import PLAN_TAGS
from pto_wsp.ir.rewrite import nodes
from pto_wsp.ir.workload import Workload
from pto_wsp.source import Span
from pto_wsp.trace.kernel_data import RefusedKernelError, check_as_traced, refuse
from pto_wsp.trace.text.kernel import read_kernel
from pto_wsp.trace.text.lexer import Reader
from pto_wsp.trace.text.nodes import read_level
from pto_wsp.trace.workload_data import check_workload

_KINDS: dict[str, type[Workload] | type[TaskPlan] | None] = {"kernel": None, "workload": Workload, "plan": TaskPlan}


def read_ir(text: str, *, bodies: bool) -> Kernel | Workload | TaskPlan:
    """Return the IR that `text` prints. `bodies`: kernels may have bodies in C and C++.

    Raises: W116 for text that is no IR, or says what no trace gives; K107 for a body that is not allowed.
    """
    reader = Reader(text)
    start = reader.next
    try:
        if not start.text or start.text not in _KINDS:
            reader.fail("no IR begins like this" if start.text else "the text is empty", expected=f"one of {', '.join(_KINDS)}",
                        known=_KINDS)
        kind = _KINDS[start.text]
        made, kernels = read_level(reader, kind) if kind else ((kernel := read_kernel(reader)[1]), (kernel,))
        if reader.next.kind != "end":
            reader.fail(f"the {start.text} has ended, and the text goes on", expected="the end of the text")
        for kernel in kernels:
            _check_kernel(kernel, bodies=bodies)
        _check_level(reader, made, bodies=bodies)
        return made
    except RecursionError:
        raise IrTextError("this text is nested too deep", reader.span(start), expected="what str() of an IR writes") from None


def _check_kernel(kernel: Kernel, *, bodies: bool) -> None:
    """Raise W116, at the statement, for a kernel that no trace gives.

    Raises: K107 for a body that is not allowed.
    """
    try:
        check_as_traced(kernel, bodies=bodies, door="parse")
    except RefusedKernelError as refused:
        _refuse(f"kernel `{kernel.name}`", refused.problem, refused.span)


def _check_level(reader: Reader, made: Kernel | Workload | TaskPlan, *, bodies: bool) -> None:
    """Raise W116 for a workload or plan that is none.

    Raises: K107 for a body that is not allowed.
    """
    try:
        match made:
            case Workload():
                check_types(made)
                check_workload(made, bodies=bodies)
            case TaskPlan():
                check_types(made, PLAN_TAGS)
                check_plan(made)
            case Kernel():
                pass
    except OwnBodyError:
        raise
    except PtoError as problem:
        _refuse(f"this {'workload' if isinstance(made, Workload) else 'plan'}", problem, Span(reader.file, 1))


def _refuse(what: str, problem: PtoError, span: Span) -> NoReturn:
    if isinstance(problem, DataFormatError):
        raise IrTextError(f"{what}: no trace gives this", span, expected=problem.expected, found=problem.found,
                          notes=problem.notes) from None
    raise IrTextError(f"{what}: {problem.message}", span, expected=problem.expected, found=problem.found, help=problem.help,
                      notes=(f"of a trace, this is {problem.code}",)) from None


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
