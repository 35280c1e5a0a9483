"""Print the type of a workload: its axes, its tasks, and its kind.

>>> type_of(workload)
'Workload[batch: Dense[4] × heads: Dense[8] → attn(Q: In, K: In, O: Out), Independent]'
"""

from __future__ import annotations

from dataclasses import replace

from pto_wsp.ir import flow
from pto_wsp.ir import workload as wl
from pto_wsp.ir.kernel import Param, ScalarParamDecl, TileParam
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.text import WIDTH, Listed, Text, TextPart, TextRow, listed, wrap_text


def type_of(workload: wl.Workload, width: int = WIDTH) -> str:
    """Return the workload's type: one line if it fits in `width` columns, otherwise one statement per line.

    Nested axes are joined by ×, their body follows →; statements in order are separated by `;`, sides by `|`, processes by `∥`. A channel
    shows its depth: `tiles[2]`. Statements that make no task (slots, fresh tensors) are left out.
    """
    match _shown(workload.body):
        case (flow.Sides() | flow.Pipeline() as whole,):
            parts = _parted(whole).parts
        case items:
            parts = listed("", tuple(map(_item, items)) or ("nothing",), ";", "").parts
    shown = (*parts[:-1], TextPart(parts[-1].text, ","), TextPart(kind_of(workload)))
    return wrap_text(Listed("Workload[", shown, "]"), width)


def kind_of(workload: wl.Workload) -> str:
    """Return the relation between the outermost parts of the workload.

    Several statements are Sequential. A single statement determines the kind: P.when is Conditional, `|` Combined, P.pipe Pipeline, an
    ordered loop Sequential, a loop over a sparse row Selected. A plain loop with one statement has that statement's kind, because the
    loop's own iterations are free; with several statements, or a task, it is Independent, like a single task and an empty workload.
    """
    items = _shown(workload.body)
    return "Sequential" if len(items) > 1 else _kind(items[0]) if items else "Independent"


def _kind(item: wl.Item) -> str:
    match item:
        case flow.Sides():
            return "Combined"
        case flow.Choice():
            return "Conditional"
        case flow.Pipeline():
            return "Pipeline"
        case flow.Loop(ordered=True):
            return "Sequential"
        case flow.Loop(through=through, body=body):
            if through is not None:
                return "Selected"
            inner = _shown(body)
            return _kind(inner[0]) if len(inner) == 1 else "Independent"
        case _:
            return "Independent"


def _shown(body: wl.Body) -> tuple[wl.Item, ...]:
    """Return the statements of a body that its type shows, with nested blocks flattened."""
    return tuple(inner for item in body.items if not _is_silent(item)
                 for inner in (_shown(item) if isinstance(item, flow.Sequence) else (item,)))


def _is_silent(item: wl.Item) -> bool:
    """Tell whether an item makes no task and has no part that does."""
    return isinstance(item, flow.Silent) or (isinstance(item, flow.Do) and isinstance(item.leaf, wl.Fixed))


def _body(body: wl.Body) -> Text:
    """Return a body as one text, in braces if it has several statements."""
    items = _shown(body)
    if not items:
        return "nothing"
    return _item(items[0]) if len(items) == 1 else listed("{", tuple(map(_item, items)), ";", "}")


def _item(item: wl.Item) -> Text:
    match item:
        case flow.Do(leaf):
            if isinstance(leaf, wl.Fixed):
                return "nothing"
            kernel = leaf.kernel
            return listed(f"{kernel.name}(", tuple(_param(param) for param in kernel.params), ",", ")")
        case flow.Loop(body=body):
            axis = item.note.axis
            label = f"{axis.name}: {axis.label}" if axis.name else axis.label
            inner = _shown(body)
            if len(inner) == 1 and isinstance(inner[0], flow.Loop):
                return TextRow((f"{label} × ", _item(inner[0])))
            return TextRow((f"{label} → ", _body(body)))
        case flow.Choice(branches, otherwise):
            words = ("when", *("elif_",) * (len(branches) - 1))
            parts: tuple[Text, ...] = tuple(TextRow((f"{word} {print_scalar(branch.condition)} → ", _body(branch.body)))
                                            for word, branch in zip(words, branches, strict=True))
            if otherwise.items:
                parts = (*parts, TextRow(("otherwise → ", _body(otherwise))))
            return listed("{", parts, ",", "}")
        case flow.Sides() | flow.Pipeline():
            return replace(_parted(item), head="{", tail="}")
        case flow.Consume(channel, _, body):
            return TextRow((f"consume {channel_text(channel)} → ", _body(body)))
        case flow.Receive(channel):
            return f"receive {channel_text(channel)}"
        case flow.Send(channel):
            return f"send {channel_text(channel)}"
        case flow.RecordEvent(event):
            return f"record {event.name}"
        case flow.AwaitEvent(event):
            return f"synchronize {event.name}"
        case flow.Sequence():
            return _body(item)
        case flow.Silent():
            return "nothing"


def _parted(item: wl.WorkloadSides | wl.WorkloadPipeline) -> Listed:
    """Return the parts that run side by side, without brackets."""
    if isinstance(item, flow.Sides):
        return listed("", tuple(_body(side) for side in item.sides), " |", "")
    return listed("", tuple(_process(process) for process in item.processes), " ∥", "")


def channel_text(channel: wl.ChannelRef) -> str:
    """Return a channel with its depth."""
    return f"{channel.name}[{channel.depth}]"


def _process(process: wl.WorkloadProcess) -> Text:
    replicas = f" × {process.replicas}" if process.replicas > 1 else ""
    return TextRow((f"{process.name}{replicas}: ", _body(process.body)))


def _param(param: Param) -> str:
    match param:
        case ScalarParamDecl():
            return f"{param.name}: Scalar"
        case TileParam(accumulates=True):
            return f"{param.name}: Acc"
        case _:
            return f"{param.name}: {param.role.value}"
