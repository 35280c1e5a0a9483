"""Emit the kernels of golden.py as NumPy functions, and its tasks as Python loops that call them on views.

A function has the kernel's statements as traced, with the user's names:

>>> print("\\n".join(emit_function(kernel, "scale")))
def scale(x, out, s):
    \"\"\"model.py:7\"\"\"
    v0 = _load(x, (0, 0), (4, 8))
    v1 = v0 * np.float32(s)  # model.py:8
    _store(out, v1, (0, 0))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

import numpy as np

from pto_wsp.errors import InternalError, unreachable
from pto_wsp.ir import kernel as k
from pto_wsp.ir import plan as m
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.flow import AwaitEvent, Choice, Consume, Do, Fresh, Loop, Pipeline, Receive, RecordEvent, Send, SetSlot, Sides
from pto_wsp.ir.flow import Sequence as PlanSequence
from pto_wsp.ir.kernel import ScalarParamDecl
from pto_wsp.ir.kernel_walk import operand_types, piece_of, uses_of, writes_buffer
from pto_wsp.ir.names import Names
from pto_wsp.ir.plan_walk import slots_used
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.view import Clip, Cut, Permute, Pick, Reshape, View, place_of
from pto_wsp.npu.emit.golden_text import INDENT, Lines, python_ident, spell_dtype, spell_op, spell_scalar
from pto_wsp.source import UNKNOWN


def emit_function(kernel: k.Kernel, name: str, scope: Names) -> tuple[str, ...]:
    """Return the lines of a function `name` of the kernel's memory parameters, then its scalar parameters.

    A kernel with a body in another language only becomes a function that raises an error.
    """
    return _GoldenFunction(kernel, scope).whole(name)


class _GoldenFunction:
    def __init__(self, kernel: k.Kernel, scope: Names) -> None:
        self.kernel = kernel
        self.scope = scope
        params = (*kernel.memory_params, *kernel.scalar_params)
        self.params = {param.name: self.scope.take(python_ident(param.name, "arg")) for param in params}
        self.values: dict[int, str] = {}
        self.buffers: dict[int, str] = {}
        self.variables: dict[s.Var, str] = {}
        self.items: dict[s.ItemRef, str] = {}
        self.lines = Lines(kernel.span.line)

    def whole(self, name: str) -> tuple[str, ...]:
        """Return the lines of the function."""
        head = [f"def {name}({', '.join(self.params.values())}):"]
        if self.kernel.span.line:
            head.append(f'{INDENT}"""{self.kernel.span.short}"""')
        if not self.kernel.has_meaning:
            head.append(f"{INDENT}raise RuntimeError(\"kernel `{self.kernel.name}` has a body in C++ alone: "
                        "write here what it computes\")")
        self.body_or_pass(self.kernel.body, 1)
        return tuple(head + (self.lines.out if self.kernel.has_meaning else []))

    def body(self, stmts: tuple[k.Stmt, ...], depth: int) -> None:
        """Append the lines of statements.

        A buffer is named at its read, if its contents stay unchanged for that use. A result that the next statement writes to a buffer
        takes the buffer's name.
        """
        skipped = -1
        for at, stmt in enumerate(stmts):
            if at == skipped:
                continue
            if isinstance(stmt, k.Read) and _stays(stmt, stmts[at + 1:]):
                self.values[stmt.result.id] = self.buffers[stmt.buffer.id]
                continue
            if isinstance(stmt, k.Compute | k.Load) and (written := _written_at_once(stmt, stmts[at + 1:])) is not None:
                self.values[stmt.result.id] = self.buffers[written.id]
                skipped = at + 1
            self.statement(stmt, depth)

    def statement(self, stmt: k.Stmt, depth: int) -> None:
        """Append the lines of one statement."""
        match stmt:
            case k.Compute(result, op, operands, attrs):
                spelled = [self.operand(operand) for operand in operands]
                self.lines.put(depth, f"{self.name(result)} = {spell_op(op, spelled, operand_types(stmt), result.type, attrs)}", stmt.span)
            case k.Load(result):
                turned = ".T" if stmt.transpose else ""
                fill = self.filled(stmt.fill, result.type.dtype)
                piece = f"{self.place(stmt)}, {piece_of(stmt)}{self.valid(stmt)}{fill}"
                self.lines.put(depth, f"{self.name(result)} = _load({piece}){turned}", stmt.span)
            case k.Store():
                self.lines.put(depth, f"_store({self.params[stmt.param]}, {self.values[stmt.value.id]}, "
                                f"({self.scalar(stmt.row)}, {self.scalar(stmt.col)}){self.valid(stmt)})", stmt.span)
            case k.Gather(result):
                rows = f"{self.params[stmt.param]}, {self.values[stmt.index.id]}, {self.scalar(stmt.col)}, {result.type.cols}"
                fill = self.filled(stmt.fill, result.type.dtype)
                self.lines.put(depth, f"{self.name(result)} = _load_rows({rows}{self.valid_rows(stmt)}{fill})", stmt.span)
            case k.Scatter():
                rows = f"{self.params[stmt.param]}, {self.values[stmt.index.id]}, {self.values[stmt.value.id]}, {self.scalar(stmt.col)}"
                self.lines.put(depth, f"_store_rows({rows}{self.valid_rows(stmt)}{', add=True' if stmt.add else ''})", stmt.span)
            case k.Alloc(buffer, init):
                self.buffers.setdefault(buffer.id, self.scope.take(python_ident(buffer.name, "buffer")))
                held = self.constant(0 if init is None else init, buffer.type.dtype)
                self.lines.put(depth, f"{self.buffers[buffer.id]} = np.full({buffer.type.shape}, {held})", stmt.span)
            case k.Read(result, buffer):
                self.lines.put(depth, f"{self.name(result)} = {self.buffers[buffer.id]}", stmt.span)
            case k.Write(buffer, value):
                self.lines.put(depth, f"{self.buffers[buffer.id]} = {self.values[value.id]}", stmt.span)
            case k.WritePart(buffer, value, row, col):
                rows, cols = (f"{self.scalar(at)}:{self.scalar(s.add(at, s.Const(n)))}"
                              for at, n in zip((row, col), value.type.shape, strict=True))
                name = self.buffers[buffer.id]
                self.lines.put(depth, f"{name} = {name}.copy()", stmt.span)
                self.lines.put(depth, f"{name}[{rows}, {cols}] = {self.values[value.id]}", stmt.span)
            case k.For(var, start, stop, step, body):
                bounds = f"{self.scalar(start)}, {self.scalar(stop)}" + ("" if step == s.Const(1) else f", {self.scalar(step)}")
                self.variables[var] = self.scope.take(python_ident(var.name, "i"))
                self.lines.put(depth, f"for {self.variables[var]} in range({bounds}):", stmt.span)
                self.body_or_pass(body, depth + 1)
            case k.If(condition, then, other):
                self.lines.put(depth, f"if {self.scalar(condition)}:", stmt.span)
                self.body_or_pass(then, depth + 1)
                if other:
                    self.lines.out.append(f"{INDENT * depth}else:")
                    self.body_or_pass(other, depth + 1)
            case k.Item(item, value, row, col):
                self.items[item] = self.scope.take(python_ident(item.name, "item"))
                at = f"{self.scalar(row)}, {self.scalar(col)}"
                self.lines.put(depth, f"{self.items[item]} = {self.values[value.id]}[{at}].item()", stmt.span)
            case k.Print():
                pass
            case k.Accumulate() | k.FiniteCheck() | k.Rows() | k.Columns():
                unreachable("a kernel that passes have changed: golden.py is made from what was traced")
            case _:
                assert_never(stmt)

    def body_or_pass(self, stmts: tuple[k.Stmt, ...], depth: int) -> None:
        """Append a body, or `pass` for an empty one."""
        before = len(self.lines.out)
        self.body(stmts, depth)
        if len(self.lines.out) == before:
            self.lines.out.append(f"{INDENT * depth}pass")

    def name(self, value: k.Value) -> str:
        """Return the name of a value that is defined here."""
        if value.id not in self.values:
            self.values[value.id] = self.scope.take(python_ident(value.name, f"v{value.id}"))
        return self.values[value.id]

    def operand(self, operand: k.Operand) -> str:
        """Return an operand: a name, or a number of its dtype."""
        match operand:
            case k.Value(id):
                return self.values[id]
            case k.ScalarOperand(s.Const(value), dtype):
                return self.constant(value, dtype)
            case k.ScalarOperand(value, dtype):
                return self.held(value, dtype)
            case _:
                assert_never(operand)

    def held(self, value: s.Scalar, dtype: DType) -> str:
        """Return a run-time scalar converted to `dtype`: rounded, or wrapped."""
        text = self.scalar(value)
        if s.scalar_dtype(value).is_integer and dtype.is_integer and dtype is not DType.I64:
            return f"np.int64({text}).astype({spell_dtype(dtype)})"
        return f"{spell_dtype(dtype)}({text})"

    @staticmethod
    def constant(value: s.Number, dtype: DType) -> str:
        """Return a constant as a NumPy scalar."""
        if isinstance(value, float) and not np.isfinite(value):
            return f'{spell_dtype(dtype)}("{value!r}")'
        return f"{spell_dtype(dtype)}({value!r})"

    def place(self, stmt: k.Load) -> str:
        """Return the region of a load and the start of its piece."""
        return f"{self.params[stmt.param]}, ({self.scalar(stmt.row)}, {self.scalar(stmt.col)})"

    def valid(self, stmt: k.Load | k.Store) -> str:
        """Return the argument for a piece's valid part, empty if the whole piece is valid."""
        if stmt.valid_rows is None and stmt.valid_cols is None:
            return ""
        rows, cols = (str(extent) if given is None else self.scalar(given)
                      for extent, given in zip(piece_of(stmt), (stmt.valid_rows, stmt.valid_cols), strict=True))
        return f", valid=({rows}, {cols})"

    def valid_rows(self, stmt: k.Gather | k.Scatter) -> str:
        """Return the argument for the valid rows of an index, empty if all are valid."""
        return "" if stmt.valid is None else f", valid={self.scalar(stmt.valid)}"

    def filled(self, fill: s.Number, dtype: DType) -> str:
        """Return the argument for the fill, empty if the fill is 0."""
        return "" if not fill else f", fill={self.constant(fill, dtype)}"

    def scalar(self, node: s.Scalar) -> str:
        """Return Python for a scalar of the kernel."""
        return spell_scalar(node, self.leaf)

    def leaf(self, node: s.Scalar) -> str:
        """Return the name of a parameter, an extent, a loop variable or an item."""
        match node:
            case s.ParamScalar(name):
                return self.params[name]
            case s.ParamExtent(name, dim):
                return f"{self.params[name]}.shape[{dim}]"
            case s.Var():
                return self.variables[node]
            case s.ItemRef():
                return self.items[node]
            case _:
                unreachable(f"scalar in a kernel: {print_scalar(node)}")


