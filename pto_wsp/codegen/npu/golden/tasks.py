"""The tasks of a plan as loops of Python that call the kernels' functions on views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from pto_wsp.codegen.npu.golden.lines import INDENT, Lines
from pto_wsp.codegen.npu.golden.names import Scope
from pto_wsp.codegen.npu.golden.scalars import spell_scalar
from pto_wsp.codegen.npu.golden.spelling import spell_dtype
from pto_wsp.errors import InternalError, unreachable
from pto_wsp.expr.kernel import ScalarParamDecl
from pto_wsp.expr.rewrite import nodes
from pto_wsp.plan import model as m
from pto_wsp.source import UNKNOWN
from pto_wsp.types import scalar as s
from pto_wsp.types.dtype import DType
from pto_wsp.types.scalar_text import print_scalar
from pto_wsp.types.view import Clip, Cut, Permute, Pick, Reshape, View, place_of


def emit_tasks(plan: m.TaskPlan, functions: Sequence[str], tensors: Mapping[int, str], symbols: Mapping[int, str],
               scope: Scope) -> tuple[str, ...]:
    """Return the lines that run every task in program order. Names: of kernels by number, of tensors and symbols by id."""
    tasks = _Tasks(plan, functions, tensors, symbols, scope)
    tasks.item(plan.body, 0)
    return (*(f"{name} = 0" for name in tasks.slots.values()), *tasks.lines.out) or ("pass",)


class _Tasks:
    def __init__(self, plan: m.TaskPlan, functions: Sequence[str], tensors: Mapping[int, str], symbols: Mapping[int, str],
                 scope: Scope) -> None:
        self.plan, self.functions, self.tensors, self.symbols, self.scope = plan, functions, tensors, symbols, scope
        self.variables: dict[s.Var, str] = {}
        held = sorted({node.slot for node in nodes(plan.body) if isinstance(node, s.SlotValue | m.SetSlot)})
        self.slots = {slot: scope.take(f"slot_{slot}", "slot") for slot in held}
        self.ends: dict[tuple[str, int], str] = {}      # channels and events, by number
        self.stream = ""                                # of the process at hand
        self.lines = Lines()

    def item(self, item: m.Item, depth: int) -> None:
        """Add the lines of a piece of the plan."""
        match item:
            case m.Submit():
                self.submit(item, depth)
            case m.Loop(var=var, start=start, stop=stop, step=step, body=body):
                bounds = f"{self.scalar(start)}, {self.scalar(stop)}" + ("" if step == s.Const(1) else f", {self.scalar(step)}")
                self.variables[var] = self.scope.take(var.name, "i")
                self.lines.put(depth, f"for {self.variables[var]} in range({bounds}):", item.span)
                if item.through is not None:
                    found = self.variables[item.through.var] = self.scope.take(item.through.var.name, "i")
                    self.lines.put(depth + 1, f"{found} = {self.scalar(item.through.value)}", item.span)
                self.body(body, depth + 1)
            case m.Choice(branches, otherwise):
                for position, branch in enumerate(branches):
                    self.lines.put(depth, f"{'elif' if position else 'if'} {self.scalar(branch.condition)}:", branch.span)
                    self.body(branch.body, depth + 1)
                if otherwise.items:
                    self.lines.put(depth, "else:", UNKNOWN)
                    self.body(otherwise, depth + 1)
            case m.Fresh(slot):
                ref = self.plan.tensors[slot].ref
                self.lines.put(depth, f"{self.tensors[ref.id]} = np.zeros({ref.shape}, {spell_dtype(ref.dtype)})", item.span)
            case m.SetSlot(slot, value):
                self.lines.put(depth, f"{self.slots[slot]} = {self.scalar(value)}", item.span)
            case m.Sides(sides):
                for side in sides:
                    self.item(side, depth)
            case m.Pipeline():
                self.pipeline(item, depth)
            case m.Send() | m.Receive() | m.Consume() | m.RecordEvent() | m.AwaitEvent():
                self.communicate(item, depth)
            case m.Sequence(items):
                for inner in items:
                    self.item(inner, depth)
            case _:
                raise InternalError(f"{type(item).__name__} in a plan for the NPU")

    def body(self, body: m.Sequence, depth: int) -> None:
        """Add the lines of a piece that needs one."""
        before = len(self.lines.out)
        self.item(body, depth)
        if len(self.lines.out) == before:
            self.lines.out.append(f"{INDENT * depth}pass")

    def pipeline(self, pipeline: m.Pipeline, depth: int) -> None:
        """Add the processes of a pipeline as generators, which take turns."""
        for number in pipeline.channels:
            channel = self.plan.channels[number]
            self.ends["channel", number] = self.scope.take(channel.name, "channel")
            ends = f"{channel.depth}, {list(channel.producers)}, {list(channel.consumers)}"
            self.lines.put(depth, f"{self.ends['channel', number]} = _channel({ends})", pipeline.span)
        for number in pipeline.events:
            self.ends["event", number] = self.scope.take(self.plan.events[number].name, "event")
            self.lines.put(depth, f"{self.ends['event', number]} = _event()", pipeline.span)
        running: list[str] = []
        for process in pipeline.processes:
            name, self.stream = self.scope.take(process.name, "process"), self.scope.take("stream", "stream")
            self.lines.put(depth, f"def {name}({self.stream}):", process.span)
            self.lines.put(depth + 1, "yield from ()", process.span)       # a generator, whether it waits or not
            self.item(process.body, depth + 1)
            running += [f"{process.stream + k}: {name}({process.stream + k})" for k in range(process.replicas)]
        channels, events = (", ".join(self.ends[what, number] for number in numbers)
                            for what, numbers in (("channel", pipeline.channels), ("event", pipeline.events)))
        self.lines.put(depth, f"_take_turns({{{', '.join(running)}}}, [{channels}], [{events}])", pipeline.span)

    def communicate(self, item: m.Send | m.Receive | m.Consume | m.RecordEvent | m.AwaitEvent, depth: int) -> None:
        """Add what a process does with a channel or an event."""
        match item:
            case m.Send(channel, payload):
                token = "".join(f"{self.scalar(value)}, " for value in payload).rstrip(" ")
                sent = f"_send_token({self.ends['channel', channel]}, {self.stream}, ({token}))"
                self.lines.put(depth, f"yield from {sent}", item.span)
            case m.Receive(channel, variables):
                names = self.received(variables)
                self.lines.put(depth, f"{names}yield from _take_token({self.ends['channel', channel]}, {self.stream})", item.span)
            case m.Consume(channel, variables, body):
                token = self.scope.take("token", "token")
                taken = f"(yield from _take_token({self.ends['channel', channel]}, {self.stream}))"
                self.lines.put(depth, f"while ({token} := {taken}) is not None:", item.span)
                if variables:
                    self.lines.put(depth + 1, f"{self.received(variables)}{token}", item.span)
                self.body(body, depth + 1)
            case m.RecordEvent(event):
                self.lines.put(depth, f'{self.ends["event", event]}["records"] += 1', item.span)
            case m.AwaitEvent(event):
                self.lines.put(depth, f"yield from _await_event({self.ends['event', event]}, {self.stream})", item.span)

    def received(self, variables: tuple[s.Var, ...]) -> str:
        """Return the left side of an assignment to variables that a token brings."""
        for var in variables:
            self.variables[var] = self.scope.take(var.name, "i")
        return f"{', '.join(self.variables[var] for var in variables)}{',' * (len(variables) == 1)} = " if variables else ""

    def submit(self, task: m.Submit, depth: int) -> None:
        """Add the call of one task."""
        params = self.plan.kernels[task.kernel].kernel.scalar_params
        arguments = [self.view(place.view) for place in task.places]
        arguments += [self.held(value.value, param) for value, param in zip(task.scalars, params, strict=True)]
        self.lines.put(depth, f"{self.functions[task.kernel]}({', '.join(arguments)})", task.span)

    def held(self, value: s.Scalar, param: ScalarParamDecl) -> str:
        """Return a scalar argument as its parameter holds it, as a number of Python."""
        text = self.scalar(value)
        if param.dtype is DType.F64 or (param.dtype is DType.I64 and s.scalar_dtype(value).is_integer):
            return text
        if param.dtype.is_bool:
            return f"bool({text})"
        return f"{'int' if param.dtype.is_integer else 'float'}({spell_dtype(param.dtype)}({text}))"

    def view(self, view: View) -> str:
        """Return the rank-2 array of a view: brackets where steps can share them."""
        text, rank = self.tensors[view.tensor.id], view.tensor.rank
        entries: list[str] = [":"] * rank
        live = list(range(rank))

        def close() -> None:
            nonlocal text, entries, live
            while entries and entries[-1] == ":":
                entries.pop()
            if entries:
                text = f"{text}[{', '.join(entries)}]"
            entries = [":"] * len(live)
            live = list(range(len(entries)))

        for position, step in enumerate(view.steps):
            match step:
                case Pick(dim, index):
                    if entries[live[dim]] != ":":
                        close()
                    entries[live.pop(dim)] = self.scalar(index)
                case Cut(dim, start, stop, by):
                    if entries[live[dim]] != ":":
                        close()
                    low = "" if start == s.Const(0) else self.scalar(start)
                    whole = place_of(View(view.tensor, view.steps[:position])).dims[dim].extent
                    high = "" if stop == whole else self.scalar(stop)
                    entries[live[dim]] = f"{low}:{high}" + (f":{by}" if by != 1 else "")
                case Clip(limits):
                    close()
                    entries = [f":{limit}" for limit in limits]
                case Permute(order):
                    close()
                    text += ".T" if order == tuple(reversed(range(len(order)))) else f".transpose({', '.join(map(str, order))})"
                    entries, live = [":"] * len(order), list(range(len(order)))
                case Reshape(shape):
                    close()
                    text += f".reshape({', '.join(map(str, shape))})"
                    entries, live = [":"] * len(shape), list(range(len(shape)))
                case _:
                    assert_never(step)
        if len(place_of(view).dims) == 1:
            close()
            return f"{text}[None, :]"
        close()
        return text

    def scalar(self, node: s.Scalar) -> str:
        """Return Python for a scalar of the plan."""
        return spell_scalar(node, self.leaf)

    def leaf(self, node: s.Scalar) -> str:
        """Return a loop variable, a symbol, or what is read from a tensor."""
        match node:
            case s.Var():
                return self.variables[node]
            case s.SymbolRef(_, symbol):
                return self.symbols[symbol]
            case s.SlotValue(slot):
                return self.slots[slot]
            case s.DimOf(tensor, dim):
                return f"{self.tensors[tensor.id]}.shape[{dim}]"
            case s.StrideOf(tensor, dim):
                name = self.tensors[tensor.id]
                return f"({name}.strides[{dim}] // {name}.itemsize)"
            case s.Element(tensor, index):
                at = ", ".join(self.scalar(i) for i in index)
                return f"{self.tensors[tensor.id]}[{at}].item()"
            case _:
                unreachable(f"scalar in a plan: {print_scalar(node)}")
