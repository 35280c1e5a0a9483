"""Lay out text in lines of limited width, and print workloads as programs close to the user's.

>>> print(laid_out(Listed("f(", (Part("x: In", ","), Part("y: Out")), ")"), width=10))
f(
    x: In,
    y: Out)

>>> print(print_workload(workload))
workload attention:
    for b in P(batch: 4):
        attn[b](Q=X[b], O=Y[b])
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from pto_wsp.ir import flow
from pto_wsp.ir import workload as wl
from pto_wsp.ir.layout import TensorRef
from pto_wsp.ir.scalar import Const, Element, Var, print_scalar
from pto_wsp.ir.view import print_view
from pto_wsp.values import dataclass

WIDTH = 100       # columns of a terminal, and of a notebook cell
_INDENT = 4


# -- layout ------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class TextPart:
    """One part of a list, and its end mark; a space or a new line follows."""

    text: Text
    end: str = ""


@dataclass(frozen=True, slots=True)
class Listed:
    """Parts between two brackets: on one line if they fit, otherwise one per line."""

    head: str
    parts: tuple[TextPart, ...]
    tail: str


@dataclass(frozen=True, slots=True)
class TextRow:
    """Texts in sequence."""

    parts: tuple[Text, ...]


Text: TypeAlias = str | Listed | TextRow


def listed(head: str, parts: tuple[Text, ...], end: str, tail: str) -> Listed:
    """Return a list with the same mark after each part except the last."""
    last = len(parts) - 1
    return Listed(head, tuple(TextPart(text, end if k < last else "") for k, text in enumerate(parts)), tail)


def one_line(text: Text) -> str:
    """Return the text on one line, of any length."""
    match text:
        case str():
            return text
        case TextRow(parts):
            return "".join(map(one_line, parts))
        case Listed(head, parts, tail):
            return head + " ".join(one_line(part.text) + part.end for part in parts) + tail


def wrap_text(text: Text, width: int = WIDTH) -> str:
    """Return the text in lines of at most `width` columns, as far as its parts allow."""
    return _wrap_at(text, 0, 0, 0, width)


def _wrap_at(text: Text, column: int, indent: int, behind: int, width: int) -> str:
    """Lay out a text. `column`: its start column; `behind`: the width of what follows on its last line."""
    flat = one_line(text)
    if column + len(flat) + behind <= width:
        return flat
    match text:
        case str():
            return text
        case TextRow(parts):
            shown = ""
            for k, part in enumerate(parts):
                line_start = shown.rfind("\n") + 1
                at = len(shown) - line_start + (column if line_start == 0 else 0)
                after = behind if k == len(parts) - 1 else 0
                shown += _wrap_at(part, at, indent, after, width)
            return shown
        case Listed(head, parts, tail):
            inner = indent + _INDENT
            last = len(parts) - 1
            lines = [_wrap_at(part.text, inner, inner, len(part.end) + (len(tail) + behind if k == last else 0), width) + part.end
                     for k, part in enumerate(parts)]
            return head + "".join(f"\n{' ' * inner}{line}" for line in lines) + tail


# -- workloads ---------------------------------------------------------------------------------------------------------
def print_workload(workload: wl.Workload) -> str:
    """Return the workload as a program. Handles are shown only if a statement waits for them."""
    waited = frozenset(handle for each in wl.waiting(workload.body) for handle in each.after)
    return "\n".join((f"workload {workload.name}:", *_block(workload.body, 1, waited)))


def _on(task: wl.Task) -> str:
    if task.on is None:
        return ""
    source = f"rank {print_scalar(task.on.source)} to " if task.on.source is not None else ""
    return f"  # {source}rank {print_scalar(task.on.rank)}"


def _block(body: wl.Body, depth: int, waited: frozenset[int]) -> Iterator[str]:
    if not body.items:
        yield f"{'    ' * depth}pass"
    for item in body.items:
        yield from _item(item, depth, waited)


def _item(item: wl.Item, depth: int, waited: frozenset[int]) -> Iterator[str]:
    pad = "    " * depth
    match item:
        case flow.Do(wl.Task() as task):
            args = tuple(f"{arg.param}={_arg(arg)}" for arg in task.args)
            index = f"[{', '.join(print_scalar(i) for i in task.index)}]" if task.index else ""
            after = (f"after=[{', '.join(f'task{h}' for h in task.after)}]",) if task.after else ()
            name = f"task{task.handle} = " if task.handle in waited else ""
            label = (f"label={task.label!r}",) if task.label else ()
            call = listed(f"{name}{task.kernel.name}{index}(", (*args, *after, *label), ",", f"){_on(task)}")
            yield from (pad + line for line in wrap_text(call, WIDTH - len(pad)).split("\n"))
        case flow.Loop():
            walk = "P" if item.through is None else "P.sel"
            yield f"{pad}for {item.known_var.name} in {f'{walk}.seq' if item.ordered else walk}({_axis(item)}):"
            yield from _block(item.body, depth + 1, waited)
        case flow.Sides(sides):
            yield f"{pad}combine:"
            for side in sides:
                yield f"{pad}  side:"
                yield from _block(side, depth + 1, waited)
        case flow.Sequence():
            yield from _block(item, depth, waited)
        case flow.Choice(branches, otherwise):
            words = ("when", *("elif_",) * (len(branches) - 1))
            for word, branch in zip(words, branches, strict=True):
                yield f"{pad}with P.{word}({print_scalar(branch.condition)}):"
                yield from _block(branch.body, depth + 1, waited)
            if otherwise.items:
                yield f"{pad}with P.otherwise():"
                yield from _block(otherwise, depth + 1, waited)
        case flow.SetSlot(slot, value):
            yield f"{pad}slot_set_u64({slot}, {print_scalar(value)})"
        case flow.Fresh(tensor, sizes=sizes):
            shape = f"({', '.join(map(print_scalar, sizes))}{',' * (len(sizes) == 1)})" if sizes else _shape(tensor)
            yield f"{pad}{tensor.shown} = Tensor.empty({shape}, DType.{tensor.dtype.name})"
        case flow.Do(wl.Fixed()):      # the extent is printed where it is used
            return
        case flow.Pipeline(processes):
            yield f"{pad}with P.pipe():"
            channels = dict.fromkeys(channel for process in processes for channel in (*process.produces, *process.consumes))
            for channel in channels:
                yield f"{pad}    {channel.name} = Channel({channel.name!r}, {channel.depth}{_initial(channel)})"
            for process in processes:
                yield f"{pad}    {_process(process)}:"
                yield from _block(process.body, depth + 2, waited)
        case flow.Send(channel, payload, after=after):
            sent = (*map("task{}".format, after), *map(print_scalar, payload))
            yield f"{pad}send({', '.join((channel.name, *sent))})"
        case flow.Receive(channel, variables):
            yield f"{pad}{_received(variables)} = receive({channel.name})"
        case flow.Consume(channel, variables, inner):
            received = _received(variables)
            yield f"{pad}with consume({channel.name}) as {f'({received})' if len(variables) > 1 else received}:"
            yield from _block(inner, depth + 1, waited)
        case flow.RecordEvent(event):
            yield f"{pad}record({event.name})"
        case flow.AwaitEvent(event):
            yield f"{pad}synchronize({event.name})"


def _initial(channel: wl.ChannelRef) -> str:
    """Return the argument for the tokens that a channel begins with: their number, or the numbers of each."""
    if not channel.initial:
        return ""
    plain = [numbers[0] if len(numbers) == 1 else numbers for numbers in channel.initial]
    return f", initial={plain if channel.initial[0] else len(plain)}"


def _process(process: wl.WorkloadProcess) -> str:
    """Return the construction of a process without its body: `replicate(process("compute").consumes(tiles), 2)`."""
    made = f"process({process.name!r})"
    made += f".consumes({', '.join(channel.name for channel in process.consumes)})" if process.consumes else ""
    made += f".produces({', '.join(channel.name for channel in process.produces)})" if process.produces else ""
    return f"replicate({made}, {process.replicas})" if process.replicas > 1 else made


def _shape(tensor: TensorRef) -> str:
    return f"({', '.join(map(str, tensor.shape))}{',' * (len(tensor.shape) == 1)})"


def _received(variables: tuple[Var, ...]) -> str:
    return ", ".join(var.name for var in variables) or "_"


def _arg(arg: wl.Arg) -> str:
    match arg:
        case wl.ViewArg(_, view):
            return print_view(view)
        case wl.ScalarArg(_, value):
            return print_scalar(value)


def _axis(loop: wl.WorkloadLoop) -> str:
    axis = loop.note.axis
    start, stop, step = (print_scalar(bound) for bound in (loop.start, loop.stop, loop.step))
    plain = loop.start == Const(0) and loop.step == Const(1)
    bounds = stop if plain else f"range({start}, {stop}, {step})"
    match loop.through:
        case flow.Through(_, Element(columns, (position,))) if position == loop.var and loop.step == Const(1):
            bounds = f"{columns.shown}[{start}:{stop}]"
        case flow.Through(_, value):
            bounds = f"{print_scalar(value)} for {loop.var.name} in {bounds if not plain else f'range({stop})'}"
    return f"{axis.name}: {bounds}" if axis.name and axis.name != bounds else bounds
