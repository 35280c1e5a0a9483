"""Take the value that was written to a buffer where it is read back and nothing may have changed it.

    acc[:] = %1
    %2 = read acc
    store y, %2              →      acc[:] = %1; store y, %1
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import Body, bodies_of, buffers_written, map_bodies, map_uses
from pto_wsp.plan.kernel.context import KernelContext


def forward_buffers(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel with reads of a buffer replaced by the value that it certainly holds."""
    return replace(kernel, body=_forwarded(kernel.body, {}, {}))


def _forwarded(body: Body, names: Mapping[int, k.Value], held: Mapping[int, k.Value]) -> Body:
    """`names`: what replaces the results of reads so far; `held`: the value of each buffer that has a known one."""
    names, held = dict(names), dict(held)
    out: list[k.Stmt] = []
    for stmt in body:
        stmt = map_uses(stmt, lambda value: names.get(value.id, value))
        match stmt:
            case k.Read(result, buffer) if buffer.id in held:
                names[result.id] = held[buffer.id]
                continue
            case k.Write(buffer, value):
                held[buffer.id] = value
            case k.Alloc(buffer) | k.Accumulate(buffer):
                held.pop(buffer.id, None)
            case _ if bodies_of(stmt):
                written = buffers_written(stmt)
                held = {buffer: value for buffer, value in held.items() if buffer not in written}
                stmt = map_bodies(stmt, partial(_forwarded, names=names, held=held))
            case _:
                pass
        out.append(stmt)
    return tuple(out)
