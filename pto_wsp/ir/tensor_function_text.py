"""Print functions on whole tensors as text, a line a statement, close to NumPy: the dumps `ir/0_tensor/…`.

>>> print(print_function(function, {"div": "/"}))
function rms(x: [t, 64] f32, g: [64] f32):
    square[t, 64] f32 = mul(x, x)
    root[t, 1] f32 = rowmean(square)
    normed[t, 64] f32 = x / root                                                    # group normed
    return normed
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from pto_wsp.errors import unreachable
from pto_wsp.ir import flow
from pto_wsp.ir import tensor_function as t
from pto_wsp.ir.scalar import Const, Scalar, print_scalar
from pto_wsp.ir.view import Cut, Permute, Pick

_INDENT = "    "
_NOTE_COLUMN = 84
_OPERAND = 6      # the precedence of what needs no brackets
NO_INFIX: Mapping[str, str] = MappingProxyType({})


def print_function(function: t.TensorFunction, infix: Mapping[str, str] = NO_INFIX) -> str:
    """Return a function as indented lines. `infix`: the signs of operations on two operands, by the operations' names."""
    written = {param.array.id for param in function.params if param.written}
    params = [f"{param.array.name}: {'inout ' if param.array.id in written else ''}{_type(param.array)}" for param in function.params]
    params += [f"{symbol.name}: scalar{'' if symbol.dtype is None else f' {symbol.dtype}'}" for symbol in function.scalars]
    lines = [f"function {function.name}({', '.join(params)}):"]
    lines += [f"{_INDENT}assume {print_scalar(assumption.condition)}" for assumption in function.assumptions]
    lines += [f"{_INDENT}{_defined(constant.array)} = {len(constant.data)} bytes" for constant in function.constants]
    lines += [f"{_INDENT}{line}".rstrip() for line in _lines(function.body, infix)]
    lines.append(f"{_INDENT}return {', '.join(map(print_array_view, function.results)) or 'nothing'}")
    return "\n".join(lines)


def print_array_view(view: t.ArrayView) -> str:
    """Return a view as source text: `k[h, j:j + 64].T`. A tile is `x[j:+64]`: the last one may be short."""
    text, pending = view.array.name, [":"] * view.array.rank
    live: list[int] = list(range(view.array.rank))       # the bracket entry of each dimension
    shape = list(view.array.shape)

    def flush() -> str:
        entries = list(pending)
        while entries and entries[-1] == ":":
            entries.pop()
        return f"{text}[{', '.join(entries)}]" if entries else text

    for number, step in enumerate(view.steps):
        again = isinstance(step, Pick | Cut | t.TileCut | t.Flip) and pending[live[step.dim]] != ":"
        if again or isinstance(step, Permute | t.Refold):
            text = flush()
            pending, live = [":"] * len(shape), list(range(len(shape)))
        match step:
            case Pick(dim, index):
                pending[live.pop(dim)] = print_scalar(index)
            case Cut(dim, start, stop, by):
                low, high = "" if start == Const(0) else print_scalar(start), "" if stop == shape[dim] else print_scalar(stop)
                pending[live[dim]] = f"{low}:{high}" + (f":{by}" if by != 1 else "")
            case t.TileCut(dim, start, size):
                pending[live[dim]] = f"{print_scalar(start)}:+{size}"
            case t.Flip(dim):
                pending[live[dim]] = "::-1"
            case t.Insert(dim):
                at = live[dim] if dim < len(live) else len(pending)
                pending.insert(at, "None")
                live = [k + (k >= at) for k in live]
                live.insert(dim, at)
            case Permute(order):
                text += ".T" if order == tuple(reversed(range(len(order)))) else f".transpose({', '.join(map(str, order))})"
            case t.Refold(extents):
                text += f".reshape({', '.join(map(print_scalar, extents))})"
        shape = list(t.ArrayView(view.array, view.steps[:number + 1]).shape)
        if isinstance(step, Permute | t.Refold):
            pending, live = [":"] * len(shape), list(range(len(shape)))
    return flush()


def _type(array: t.Array) -> str:
    told = "".join(f" {contract.value}" for contract in array.contracts)
    return f"[{', '.join(map(print_scalar, array.shape))}] {array.dtype}{told}"


def _defined(array: t.Array) -> str:
    return f"{array.name}{_type(array)}"


def _lines(body: t.Body, infix: Mapping[str, str]) -> Iterator[str]:
    if not body.items:
        yield "pass"
    for item in body.items:
        match item:
            case flow.Do(statement):
                yield _noted(_statement(statement, infix), getattr(statement, "group", ""))
            case flow.Sequence():
                yield from _lines(item, infix)
            case flow.Loop(var, start, stop, step, ordered, inner, note):
                bounds = [start, stop] if step == Const(1) else [start, stop, step]
                if bounds[0] == Const(0) and len(bounds) == 2:
                    del bounds[0]
                yield _noted(f"for {var.name} in {'loop' if ordered else 'each'}({', '.join(map(print_scalar, bounds))}):", note.group)
                yield from (_INDENT + line for line in _lines(inner, infix))
            case flow.Choice(branches, otherwise):
                for number, branch in enumerate(branches):
                    yield _noted(f"{'elif' if number else 'if'} {print_scalar(branch.condition)}:", branch.note.group)
                    yield from (_INDENT + line for line in _lines(branch.body, infix))
                if otherwise.items:
                    yield "else:"
                    yield from (_INDENT + line for line in _lines(otherwise, infix))
            case _:
                unreachable(f"{type(item).__name__} at the tensor level")


def _noted(line: str, group: str) -> str:
    return f"{line:{_NOTE_COLUMN - len(_INDENT) - 1}} # group {group}" if group else line


def _statement(statement: t.Statement, infix: Mapping[str, str]) -> str:
    match statement:
        case t.Apply(op, (left, right), results, ()) if op in infix:
            return f"{_results(results)} = {_operand(left)} {infix[op]} {_operand(right)}"
        case t.Apply(op, operands, results, attrs):
            given = [*(_operand(one, 0) for one in operands), *(f"{name}={_value(value)}" for name, value in attrs)]
            return f"{_results(results)} = {op}({', '.join(given)})"
        case t.Make(array, fill):
            return f"{_defined(array)} = {'undefined' if fill is None else repr(fill)}"
        case t.Put(target, value, table, adds):
            into = print_array_view(target)
            if table is not None:
                into += f".at[{print_array_view(table)}]"
            elif into == target.array.name:
                into += "[:]"
            return f"{into} {'+=' if adds else '='} {_operand(value, 0)}"
        case t.Show(label, value):
            return f"print({label!r}, {print_array_view(value)})"


def _results(results: tuple[t.Array, ...]) -> str:
    return ", ".join(map(_defined, results))


def _operand(operand: t.Operand, level: int = _OPERAND) -> str:
    return print_array_view(operand) if isinstance(operand, t.ArrayView) else print_scalar(operand, level)


def _value(value: object) -> str:
    return print_scalar(value) if isinstance(value, Scalar) else str(value)
