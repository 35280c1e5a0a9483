"""Rewrite a kernel's statements into what C is best printed from; the meaning stays.

- `a @ b + u` becomes a product that starts from u:        add(matmul(a, b), u)            →  matmul(a, b, u)
- a buffer read where it was last written is that value:   Write(acc, v); w = Read(acc)    →  w is v
- a product kept in a buffer accumulates in place:         Write(acc, matmul(a, b, u))     →  Write(acc, u); acc += a @ b
- what nothing uses goes, except loads, which may be guarded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import TypeAlias, assert_never

from pto_wsp.expr import kernel as k
from pto_wsp.ops.entry import Operator
from pto_wsp.ops.spec import Elementwise, Matmul
from pto_wsp.ops.table import find
from pto_wsp.source import UNKNOWN, Span
from pto_wsp.types.scalar import Scalar, Var
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Accumulate:
    """`buffer += lhs @ rhs`."""

    buffer: k.Buffer
    lhs: k.Value
    rhs: k.Value
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Loop:
    """`For` with a rewritten body."""

    var: Var
    start: Scalar
    stop: Scalar
    step: Scalar
    body: tuple[Stmt, ...]
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


Stmt: TypeAlias = k.Compute | k.Load | k.Store | k.Alloc | k.Read | k.Write | Accumulate | Loop


def simplify(body: tuple[k.Stmt, ...]) -> tuple[Stmt, ...]:
    """Return the statements rewritten."""
    return _live(_accumulating(_forwarded(_fused_products(_loops(body)), {})))


def uses_of(stmt: Stmt) -> tuple[k.Value, ...]:
    """Return the values that a statement reads, those inside a loop's body included."""
    match stmt:
        case k.Compute(_, _, operands):
            return tuple(o for o in operands if isinstance(o, k.Value))
        case k.Store() | k.Write():
            return (stmt.value,)
        case Accumulate(_, lhs, rhs):
            return (lhs, rhs)
        case Loop():
            return tuple(value for inner in stmt.body for value in uses_of(inner))
        case k.Load() | k.Alloc() | k.Read():
            return ()
        case _:
            assert_never(stmt)


def result_of(stmt: Stmt) -> k.Value | None:
    """Return the value that a statement defines."""
    return stmt.result if isinstance(stmt, k.Compute | k.Load | k.Read) else None


def writes_buffer(stmt: Stmt, buffer: k.Buffer) -> bool:
    """Tell whether a statement changes the buffer, inside a loop's body included."""
    match stmt:
        case k.Write() | k.Alloc() | Accumulate():
            return stmt.buffer.id == buffer.id
        case Loop():
            return any(writes_buffer(inner, buffer) for inner in stmt.body)
        case _:
            return False


def _touches_buffer(stmt: Stmt, buffer: k.Buffer) -> bool:
    if isinstance(stmt, Loop):
        return any(_touches_buffer(inner, buffer) for inner in stmt.body)
    return writes_buffer(stmt, buffer) or (isinstance(stmt, k.Read) and stmt.buffer.id == buffer.id)


