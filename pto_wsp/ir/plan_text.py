"""Convert whole plans to JSON and to text, kernels included.

JSON is what a saved program carries, so that it runs without its source. A round trip returns an equal plan; spans keep basename and line,
so the digest is equal too. The text is the content of ir/NN_before_<pass>.wsp and NN_after_<pass>.wsp.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic

from pto_wsp.errors import DataFormatError, InternalError
from pto_wsp.ir.codec import Data, NodeCodec, check_types
from pto_wsp.ir.execution_rules import print_rules
from pto_wsp.ir.flow import AwaitEvent, Choice, Consume, Do, Flow, Fresh, Leaf, Loop, Pipeline, Receive, RecordEvent, Send, SetSlot, Sides
from pto_wsp.ir.flow import Sequence as FlowSequence
from pto_wsp.ir.plan import Check, Place, Precondition, Submit, TaskPlan
from pto_wsp.ir.plan_tags import PLAN_TAGS
from pto_wsp.ir.scalar import Const, print_scalar
from pto_wsp.ir.waits import Reads
from pto_wsp.source import here

_CODEC = NodeCodec(PLAN_TAGS, key="node", spans=True)     # plans have fields called kind


def plan_to_data(plan: TaskPlan) -> Data:
    """Return a plan as plain JSON data."""
    return _CODEC.to_data(plan)


def plan_from_data(data: Data) -> TaskPlan:
    """Return the plan that `plan_to_data` wrote.

    Raises: W113 for data that is none of ours.
    """
    plan = _CODEC.from_data(data)
    if not isinstance(plan, TaskPlan):
        raise DataFormatError("this JSON is not a plan", here(), found=f"{type(plan).__name__}")
    check_types(plan, PLAN_TAGS)
    return plan


def print_plan(plan: TaskPlan) -> str:
    """Return the plan as text, one statement per line."""
    rules = plan.rules
    lines = [f"plan {plan.name}: {', '.join(print_rules(rules))}, edges from "
             + " and ".join(kind for kind, on in (("regions", plan.infer), ("structure", plan.structure)) if on)]
    for k, slot in enumerate(plan.tensors):
        access = [name for name, on in (("read", slot.reads), ("written", slot.writes), ("scalars", slot.scalars), ("fresh", slot.fresh))
                  if on]
        lines.append(f"tensor {k} {slot.ref.shown}: {slot.ref.dtype} {list(slot.ref.shape)} {', '.join(access)}")
    lines.extend(f"symbol {k} {symbol.name}: {symbol.dtype}" for k, symbol in enumerate(plan.symbols))
    for k, use in enumerate(plan.kernels):
        streamed = f", streams {' and '.join(use.streamed)}" if use.streamed else ""
        ragged = f", rows of {' and '.join(use.ragged)} may be fewer" if use.ragged else ""
        lines.append(f"kernel {k} {use.kernel.name}: cost {print_scalar(use.cost)}{streamed}{ragged}")
    lines.extend(_PlanLines(plan).item(plan.body, 0))
    return "\n".join(lines) + "\n"


class FlowLines(Generic[Leaf]):
    """Prints the control tree of a plan, of tasks (`Leaf`: Submit) or of device launches: one statement per line, bodies by two columns.

    Subclasses say how a level writes its leaves, what stands before a statement, and the names in its tables.
    """

    def __init__(self, channels: Sequence[str], events: Sequence[str], *, streams: bool) -> None:
        self.channels, self.events, self.streams = channels, events, streams

    def leaf(self, leaf: Leaf, pad: str) -> Iterator[str]:
        """Yield the lines of a leaf."""
        raise InternalError("a subclass says this")

    def before(self, note: Precondition, pad: str) -> Iterator[str]:
        """Yield the checks and waits before the scalars of a statement."""
        raise InternalError("a subclass says this")

    def fresh(self, item: Fresh[Precondition, int], pad: str) -> Iterator[str]:
        """Yield the lines of a tensor that is made anew."""
        raise InternalError("a subclass says this")

    def item(self, item: Flow[Leaf, Precondition, int, int, int], depth: int) -> Iterator[str]:
        """Yield the lines of an item."""
        pad = "  " * depth
        match item:
            case Do(leaf):
                yield from self.leaf(leaf, pad)
            case FlowSequence(items):
                for inner in items:
                    yield from self.item(inner, depth)
            case Sides(sides):
                for number, side in enumerate(sides):
                    yield f"{pad}side {number}:"
                    yield from self.item(side, depth + 1)
            case Loop():
                yield from self.before(item.note, pad)
                bounds = ", ".join(print_scalar(bound) for bound in (item.start, item.stop, item.step))
                yield f"{pad}for {item.var.name} in range({bounds}){' in order' if item.ordered else ''}:"
                if item.through is not None:
                    yield from self.before(item.through.note, f"{pad}  ")
                    yield f"{pad}  {item.through.var.name} = {print_scalar(item.through.value)}"
                yield from self.item(item.body, depth + 1)
            case Choice(branches, otherwise):
                for number, branch in enumerate(branches):
                    yield from self.before(branch.note, pad)
                    yield f"{pad}{'elif' if number else 'if'} {print_scalar(branch.condition)}:"
                    yield from self.item(branch.body, depth + 1)
                if otherwise.items:
                    yield f"{pad}else:"
                    yield from self.item(otherwise, depth + 1)
            case SetSlot(slot, value):
                yield from self.before(item.note, pad)
                yield f"{pad}slot[{slot}] = {print_scalar(value)}"
            case Fresh():
                yield from self.fresh(item, pad)
            case Pipeline(processes):
                for process in processes:
                    stream = f" in stream {process.stream}" if self.streams else ""
                    yield f"{pad}process {process.name}{f' × {process.replicas}' if process.replicas > 1 else ''}{stream}:"
                    yield from self.item(process.body, depth + 1)
            case Send(channel, payload, after=after):
                yield from self.before(item.note, pad)
                waits = f" after {list(after)}" if self.streams else ""
                yield f"{pad}send {self.channels[channel]} ({', '.join(map(print_scalar, payload))}){waits}"
            case Receive(channel, variables):
                yield f"{pad}receive {self.channels[channel]} as ({', '.join(var.name for var in variables)})"
            case Consume(channel, variables, body):
                yield f"{pad}consume {self.channels[channel]} as ({', '.join(var.name for var in variables)}):"
                yield from self.item(body, depth + 1)
            case RecordEvent(event):
                yield f"{pad}record {self.events[event]}"
            case AwaitEvent(event):
                yield f"{pad}synchronize {self.events[event]}"


class _PlanLines(FlowLines[Submit]):
    """Prints the tasks of a plan."""

    def __init__(self, plan: TaskPlan) -> None:
        super().__init__([channel.name for channel in plan.channels], [event.name for event in plan.events], streams=True)
        self.plan = plan

    def leaf(self, task: Submit, pad: str) -> Iterator[str]:
        """Yield the lines of a task."""
        yield from self.before(task.note, pad)
        plan = self.plan
        use = plan.kernels[task.kernel]
        args = [f"{param.name}={_place(plan, place)}" for param, place in zip(use.kernel.memory_params, task.places, strict=True)]
        args += [f"{param.name}={print_scalar(value.value)}"
                 for param, value in zip(use.kernel.scalar_params, task.scalars, strict=True)]
        waits = f" after {list(task.after)}" if task.after else ""
        more = "".join(f", {what} {print_scalar(value)}" for what, value in (
            ("lane", task.lane), ("pool", task.pool), ("priority", task.priority), ("position", task.position),
            ("bytes", task.traffic)) if value != Const(0))
        yield (f"{pad}task {use.kernel.name}[{', '.join(print_scalar(i) for i in task.index)}]({', '.join(args)}) on "
               f"{print_scalar(task.worker)} for {print_scalar(task.cost)}{more}{waits}")

    def before(self, note: Precondition, pad: str) -> Iterator[str]:
        """Yield the checks and waits before the scalars of a statement."""
        for step in Reads.of(self.plan).preparation(note):
            if isinstance(step, Check):
                yield f"{pad}{print_check(step)}"
            else:
                yield f"{pad}wait for {', '.join(f'{self.plan.tensors[r.slot].ref.shown}@{print_scalar(r.offset)}' for r in step)}"

    def fresh(self, item: Fresh[Precondition, int], pad: str) -> Iterator[str]:
        """Yield the lines of a tensor that is made anew."""
        yield from self.before(item.note, pad)
        shape = f" [{', '.join(map(print_scalar, item.sizes))}]" if item.sizes else ""
        yield f"{pad}make {self.plan.tensors[item.tensor].ref.shown}{shape}"


def _place(plan: TaskPlan, place: Place) -> str:
    rows, cols = (print_scalar(n) for n in place.extent)
    down, across = (print_scalar(n) for n in place.stride)
    return f"{plan.tensors[place.slot].ref.shown}@{print_scalar(place.offset)}[{rows}:{down}, {cols}:{across}]"


def print_check(check: Check) -> str:
    """Return the text of a check."""
    return f"check {print_scalar(check.lower)} <= {print_scalar(check.value)} <= {print_scalar(check.upper)}"