def _stays(read: k.Read, rest: tuple[k.Stmt, ...]) -> bool:
    """Return whether a buffer keeps the contents of a read until the last use of the read value."""
    changes = next((at for at, stmt in enumerate(rest) if writes_buffer(stmt, read.buffer)), len(rest))
    late = rest[changes + 1:] if changes < len(rest) and isinstance(rest[changes], k.Write) else rest[changes:]
    return not any(read.result in uses_of(stmt) for stmt in late)


def _written_at_once(stmt: k.Compute | k.Load, rest: tuple[k.Stmt, ...]) -> k.Buffer | None:
    """Return the buffer to which the next statement writes a result, if nothing else uses the result; None otherwise."""
    match rest:
        case (k.Write(buffer, value), *others) if value == stmt.result and not any(value in uses_of(other) for other in others):
            return buffer
        case _:
            return None


# -- tasks -----------------------------------------------------------------------------------------


def emit_tasks(plan: m.TaskPlan, functions: Sequence[str], tensors: Mapping[int, str], symbols: Mapping[int, str],
               scope: Names) -> tuple[str, ...]:
    """Return the lines that run every task in program order.

    `functions`: names of kernels by number; `tensors`, `symbols`: names by id.
    """
    tasks = _TaskWriter(plan, functions, tensors, symbols, scope)
    tasks.item(plan.body, 0)
    return (*(f"{name} = 0" for name in tasks.slots.values()), *tasks.lines.out) or ("pass",)