def _live(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    used: set[int] = set()
    for stmt in reversed(body):
        result = result_of(stmt)
        if result is not None and result.id not in used and not isinstance(stmt, k.Load):
            continue
        if isinstance(stmt, Loop):
            stmt = replace(stmt, body=_live(stmt.body))
        used.update(value.id for value in uses_of(stmt))
        out.append(stmt)
    return tuple(reversed(out))


def _loops(body: Iterable[k.Stmt]) -> tuple[Stmt, ...]:
    return tuple(Loop(s.var, s.start, s.stop, s.step, _loops(s.body), s.span) if isinstance(s, k.For) else s for s in body)


def _fused_products(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    counts = Counter(value.id for stmt in body for value in uses_of(stmt))
    products = {s.result.id: s for s in body if isinstance(s, k.Compute) and isinstance(find(s.op), Matmul)
                and len(s.operands) == 2 and counts[s.result.id] == 1}
    out: list[Stmt] = []
    gone: set[int] = set()
    for stmt in body:
        if isinstance(stmt, Loop):
            stmt = replace(stmt, body=_fused_products(stmt.body))
        elif isinstance(stmt, k.Compute) and _is_addition(stmt):
            for product, other in (stmt.operands, stmt.operands[::-1]):
                if (isinstance(product, k.Value) and product.id in products and isinstance(other, k.Value)
                        and other.type == product.type):
                    matmul = products[product.id]
                    gone.add(product.id)
                    stmt = k.Compute(stmt.result, matmul.op, (*matmul.operands, other), matmul.attrs, stmt.span)
                    break
        out.append(stmt)
    return tuple(s for s in out if not (isinstance(s, k.Compute) and s.result.id in gone))


def _is_addition(stmt: k.Compute) -> bool:
    entry = find(stmt.op)
    return isinstance(entry, Elementwise) and entry.c == Operator("+")


def _forwarded(body: tuple[Stmt, ...], known: Mapping[int, k.Value]) -> tuple[Stmt, ...]:
    """Replace reads of a buffer by the value written to it before in the same body. `known`: replaced values so far."""
    held: dict[int, k.Value] = {}
    names = dict(known)
    out: list[Stmt] = []
    for stmt in body:
        stmt = _renamed(stmt, names)
        match stmt:
            case k.Read(result, buffer) if buffer.id in held:
                names[result.id] = held[buffer.id]
                continue
            case k.Write(buffer, value):
                held[buffer.id] = value
            case k.Alloc(buffer):
                held.pop(buffer.id, None)
            case Loop():
                held = {}
                stmt = replace(stmt, body=_forwarded(stmt.body, names))
            case _:
                pass
        out.append(stmt)
    return tuple(out)


def _renamed(stmt: Stmt, names: Mapping[int, k.Value]) -> Stmt:
    match stmt:
        case k.Compute(_, _, operands):
            return replace(stmt, operands=tuple(names.get(o.id, o) if isinstance(o, k.Value) else o for o in operands))
        case k.Write():
            return replace(stmt, value=names.get(stmt.value.id, stmt.value))
        case k.Store():
            return replace(stmt, value=names.get(stmt.value.id, stmt.value))
        case k.Load() | k.Alloc() | k.Read() | Accumulate() | Loop():
            return stmt
        case _:
            assert_never(stmt)


def _accumulating(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    out: list[Stmt] = [replace(s, body=_accumulating(s.body)) if isinstance(s, Loop) else s for s in body]
    for write in [s for s in out if isinstance(s, k.Write)]:
        at = next(n for n, s in enumerate(out) if s is write)
        made = next((n for n, s in enumerate(out) if isinstance(s, k.Compute) and s.result.id == write.value.id), None)
        product = None if made is None else out[made]
        if made is None or not isinstance(product, k.Compute) or not isinstance(find(product.op), Matmul):
            continue
        used = [value.id for stmt in out for value in uses_of(stmt)].count(product.result.id)
        if len(product.operands) != 3 or used != 1:
            continue
        lhs, rhs, start = product.operands
        if not (isinstance(lhs, k.Value) and isinstance(rhs, k.Value) and isinstance(start, k.Value)):
            continue
        ready = next((n + 1 for n, s in enumerate(out) if (r := result_of(s)) is not None and r.id == start.id), 0)
        if any(_touches_buffer(stmt, write.buffer) for stmt in out[ready:at]):
            continue
        out[at] = Accumulate(write.buffer, lhs, rhs, write.span)
        del out[made]
        source = out[ready - 1] if ready else None
        if not (isinstance(source, k.Read) and source.buffer.id == write.buffer.id):
            out.insert(ready, k.Write(write.buffer, start, write.span))
    return tuple(out)
