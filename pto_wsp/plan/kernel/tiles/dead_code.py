"""Drop what nothing uses: results, writes to a buffer that is not read before the next one, buffers, empty loops.

    acc = alloc Tile[4, 8, f32], init=0.0
    acc[:] = %0
    %1 = mul %0, 2.0
    store y, %0              →      store y, %0

Stores stay, and so does what is guarded: the run may end there. A buffer whose init nothing reads is not filled.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import Body, bodies_of, map_bodies, result_of, uses_of, walk
from pto_wsp.plan.kernel.context import KernelContext


def drop_dead_code(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel without statements that nothing depends on."""
    body = kernel.body
    while (live := _live(body, frozenset(), {b.id for b in _used_buffers(body)})) != body:
        body = live
    return replace(kernel, body=body)


def verify_after_drop_dead_code(kernel: k.Kernel) -> None:
    """Every result is used but guarded ones; every buffer that is made is written or read; no loop is empty."""
    used = {value.id for stmt in kernel.body for value in uses_of(stmt)}
    for stmt in walk(kernel.body):
        result = result_of(stmt)
        assert result is None or result.id in used or _may_fail(stmt), f"nothing uses %{result.id}"
        assert not bodies_of(stmt) or any(bodies_of(stmt)), "a loop is empty"
    made = {stmt.buffer.id for stmt in walk(kernel.body) if isinstance(stmt, k.Alloc)}
    assert made == {buffer.id for buffer in _used_buffers(kernel.body)}, "a buffer is made for nothing"


def _used_buffers(body: Body) -> set[k.Buffer]:
    return {stmt.buffer for stmt in walk(body) if isinstance(stmt, k.Read | k.Write | k.Accumulate)}


def _live(body: Body, after: frozenset[int], in_use: set[int]) -> Body:
    """`after`: the buffers whose contents are read behind the body; `in_use`: those that some statement reads or writes."""
    out: list[k.Stmt] = []
    used: set[int] = set()
    needed = set(after)
    for stmt in reversed(body):
        result = result_of(stmt)
        if result is not None and result.id not in used and not _may_fail(stmt):
            continue
        match stmt:
            case k.Write(buffer) if buffer.id not in needed:
                continue
            case k.Write(buffer):
                needed.discard(buffer.id)
            case k.Accumulate(buffer) if buffer.id not in needed:
                continue
            case k.Alloc(buffer) if buffer.id not in in_use:
                continue
            case k.Alloc(buffer, init):
                wanted = (init or 0) if buffer.id in needed else None
                stmt = stmt if wanted == init else replace(stmt, init=wanted)
                needed.discard(buffer.id)
            case k.Read(_, buffer):
                needed.add(buffer.id)
            case _ if bodies_of(stmt):
                needed |= {inner.buffer.id for inner in walk((stmt,)) if isinstance(inner, k.Read)}   # the next iteration reads
                stmt = map_bodies(stmt, partial(_live, after=frozenset(needed), in_use=in_use))
                if not any(bodies_of(stmt)):
                    continue
            case _:
                pass
        used.update(value.id for value in uses_of(stmt))
        out.append(stmt)
    return tuple(reversed(out))


def _may_fail(stmt: k.Stmt) -> bool:
    return isinstance(stmt, k.Guarded) and stmt.guard is not None
