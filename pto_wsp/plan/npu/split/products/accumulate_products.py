"""Add products up on the core that makes them.

    %3 = read acc
    %4 = matmul %1, %2
    %5 = add %3, %4
    acc[:] = %5              →      acc += %1 @ %2

    %4 = matmul %0, %1
    %5 = matmul %2, %3              sum = alloc Tile[…], init=0
    %6 = add %4, %5          →      sum += %0 @ %1; sum += %2 @ %3; %6 = read sum

A buffer is such an accumulator when it starts from zero and nothing else is ever written to it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import Body, bodies_of, map_bodies, result_of, touches_buffer, uses_of, walk
from pto_wsp.ops.entries.elementwise import add
from pto_wsp.plan.kernel.values import use_counts
from pto_wsp.plan.npu.split.products.part_products import is_product
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Sum:
    """Terms that are added up: products, reads of buffers, and other values; `inner`: the statements that this needs no more."""

    products: tuple[k.Compute, ...]
    reads: tuple[k.Read, ...]
    others: tuple[k.Operand, ...]
    inner: frozenset[int]            # id() of statements


@dataclass(slots=True)
class _Rewriting:
    """What is known of the kernel, and names for new buffers."""

    counts: Counter[int]
    value_ids: Iterator[int]
    first_sum: int                       # buffers for sums are numbered from here on, by their value
    excluded: frozenset[int]
    writes: dict[int, Sum] = field(default_factory=dict)    # id() of a write to an accumulator -> what is added


def accumulate_products(kernel: k.Kernel, excluded: frozenset[int] = frozenset()) -> k.Kernel:
    """Return the kernel with sums of products as accumulation in place, in other buffers than `excluded`."""
    buffers = [stmt.buffer.id for stmt in walk(kernel.body) if isinstance(stmt, k.Alloc)]
    values = [result.id for stmt in walk(kernel.body) if (result := result_of(stmt)) is not None]
    rewriting = _Rewriting(use_counts(kernel.body), itertools.count(max(values, default=-1) + 1), max(buffers, default=-1) + 1, excluded)
    found = dict(accumulations(kernel.body, rewriting.counts))
    owned = accumulators(kernel, found) - excluded
    rewriting.writes = {write: made for write, (buffer, made) in found.items() if buffer in owned}
    return replace(kernel, body=_rewritten(kernel.body, rewriting))


def accumulators(kernel: k.Kernel, found: Mapping[int, tuple[int, Sum]]) -> frozenset[int]:
    """Return the buffers that start from zero and that only additions of products change. `found`: those, by id() of the write."""
    fit = {buffer for buffer, _ in found.values()}
    for stmt in walk(kernel.body):
        if (isinstance(stmt, k.Alloc) and stmt.init not in (None, 0)) or (isinstance(stmt, k.Write) and id(stmt) not in found):
            fit.discard(stmt.buffer.id)
    return frozenset(fit)


def accumulations(body: Body, counts: Counter[int]) -> Iterator[tuple[int, tuple[int, Sum]]]:
    """Yield id() and buffer of each write that adds products to what its buffer held, with what is added."""
    made = _made(body)
    for at, stmt in enumerate(body):
        for inner in bodies_of(stmt):
            yield from accumulations(inner, counts)
        if not isinstance(stmt, k.Write):
            continue
        terms = _terms(stmt.value, made, counts)
        if terms.others or not terms.products or [read.buffer.id for read in terms.reads] != [stmt.buffer.id]:
            continue
        read_at = next(n for n, other in enumerate(body) if other is terms.reads[0])
        between = body[read_at + 1:at]
        if not any(touches_buffer(other, stmt.buffer) or stmt.value in uses_of(other) for other in between):
            yield id(stmt), (stmt.buffer.id, terms)


def _rewritten(body: Body, rewriting: _Rewriting) -> Body:
    gone: set[int] = set()
    plain: set[int] = set()            # additions within a sum of too few products: theirs are fewer
    sums: dict[int, Sum] = {}          # by id() of the addition that ends it
    made = _made(body)
    for stmt in reversed(body):         # the last addition of a sum comes before its others
        if isinstance(stmt, k.Write) and id(stmt) in rewriting.writes:
            gone |= rewriting.writes[id(stmt)].inner
        elif isinstance(stmt, k.Compute) and _is_addition(stmt) and id(stmt) not in gone and id(stmt) not in plain:
            found = _terms(stmt.result, made, rewriting.counts, reads=False)
            if len(found.products) > 1 and rewriting.first_sum + stmt.result.id not in rewriting.excluded:
                sums[id(stmt)] = found
                gone |= found.inner - {id(stmt)}
            elif len(found.products) <= 1:
                plain |= found.inner
    out: list[k.Stmt] = []
    for stmt in body:
        if id(stmt) in gone:
            continue
        if isinstance(stmt, k.Write) and id(stmt) in rewriting.writes:
            out += _added(stmt.buffer, rewriting.writes[id(stmt)])
            if rewriting.counts[stmt.value.id] > 1:      # what follows asks for it too
                out.append(k.Read(stmt.value, stmt.buffer, stmt.span))
        elif isinstance(stmt, k.Compute) and id(stmt) in sums:
            out += _summed(stmt, sums[id(stmt)], rewriting)
        else:
            out.append(map_bodies(stmt, lambda inner: _rewritten(inner, rewriting)))
    return tuple(out)


def _made(body: Body) -> Mapping[int, k.Compute | k.Read]:
    return {stmt.result.id: stmt for stmt in body if isinstance(stmt, k.Compute | k.Read)}


def _terms(value: k.Value, made: Mapping[int, k.Compute | k.Read], counts: Counter[int], *, reads: bool = True) -> Sum:
    """Return what is added up to `value` in this body, through results that nothing else uses."""
    products: list[k.Compute] = []
    seen: list[k.Read] = []
    others: list[k.Operand] = []
    inner: set[int] = set()

    left: list[k.Operand] = [value]      # the next one last; a chain may be longer than Python recurses
    root = True
    while left:
        operand = left.pop()
        stmt = made.get(operand.id) if isinstance(operand, k.Value) else None
        if stmt is None or (not root and (operand == value or counts[stmt.result.id] != 1)):
            others.append(operand)
        elif isinstance(stmt, k.Compute) and _is_addition(stmt):
            inner.add(id(stmt))
            left += reversed(stmt.operands)
        elif isinstance(stmt, k.Compute) and is_product(stmt):
            inner.add(id(stmt))
            products.append(stmt)
        elif isinstance(stmt, k.Read) and reads:
            inner.add(id(stmt))
            seen.append(stmt)
        else:
            others.append(operand)
        root = False
    return Sum(tuple(products), tuple(seen), tuple(others), frozenset(inner))


def _added(buffer: k.Buffer, terms: Sum) -> Iterator[k.Stmt]:
    for product in terms.products:
        lhs, rhs = product.operands
        assert isinstance(lhs, k.Value) and isinstance(rhs, k.Value)
        yield k.Accumulate(buffer, lhs, rhs, product.attrs, product.span)


def _summed(stmt: k.Compute, terms: Sum, rewriting: _Rewriting) -> Iterator[k.Stmt]:
    """Yield the products added up in a buffer of their own, then what else is added."""
    buffer = k.Buffer(rewriting.first_sum + stmt.result.id, stmt.result.name or "sum", stmt.result.type)
    yield k.Alloc(buffer, 0, stmt.span)
    yield from _added(buffer, terms)
    total = k.Value(next(rewriting.value_ids), stmt.result.type, stmt.result.name) if terms.others else stmt.result
    yield k.Read(total, buffer, stmt.span)
    for left, other in enumerate(terms.others, 1 - len(terms.others)):
        after = k.Value(next(rewriting.value_ids), stmt.result.type) if left else stmt.result
        yield k.Compute(after, add.name, (total, other), span=stmt.span)
        total = after


def _is_addition(stmt: k.Compute) -> bool:
    return stmt.op == add.name and all(isinstance(o, k.Value) and o.type == stmt.result.type for o in stmt.operands)
