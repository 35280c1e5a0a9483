"""Which forms a plan's workload has, and where: what a target must be able to do to run it."""

from __future__ import annotations

from collections.abc import Iterator

from pto_wsp.errors import FormError, PtoError
from pto_wsp.expr.rewrite import nodes
from pto_wsp.plan.model import (
    AwaitEvent,
    Choice,
    Consume,
    Fresh,
    Item,
    Loop,
    Pipeline,
    Receive,
    RecordEvent,
    Send,
    Sequence,
    SetSlot,
    Sides,
    Submit,
    TaskPlan,
)
from pto_wsp.plan.targets.capability import FORMS, form_supports, forming_targets
from pto_wsp.plan.waits.communication import communicates
from pto_wsp.plan.waits.elements import waited_for
from pto_wsp.plan.walk import items_of
from pto_wsp.schedule.support import Capability
from pto_wsp.source import UNKNOWN, Span
from pto_wsp.types import scalar as s


def form_errors(plan: TaskPlan, target: str) -> tuple[PtoError, ...]:
    """Return an error for each form of a plan, where it is met first, that a target refuses."""
    able, first = form_supports(target), dict[str, Span]()
    for form, span in forms_of(plan):
        if first.get(form, UNKNOWN) == UNKNOWN:
            first[form] = span
    return tuple(FormError(f"target {target} does not take a workload with {form}", span, found=FORMS[form], help=_help(form),
                           notes=(able[form].reason,))
                 for form, span in first.items() if able[form].capability is Capability.REFUSED)


def forms_of(plan: TaskPlan) -> Iterator[tuple[str, Span]]:
    """Yield the forms of a plan, by their names in FORMS, with the lines that have them."""
    written = {slot.ref.id for slot in plan.tensors if waited_for(slot)}
    for item in items_of(plan):
        yield from _own_form(item)
        for span, asked in _asked(item):
            for node in nodes(asked):
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
        case SetSlot():
            yield "slot", item.span
        case Fresh():
            yield "fresh", item.span
        case Sides(sides):
            yield "combine", next((inner.span for side in sides for inner in side.items if isinstance(inner, Submit | Loop)), UNKNOWN)
        case Pipeline() | Send() | Receive() | Consume():
            yield "pipeline", item.span
        case Sequence(items):
            yield from (("pipeline.fresh", inner.span) for position, inner in enumerate(items)
                        if isinstance(inner, Fresh) and any(map(communicates, items[position + 1:])))
        case RecordEvent() | AwaitEvent():
            yield "event", item.span
        case _:
            pass


def _asked(item: Item) -> Iterator[tuple[Span, object]]:
    """Yield what an item evaluates itself, with the line that asks for it."""
    match item:
        case Submit():
            yield item.span, (item.index, tuple((place.offset, place.extent, place.stride) for place in item.places), item.scalars)
        case Loop(start=start, stop=stop, step=step, through=through):
            yield item.span, (start, stop, step, () if through is None else through.value)
        case Choice(branches):
            yield from ((branch.span, branch.condition) for branch in branches)
        case SetSlot(value=value):
            yield item.span, value
        case Send(payload=payload):
            yield item.span, payload
        case _:
            pass


_INSTEAD = {"pipeline.fresh": "make it in front of the pipeline, or in a body that waits for nothing; or "}


def _help(form: str) -> str:
    return f"{_INSTEAD.get(form, '')}compile for {' or '.join(forming_targets(form))}, which take it"
