"""Check what a target must support to run a plan: the forms of the workload, and a body for each kernel.

A form is a construct such as `choice`, `pipeline` or `walk.sparse`; FORMS names all of them. The module also refuses contracts on tensors
that tasks write, because no bound array shows whether such a contract is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from pto_wsp.errors import FormError, MissingBodyError, PtoError, WrittenContractError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.flow import (
    AwaitEvent,
    Choice,
    Consume,
    Do,
    Fresh,
    Loop,
    Pipeline,
    Receive,
    RecordEvent,
    Send,
    Sequence,
    Sides,
    assignments,
    communicates,
    evaluations,
    walk,
)
from pto_wsp.ir.kernel import Kernel
from pto_wsp.ir.plan import Item, TaskPlan
from pto_wsp.ir.plan_walk import submits
from pto_wsp.ir.rewrite import nodes
from pto_wsp.ir.waits import waited_for
from pto_wsp.schedule.capability import FORMS, form_supports, forming_targets
from pto_wsp.schedule.support import Capability
from pto_wsp.source import UNKNOWN, Span, argument_span


def form_errors(plan: TaskPlan, target: str) -> tuple[PtoError, ...]:
    """Return an error for each form of a plan that a target refuses, at the form's first line."""
    able, first = form_supports(target), dict[str, Span]()
    for form, span in forms_of(plan):
        if first.get(form, UNKNOWN) == UNKNOWN:
            first[form] = span
    return tuple(_refusal(form, span, target, able[form].reason) for form, span in first.items()
                 if able[form].capability is Capability.REFUSED)


def _refusal(form: str, span: Span, target: str, reason: str) -> FormError:
    error = FormError(f"target {target} does not take a workload with {form}", span, found=FORMS[form], help=_help(form), notes=(reason,))
    error.form = form
    return error


def forms_of(plan: TaskPlan) -> Iterator[tuple[str, Span]]:
    """Yield the forms of a plan, by their names in FORMS, each with its line."""
    written = {slot.ref.id for slot in plan.tensors if waited_for(slot)}
    for item in walk(plan.body):
        yield from _own_form(item)
        for span, node_tree in _evaluations(item):
            for node in nodes(node_tree):
                match node:
                    case s.Element(tensor):
                        yield "read.computed" if tensor.id in written else "read.given", span
                    case s.SlotValue():
                        yield "slot", span
                    case _:
                        pass


def _own_form(item: Item) -> Iterator[tuple[str, Span]]:
    match item:
        case Choice(branches):
            yield "choice", branches[0].span if branches else UNKNOWN
        case Loop(through=through, start=start, stop=stop):
            if through is not None:
                yield "walk.sparse", item.span
            elif any(isinstance(leaf, s.Element) for bound in (start, stop) for leaf in s.leaves(bound)):
                yield "walk.ragged", item.span
        case Fresh(sizes=sizes):
            yield "fresh.sized" if sizes else "fresh", item.span
        case Sides(sides):
            yield "combine", next((inner.leaf.span if isinstance(inner, Do) else inner.span
                                   for side in sides for inner in side.items if isinstance(inner, Do | Loop)), UNKNOWN)
        case Pipeline() | Send() | Receive() | Consume():
            yield "pipeline", item.span
        case Sequence(items):
            yield from (("pipeline.fresh", inner.span) for position, inner in enumerate(items)
                        if isinstance(inner, Fresh) and any(map(communicates, items[position + 1:])))
        case RecordEvent() | AwaitEvent():
            yield "event", item.span
        case _ if assignments(item):
            yield "slot", evaluations(item)[0].span
        case _:
            pass


def _evaluations(item: Item) -> Iterator[tuple[Span, object]]:
    """Yield the expressions that an item itself evaluates, with the line of each."""
    match item:
        case Do(task):
            yield task.span, (task.index, tuple((place.offset, place.extent, place.stride) for place in task.places), task.scalars)
        case _:
            yield from ((each.span, each.scalars) for each in evaluations(item))


_INSTEAD = {"fresh.sized": "say how large it may get, Tensor.empty((minimum(64, n), 8), F32); or ",
            "pipeline.fresh": "make it in front of the pipeline, or in a body that waits for nothing; or "}


def _help(form: str) -> str:
    return f"{_INSTEAD.get(form, '')}compile for {' or '.join(forming_targets(form))}, which take it"


# Of the targets that run bodies of the user's own: how they are given, and which one a kernel has.
_OWN_FORMS: Mapping[str, tuple[str, Callable[[Kernel], object]]] = {
    "cpu_sim": ("c_src or c_path", lambda kernel: kernel.c_body),
    "ascend_npu": ("cpp_src, cpp_body_path or cpp_tu_path", lambda kernel: kernel.cpp_body),
}


def missing_bodies(kernels: Iterable[Kernel], target: str) -> tuple[MissingBodyError, ...]:
    """Return an error for each kernel without a body for the target.

    Every target runs Python bodies, `cpu_sim` also runs C, and `ascend_npu` also C++.
    """
    forms, body_of = _OWN_FORMS.get(target, ("", lambda kernel: None))
    return tuple(
        MissingBodyError(
            f"kernel `{kernel.name}` has no body for target {target}", kernel.span,
            expected=f"a Python body, {forms}" if forms else "a Python body",
            found=f"a Python body that does nothing, and bodies of its own: {', '.join(own.form.value for own in kernel.bodies)}",
            help="write the Python body, which every target can run" + (f", or @kernel({forms.split()[0].rstrip(',')}=...) for this one"
                                                                        if forms else ""))
        for kernel in dict.fromkeys(kernels) if not kernel.has_meaning and body_of(kernel) is None)


def contract_errors(plan: TaskPlan) -> tuple[WrittenContractError, ...]:
    """Return an error for each tensor with a user's contract that a task writes; contracts of axes are exempt."""
    of_axes = {slot for axis in plan.axes for slot in axis.slots}
    errors: dict[int, WrittenContractError] = {}
    for task in submits(plan):
        for param, place in zip(plan.kernels[task.kernel].kernel.memory_params, task.places, strict=True):
            ref = plan.tensors[place.slot].ref
            if place.role.writes and ref.contracts and place.slot not in of_axes and place.slot not in errors:
                names = " and ".join(contract.value.capitalize() for contract in ref.contracts)
                errors[place.slot] = WrittenContractError(
                    f"`{ref.shown}` is declared {names}, and a task writes it", argument_span(task.span, param.name),
                    help="a contract is checked when an array is bound, before any task runs: declare it on what tasks only read")
    return tuple(errors.values())