class _TaskWriter:
    def __init__(self, plan: m.TaskPlan, functions: Sequence[str], tensors: Mapping[int, str], symbols: Mapping[int, str],
                 scope: Names) -> None:
        self.plan, self.functions, self.tensors, self.symbols, self.scope = plan, functions, tensors, symbols, scope
        self.variables: dict[s.Var, str] = {}
        self.slots = {slot: scope.take(f"slot_{slot}") for slot in slots_used(plan)}
        self.ends: dict[tuple[str, int], str] = {}      # channels and events, by number
        self.stream = ""                                # of the current process
        self.lines = Lines()

    def item(self, item: m.Item, depth: int) -> None:
        """Append the lines of an item of the plan."""
        match item:
            case Do(task):
                self.submit(task, depth)
            case Loop(var=var, start=start, stop=stop, step=step, body=body):
                bounds = f"{self.scalar(start)}, {self.scalar(stop)}" + ("" if step == s.Const(1) else f", {self.scalar(step)}")
                self.variables[var] = self.scope.take(python_ident(var.name, "i"))
                self.lines.put(depth, f"for {self.variables[var]} in range({bounds}):", item.span)
                if item.through is not None:
                    found = self.variables[item.through.var] = self.scope.take(python_ident(item.through.var.name, "i"))
                    self.lines.put(depth + 1, f"{found} = {self.scalar(item.through.value)}", item.span)
                self.body(body, depth + 1)
            case Choice(branches, otherwise):
                for position, branch in enumerate(branches):
                    self.lines.put(depth, f"{'elif' if position else 'if'} {self.scalar(branch.condition)}:", branch.span)
                    self.body(branch.body, depth + 1)
                if otherwise.items:
                    self.lines.put(depth, "else:", UNKNOWN)
                    self.body(otherwise, depth + 1)
            case Fresh(slot):
                ref = self.plan.tensors[slot].ref
                self.lines.put(depth, f"{self.tensors[ref.id]} = np.zeros({ref.shape}, {spell_dtype(ref.dtype)})", item.span)
            case SetSlot(slot, value):
                self.lines.put(depth, f"{self.slots[slot]} = {self.scalar(value)}", item.span)
            case Sides(sides):
                for side in sides:
                    self.item(side, depth)
            case Pipeline():
                self.pipeline(item, depth)
            case Send() | Receive() | Consume() | RecordEvent() | AwaitEvent():
                self.communicate(item, depth)
            case PlanSequence(items):
                for inner in items:
                    self.item(inner, depth)
            case _:
                raise InternalError(f"{type(item).__name__} in a plan for the NPU")

    def body(self, body: m.Body, depth: int) -> None:
        """Add the lines of a piece that needs one."""
        before = len(self.lines.out)
        self.item(body, depth)
        if len(self.lines.out) == before:
            self.lines.out.append(f"{INDENT * depth}pass")

    def pipeline(self, pipeline: m.PlanPipeline, depth: int) -> None:
        """Add the processes of a pipeline as generators, which take turns."""
        for number in pipeline.channels:
            channel = self.plan.channels[number]
            self.ends["channel", number] = self.scope.take(python_ident(channel.name, "channel"))
            ends = f"{channel.depth}, {list(channel.producers)}, {list(channel.consumers)}" + f", {channel.initial}" * bool(channel.initial)
            self.lines.put(depth, f"{self.ends['channel', number]} = _channel({ends})", pipeline.span)
        for number in pipeline.events:
            self.ends["event", number] = self.scope.take(python_ident(self.plan.events[number].name, "event"))
            self.lines.put(depth, f"{self.ends['event', number]} = _event()", pipeline.span)
        running: list[str] = []
        for process in pipeline.processes:
            name, self.stream = self.scope.take(python_ident(process.name, "process")), self.scope.take("stream")
            self.lines.put(depth, f"def {name}({self.stream}):", process.span)
            self.lines.put(depth + 1, "yield from ()", process.span)       # makes the function a generator even if it never waits
            self.item(process.body, depth + 1)
            running += [f"{process.stream + k}: {name}({process.stream + k})" for k in range(process.replicas)]
        channels, events = (", ".join(self.ends[what, number] for number in numbers)
                            for what, numbers in (("channel", pipeline.channels), ("event", pipeline.events)))
        self.lines.put(depth, f"_take_turns({{{', '.join(running)}}}, [{channels}], [{events}])", pipeline.span)

    def communicate(self, item: m.PlanCommunication, depth: int) -> None:
        """Add what a process does with a channel or an event."""
        match item:
            case Send(channel, payload):
                token = "".join(f"{self.scalar(value)}, " for value in payload).rstrip(" ")
                sent = f"_send_token({self.ends['channel', channel]}, {self.stream}, ({token}))"
                self.lines.put(depth, f"yield from {sent}", item.span)
            case Receive(channel, variables):
                names = self.received(variables)
                self.lines.put(depth, f"{names}yield from _take_token({self.ends['channel', channel]}, {self.stream})", item.span)
            case Consume(channel, variables, body):
                token = self.scope.take("token")
                taken = f"(yield from _take_token({self.ends['channel', channel]}, {self.stream}))"
                self.lines.put(depth, f"while ({token} := {taken}) is not None:", item.span)
                if variables:
                    self.lines.put(depth + 1, f"{self.received(variables)}{token}", item.span)
                self.body(body, depth + 1)
            case RecordEvent(event):
                self.lines.put(depth, f'{self.ends["event", event]}["records"] += 1', item.span)
            case AwaitEvent(event):
                self.lines.put(depth, f"yield from _await_event({self.ends['event', event]}, {self.stream})", item.span)

    def received(self, variables: tuple[s.Var, ...]) -> str:
        """Return the left side of an assignment to the variables of a token's payload."""
        for var in variables:
            self.variables[var] = self.scope.take(python_ident(var.name, "i"))
        return f"{', '.join(self.variables[var] for var in variables)}{',' * (len(variables) == 1)} = " if variables else ""

    def submit(self, task: m.Submit, depth: int) -> None:
        """Append the call of one task."""
        params = self.plan.kernels[task.kernel].kernel.scalar_params
        arguments = [self.view(place.view) for place in task.places]
        arguments += [self.held(value.value, param) for value, param in zip(task.scalars, params, strict=True)]
        self.lines.put(depth, f"{self.functions[task.kernel]}({', '.join(arguments)})", task.span)

    def held(self, value: s.Scalar, param: ScalarParamDecl) -> str:
        """Return a scalar argument converted to its parameter's dtype, as a Python number."""
        text = self.scalar(value)
        if param.dtype is DType.F64 or (param.dtype is DType.I64 and s.scalar_dtype(value).is_integer):
            return text
        if param.dtype.is_bool:
            return f"bool({text})"
        return f"{'int' if param.dtype.is_integer else 'float'}({spell_dtype(param.dtype)}({text}))"

    def view(self, view: View) -> str:
        """Return the rank-2 array of a view; consecutive steps share brackets if possible."""
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
                    entries = [":" if limit is None else f":{limit}" for limit in limits]
                case Permute(order):
                    close()
                    text += ".T" if order == tuple(reversed(range(len(order)))) else f".transpose({', '.join(map(str, order))})"
                    entries, live = [":"] * len(order), list(range(len(order)))
                case Reshape(shape):
                    close()
                    first, last = step.span(len(live))
                    shapes = f"{text}.shape"
                    around = [f"{shapes}[{dim}]" for dim in range(len(live))]
                    text += f".reshape({', '.join((*around[:first], *map(str, shape), *around[last:]))})"
                    entries = [":"] * (first + len(shape) + len(live) - last)
                    live = list(range(len(entries)))
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
        """Return a loop variable, a symbol, or an expression that reads a tensor."""
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
