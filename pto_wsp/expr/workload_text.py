"""Workloads as text: the program that they are, and the type that they have.

>>> type_of(workload)
'Workload[batch: Dense[4] × heads: Dense[8] → attn(Q: In, K: In, O: Out), Independent]'
"""

from __future__ import annotations

from collections.abc import Iterator

from pto_wsp.expr import workload as wl
from pto_wsp.expr.kernel import ScalarParamDecl
from pto_wsp.expr.rewrite import outer_nodes
from pto_wsp.types.scalar import Const, Var, print_scalar
from pto_wsp.types.view import print_view


def print_workload(workload: wl.Workload) -> str:
    """Return the workload as the program that a user would write."""
    return "\n".join((f"workload {workload.name}:", *(_block(workload.body, 1))))


def _block(body: wl.Block, depth: int) -> Iterator[str]:
    pad = "    " * depth
    if not body.items:
        yield f"{pad}pass"
    for item in body.items:
        match item:
            case wl.Task():
                args = ", ".join(f"{arg.param}={_arg(arg)}" for arg in item.args)
                index = f"[{', '.join(print_scalar(i) for i in item.index)}]" if item.index else ""
                after = f", after=[{', '.join(f'task{h}' for h in item.after)}]" if item.after else ""
                waited = any(item.handle in node.after for node in outer_nodes(body) if isinstance(node, wl.Task))
                name = f"task{item.handle} = " if waited else ""
                yield f"{pad}{name}{item.kernel.name}{index}({args}{after})"
            case wl.Loop():
                walk = "P.sel" if item.through is not None else "P"
                var = item.var if item.through is None else item.through.var
                yield f"{pad}for {var.name} in {f'{walk}.seq' if item.ordered else walk}({_axis(item)}):"
                yield from _block(item.body, depth + 1)
            case wl.Combine(sides):
                yield f"{pad}combine:"
                for side in sides:
                    yield f"{pad}  side:"
                    yield from _block(side, depth + 1)
            case wl.Block():
                yield from _block(item, depth)
            case wl.Choice(branches, otherwise):
                for keyword, branch in zip(("when", *("elif_",) * len(branches)), branches, strict=False):
                    yield f"{pad}{keyword} {print_scalar(branch.condition)}:"
                    yield from _block(branch.body, depth + 1)
                if otherwise.items:
                    yield f"{pad}otherwise:"
                    yield from _block(otherwise, depth + 1)
            case wl.SetSlot(slot, value):
                yield f"{pad}slot[{slot}] = {print_scalar(value)}"
            case wl.Fresh(tensor):
                yield f"{pad}{tensor.shown} = Tensor.empty({tensor.shape}, {tensor.dtype})"
            case wl.Pipeline(processes):
                yield f"{pad}pipe:"
                for process in processes:
                    replicas = f" × {process.replicas}" if process.replicas > 1 else ""
                    yield f"{pad}  process {process.name}{replicas}:"
                    yield from _block(process.body, depth + 1)
            case wl.Send(channel, payload, after):
                sent = (*(f"task{h}" for h in after), *(print_scalar(value) for value in payload))
                yield f"{pad}send({', '.join((channel.name, *sent))})"
            case wl.Receive(channel, variables):
                yield f"{pad}{_received(variables)} = receive({channel.name})"
            case wl.Consume(channel, variables, inner):
                yield f"{pad}with consume({channel.name}) as {_received(variables)}:"
                yield from _block(inner, depth + 1)
            case wl.Record(event):
                yield f"{pad}record({event.name})"
            case wl.Synchronize(event):
                yield f"{pad}synchronize({event.name})"


def _received(variables: tuple[Var, ...]) -> str:
    return ", ".join(var.name for var in variables) or "_"


def _arg(arg: wl.Arg) -> str:
    match arg:
        case wl.ViewArg(_, view):
            return print_view(view)
        case wl.ScalarArg(_, value):
            return print_scalar(value)


def _axis(loop: wl.Loop) -> str:
    bounds = print_scalar(loop.stop)
    if loop.start != Const(0) or loop.step != Const(1):
        bounds = f"range({print_scalar(loop.start)}, {bounds}, {print_scalar(loop.step)})"
    return f"{loop.axis.name}: {bounds}" if loop.axis.name and loop.axis.name != bounds else bounds


def type_of(workload: wl.Workload) -> str:
    """Return the workload's type: its axes, the tasks they lead to, and what kind it is."""
    return f"Workload[{_type(workload.body)}, {kind_of(workload)}]"


def kind_of(workload: wl.Workload) -> str:
    """Return Independent, Sequential or Combined: what holds between the outermost parts of the workload."""
    items = _flat(workload.body)
    if len(items) == 1:
        match items[0]:
            case wl.Combine():
                return "Combined"
            case wl.Loop(ordered=True):
                return "Sequential"
            case wl.Loop() as loop:
                inner = wl.Workload("", loop.body)
                return "Independent" if kind_of(inner) == "Independent" or len(_flat(loop.body)) > 1 else kind_of(inner)
            case _:
                pass
    return "Sequential" if len(items) > 1 else "Independent"


def _flat(body: wl.Block) -> tuple[wl.Item, ...]:
    return tuple(inner for item in body.items for inner in (_flat(item) if isinstance(item, wl.Block) else (item,)))


def _type(body: wl.Block) -> str:
    return "; ".join(_item_type(item) for item in _flat(body)) or "nothing"


def _item_type(item: wl.Item) -> str:
    match item:
        case wl.Task():
            params = ", ".join(f"{p.name}: {'Scalar' if isinstance(p, ScalarParamDecl) else p.role.value}" for p in item.kernel.params)
            return f"{item.kernel.name}({params})"
        case wl.Combine(sides):
            return " | ".join(_type(side) for side in sides)
        case wl.Block():
            return _type(item)
        case wl.Loop():
            label = f"{item.axis.name}: {item.axis.label}" if item.axis.name else item.axis.label
            inner = _flat(item.body)
            if len(inner) == 1 and isinstance(inner[0], wl.Loop):
                return f"{label} × {_item_type(inner[0])}"
            text = _type(item.body)
            return f"{label} → {{{text}}}" if len(inner) > 1 else f"{label} → {text}"
        case _:
            return "; ".join(_item_type(inner) for inner in wl.inner_items(item))
