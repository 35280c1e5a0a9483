"""Compute once what is computed twice.

    %1 = exp %0
    %2 = exp %0
    %3 = add %1, %2          →      %3 = add %1, %1

Loads and reads of buffers count as equal while nothing is stored, or written to the buffer, between them; a load that repeats one
before it cannot fail where that one passed, so its guard goes with it. Bodies of loops know what was computed before the loop.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import partial

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import Body, bodies_of, buffers_written, map_bodies, map_uses, stores
from pto_wsp.ops.spec import Expand
from pto_wsp.ops.table import find
from pto_wsp.plan.kernel.context import KernelContext


def merge_common(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel with equal results computed once."""
    return replace(kernel, body=_merged(kernel.body, {}, {}))


def _merged(body: Body, names: Mapping[int, k.Value], known: Mapping[Hashable, k.Value]) -> Body:
    """`names`: values that others replace; `known`: what was computed, by what it was computed from."""
    names, known = dict(names), dict(known)
    out: list[k.Stmt] = []
    for stmt in body:
        stmt = map_uses(stmt, lambda value: names.get(value.id, value))
        changed = stores(stmt), buffers_written(stmt)
        if bodies_of(stmt):
            known = _after(known, *changed)
            stmt = map_bodies(stmt, partial(_merged, names=names, known=known))
        elif isinstance(stmt, k.Compute | k.Load | k.Read) and not _is_free(stmt):
            key = _key(stmt)
            if key in known:
                names[stmt.result.id] = known[key]
                continue
            known[key] = stmt.result
        else:
            known = _after(known, *changed)
        out.append(stmt)
    return tuple(out)


def _is_free(stmt: k.Stmt) -> bool:
    """Tell whether a result costs nothing where it is used, and would cost memory if it were kept for a later use."""
    return isinstance(stmt, k.Compute) and isinstance(find(stmt.op), Expand)


def _key(stmt: k.Compute | k.Load | k.Read) -> tuple[Hashable, ...]:
    """Numbers go by their text: 0.0 and -0.0 are equal, and not the same."""
    match stmt:
        case k.Compute(result, op, operands, attrs):
            return "compute", op, repr(operands), repr(attrs), result.type
        case k.Load():
            return "load", repr(replace(stmt, result=k.Value(0, stmt.result.type), guard=None))
        case k.Read(_, buffer):
            return "read", buffer.id


def _after(known: Mapping[Hashable, k.Value], stored: frozenset[str], written: frozenset[int]) -> dict[Hashable, k.Value]:
    """Return what is still known after stores and writes. Arguments may overlap, so a store ends what any load has given."""
    def holds(key: Hashable) -> bool:
        match key:
            case ("load", _):
                return not stored
            case ("read", buffer):
                return buffer not in written
            case _:
                return True

    return {key: value for key, value in known.items() if holds(key)}
