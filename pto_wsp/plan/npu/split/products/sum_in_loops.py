"""Let a loop add its products up from zero, where the buffer that keeps them holds something else before it or is given something else.

    acc[:] = bias                            acc[:] = bias
    for i in range(0, n, 1):                 sum = alloc Tile[…], init=0
        %3 = read acc                        for i in range(0, n, 1):
        %4 = matmul %1, %2                       %3 = read sum; %4 = matmul %1, %2; %5 = add %3, %4; sum[:] = %5
        %5 = add %3, %4                      %6 = read acc; %7 = read sum; %8 = add %6, %7
        acc[:] = %5                  →       acc[:] = %8

One sum crosses from the cube core then, and not a product for each turn.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import Body, map_bodies, walk
from pto_wsp.ops.entries.elementwise import add
from pto_wsp.plan.kernel.context import KernelContext
from pto_wsp.plan.kernel.values import fresh_ids, use_counts
from pto_wsp.plan.npu.split.products.accumulate_products import accumulations, accumulators
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class _Known:
    """The additions of products to buffers, by id() of their write and of their read, and names for what is new."""

    writes: frozenset[int]
    reads: frozenset[int]
    value_ids: Iterator[int]
    buffer_ids: Iterator[int]


def sum_in_loops(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel with loops that do nothing to a buffer but add products to it adding them up in one of their own."""
    del context
    counts = use_counts(kernel.body)
    found = dict(accumulations(kernel.body, counts))
    mixed = frozenset(buffer for buffer, _ in found.values()) - accumulators(kernel, found)
    alone = {id(stmt) for stmt in walk(kernel.body) if isinstance(stmt, k.Write) and counts[stmt.value.id] == 1}
    ids = [stmt.buffer.id for stmt in walk(kernel.body) if isinstance(stmt, k.Alloc)]
    known = _Known(frozenset(found) & alone, frozenset(id(read) for _, made in found.values() for read in made.reads), fresh_ids(kernel),
                   itertools.count(max(ids, default=-1) + 1))
    return replace(kernel, body=_summing(kernel.body, mixed, {}, known))


def _summing(body: Body, mixed: frozenset[int], names: Mapping[int, k.Buffer], known: _Known) -> Body:
    """`mixed`: buffers that are looked at; `names`: what stands in for buffers here."""
    out: list[k.Stmt] = []
    for stmt in body:
        match stmt:
            case k.For(span=span):
                own = {buffer: replace(buffer, id=next(known.buffer_ids), name=f"{buffer.name}_sum")
                       for buffer in dict.fromkeys(_touched(stmt)) if buffer.id in mixed and _only_added(stmt, buffer, known)}
                out += (k.Alloc(total, 0, span) for total in own.values())
                inside = {**names, **{buffer.id: total for buffer, total in own.items()}}
                left = mixed - {buffer.id for buffer in own}
                out.append(replace(stmt, body=_summing(stmt.body, left, inside, known)))
                for buffer, total in own.items():
                    before, more, after = (k.Value(next(known.value_ids), buffer.type) for _ in range(3))
                    out += (k.Read(before, buffer, span), k.Read(more, total, span), k.Compute(after, add.name, (before, more), span=span),
                            k.Write(buffer, after, span))
            case k.Read() | k.Write() if stmt.buffer.id in names:
                out.append(replace(stmt, buffer=names[stmt.buffer.id]))
            case _:
                out.append(map_bodies(stmt, partial(_summing, mixed=mixed, names=names, known=known)))
    return tuple(out)


def _touched(stmt: k.Stmt) -> Iterator[k.Buffer]:
    yield from (inner.buffer for inner in walk((stmt,)) if isinstance(inner, k.Alloc | k.Read | k.Write | k.Accumulate))


def _only_added(loop: k.For, buffer: k.Buffer, known: _Known) -> bool:
    """Tell whether all that a loop does to a buffer is to add products to it."""
    return all(id(inner) in known.writes | known.reads for inner in walk(loop.body)
               if isinstance(inner, k.Alloc | k.Read | k.Write) and inner.buffer.id == buffer.id)
