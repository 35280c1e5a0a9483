"""Print kernel IR as text: the output of `k.ir`.

>>> print(print_kernel(kernel))
kernel double(x: In[Tile[4, 8, f32]], y: Out[Tile[4, 8, f32]]):
    %0 = load x                                        # Tile[4, 8, f32]
    %1 = mul %0, 2.0                                   # Tile[4, 8, f32]
    store y, %1
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import assert_never

from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel_walk import bodies_of, map_bodies, verb_of
from pto_wsp.ir.rewrite import rewrite
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.source import UNKNOWN, Span

_INDENT = "    "
_TYPE_COLUMN = 54


def print_kernel(kernel: k.Kernel) -> str:
    """Return the kernel as indented lines: values are %n; buffers and loop variables have the user's name, with a number if two share it.

    `pto_wsp.parse` reads the text of a traced kernel back.
    """
    names = _buffer_names(kernel.body)
    kernel = _with_own_variables(kernel)
    params = ", ".join(print_param(param) for param in kernel.params)
    body = list(_lines(kernel.body, 1, names))
    for own in kernel.bodies:
        body += _own_body(own)
    body = body or [f"{_INDENT}(nothing)"]
    return "\n".join([f"kernel {kernel.name}({params}):", *body, *_arena(kernel)])


def lines_with_spans(kernel: k.Kernel) -> tuple[tuple[Span, str], ...]:
    """Return the lines of a kernel's body, each with the place of its statement in the user's source."""
    body = _with_own_variables(kernel).body
    return tuple(zip(_spans(body), _lines(body, 0, _buffer_names(kernel.body)), strict=True))


def _spans(body: tuple[k.Stmt, ...]) -> Iterator[Span]:
    """Yield the span of each line that `_lines` yields."""
    for stmt in body:
        span = UNKNOWN if isinstance(stmt, k.Rows | k.Columns) else stmt.span
        yield span
        for number, inner in enumerate(bodies_of(stmt)):
            if number and inner:
                yield span      # `otherwise:`
            if inner or not number:
                yield from _spans(inner) if inner else (span,)


def print_param(param: k.Param) -> str:
    """Return a parameter as declared: `x: In[Tile[16, 128, f32]]`."""
    match param:
        case k.TileParam(name, role, type, combine=""):
            return f"{name}: {role.value}[{type!r}]"
        case k.TileParam(name, _, type, combine=how):
            return f"{name}: Acc[{type!r}{'' if how == 'sum' else f', {how}'}]"
        case k.TensorParam(name, role, dtype):
            return f"{name}: {role.value}[Tensor {dtype}]"
        case k.ScalarParamDecl(name, dtype):
            return f"{name}: Scalar[{dtype}]"
        case _:
            assert_never(param)


def _own_body(own: k.OwnBody) -> Iterator[str]:
    given = [f"{name}={value!r}" for name, value in own.constants]
    given += [f"scratch_bytes={own.scratch_bytes}"] if own.scratch_bytes or "scratch_bytes" in dict(own.constants) else []
    yield f"{_INDENT}{own.form.value}{' with ' if given else ''}{', '.join(given)}:"
    for line in own.text.split("\n"):
        plain = line.rstrip() == line and line.isprintable()
        yield f"{_INDENT}{_INDENT}| {line}".rstrip() if plain else f"{_INDENT}{_INDENT}|= {line!r}"


def _buffer_names(body: tuple[k.Stmt, ...]) -> dict[int, str]:
    buffers = list(_allocs(body))
    shared = {b.name for b in buffers if sum(other.name == b.name for other in buffers) > 1}
    return {b.id: f"{b.name}.{b.id}" if b.name in shared else b.name for b in buffers}


def _with_own_variables(kernel: k.Kernel) -> k.Kernel:
    """Return the kernel with a number behind the name of a loop variable or item that something around it is called, too."""
    taken = {*(param.name for param in kernel.params), "inf", "nan"}

    def renamed(body: tuple[k.Stmt, ...], names: frozenset[str]) -> tuple[k.Stmt, ...]:
        out: list[k.Stmt] = []
        while body:
            stmt, body = body[0], body[1:]
            match stmt:
                case k.For():
                    out.append(loop(stmt, names))
                case k.Item(item):
                    own = item if item.name not in names else replace(item, name=f"{item.name}.{item.id}")
                    out.append(replace(stmt, item=own))
                    if own is not item:
                        body = rewrite(body, lambda node, item=item, own=own: own if node == item else None)  # type: ignore[misc]
                    names |= {own.name}
                case _:
                    out.append(map_bodies(stmt, partial(renamed, names=names)))
        return tuple(out)

    def loop(stmt: k.For, names: frozenset[str]) -> k.For:
        var = stmt.var if stmt.var.name not in names else s.Var(f"{stmt.var.name}.{stmt.var.id}", stmt.var.id)
        body = renamed(stmt.body, names | {stmt.var.name})
        if var is stmt.var:
            return replace(stmt, body=body)
        return replace(stmt, var=var, body=rewrite(body, lambda node: var if node == stmt.var else None))

    return replace(kernel, body=renamed(kernel.body, frozenset(taken)))


def _allocs(body: tuple[k.Stmt, ...]) -> Iterator[k.Buffer]:
    for stmt in body:
        if isinstance(stmt, k.Alloc):
            yield stmt.buffer
        for inner in bodies_of(stmt):
            yield from _allocs(inner)


def _lines(body: tuple[k.Stmt, ...], depth: int, buffers: dict[int, str]) -> Iterator[str]:
    pad = _INDENT * depth
    for stmt in body:
        match stmt:
            case k.Compute(result, op, operands, attrs):
                shown = [_operand(o) for o in operands] + [f"{name}={_attr(value)}" for name, value in attrs]
                yield _defined(pad, result, f"{op} {', '.join(shown)}{_guard(stmt)}")
            case k.Load(result, param, row, col):
                transpose = ", transpose" if stmt.transpose else ""
                fill = _fill(stmt.fill)
                copy = ", copy" if stmt.copy else ""
                yield _defined(pad, result, f"load {param}{_at(row, col)}{_valid(stmt)}{fill}{transpose}{copy}{_guard(stmt)}")
            case k.Store(param, value, row, col):
                past = ", past the caches" if stmt.streams else ""
                yield f"{pad}store {param}{_at(row, col)}, %{value.id}{_valid(stmt)}{_guard(stmt)}{past}"
            case k.Gather(result, param, index, col, valid, fill):
                shown_fill = _fill(fill)
                rows = "" if valid is None else f", valid={print_scalar(valid)}"
                yield _defined(pad, result, f"gather {param}[%{index.id}, {print_scalar(col)}]{rows}{shown_fill}{_guard(stmt)}")
            case k.Scatter(param, index, value, col, valid):
                rows = "" if valid is None else f", valid={print_scalar(valid)}"
                yield f"{pad}{verb_of(stmt)} {param}[%{index.id}, {print_scalar(col)}], %{value.id}{rows}{_guard(stmt)}"
            case k.Alloc(buffer, init):
                yield f"{pad}{buffers[buffer.id]} = alloc {buffer.type!r}" + ("" if init is None else f", init={init!r}")
            case k.Read(result, buffer):
                yield _defined(pad, result, f"read {buffers[buffer.id]}")
            case k.Write(buffer, value):
                yield f"{pad}{buffers[buffer.id]}[:] = %{value.id}"
            case k.WritePart(buffer, value, row, col):
                rows, cols = (f"{print_scalar(at)} : {print_scalar(s.add(at, s.Const(n)))}"
                              for at, n in zip((row, col), value.type.shape, strict=True))
                yield f"{pad}{buffers[buffer.id]}[{rows}, {cols}] = %{value.id}{_guard(stmt)}"
            case k.Accumulate(buffer, lhs, rhs, attrs):
                shown = [f"%{lhs.id} @ %{rhs.id}"] + [f"{name}={_attr(value)}" for name, value in attrs]
                yield f"{pad}{buffers[buffer.id]} += {', '.join(shown)}"
            case k.Item(item, value, row, col):
                yield f"{pad}{item.name} = item %{value.id}{_at(row, col)}{_guard(stmt)}".ljust(_TYPE_COLUMN) + f" # {item.dtype}"
            case k.Print(_, label, value):
                yield f"{pad}print {f'{label!r}, ' if label else ''}{_operand(value)}{_valid(stmt)}"
            case k.FiniteCheck(_, value, what, sources):
                yield f"{pad}check %{value.id} of {what}, from {', '.join(_operand(source.operand) for source in sources) or 'nothing'}"
            case k.For(var, start, stop, step, inner):
                bounds = ", ".join(print_scalar(bound) for bound in (start, stop, step))
                yield f"{pad}for {var.name} in range({bounds}):"
                yield from _inner(inner, depth + 1, buffers)
            case k.If(condition, then, other):
                yield f"{pad}when {print_scalar(condition)}:"
                yield from _inner(then, depth + 1, buffers)
                if other:
                    yield f"{pad}otherwise:"
                    yield from _inner(other, depth + 1, buffers)
            case k.Rows(rows, inner, vector, of):
                yield f"{pad}rows {rows}{', vector' if vector else ''}{f', those of {of}' if of else ''}:"
                yield from _inner(inner, depth + 1, buffers)
            case k.Columns(cols, inner, lanes):
                yield f"{pad}columns {cols}{f', {lanes} lanes' if lanes > 1 else ''}:"
                yield from _inner(inner, depth + 1, buffers)
            case _:
                assert_never(stmt)


def _arena(kernel: k.Kernel) -> Iterator[str]:
    """Yield the map of the scratch arena: each slot, its bytes and its live range."""
    if kernel.arena:
        yield f"{_INDENT}scratch {kernel.arena_bytes} bytes:"
    for slot in kernel.arena:
        where = f"{slot.offset:8} .. {slot.offset + slot.type.size_bytes:<8}"
        yield f"{_INDENT}{where} {slot.name:24} {slot.kind.value:8} statements {slot.first} to {slot.last}"


def _inner(body: tuple[k.Stmt, ...], depth: int, buffers: dict[int, str]) -> Iterator[str]:
    return _lines(body, depth, buffers) if body else iter((f"{_INDENT * depth}(nothing)",))


def _defined(pad: str, result: k.Value, text: str) -> str:
    return f"{pad}%{result.id} = {text}".ljust(_TYPE_COLUMN) + f" # {result.type!r}"


def _operand(operand: k.Operand) -> str:
    match operand:
        case k.Value(id):
            return f"%{id}"
        case k.ScalarOperand(value):
            return print_scalar(value)
        case _:
            assert_never(operand)


def _attr(value: k.Attr) -> str:
    return str(value) if isinstance(value, DType) else repr(value)


def _at(row: s.Scalar, col: s.Scalar) -> str:
    whole = row == s.Const(0) and col == s.Const(0)
    return "" if whole else f"[{print_scalar(row)}, {print_scalar(col)}]"


def _fill(value: s.Number) -> str:
    """Return the option of a fill that is not 0; -0.0 is not."""
    return f", fill={value!r}" if value or str(value) == "-0.0" else ""


def _valid(stmt: k.Load | k.Store | k.Print) -> str:
    if stmt.valid_rows is None and stmt.valid_cols is None:
        return ""
    shown = (":" if extent is None else print_scalar(extent) for extent in (stmt.valid_rows, stmt.valid_cols))
    return f", valid=({', '.join(shown)})"


def _guard(stmt: k.Guarded) -> str:
    return "" if stmt.guard is None else f", guard {stmt.guard}"
