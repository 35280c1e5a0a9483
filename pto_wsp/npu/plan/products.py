"""Rewrite the matrix products of a kernel for the cube core: start them from zero, load operands transposed, accumulate in place.

`part_products` moves the initial value of a product into an addition:

    %3 = matmul %0, %1, %2       →      %4 = matmul %0, %1; %3 = add %4, %2

`narrow_products` multiplies whole numbers of 8 bits as such, where a kernel widens what it loads; the cube core adds them up in i32, and
multiplies no other whole numbers:

    %2 = cast %0, dtype=i32; %3 = cast %1, dtype=i32; %4 = matmul %2, %3      →      %4 = matmul %0, %1

`turn_loads` merges a transposition into the load of its operand. `accumulate_products` turns sums of products into accumulation on the cube
core, in an existing buffer that starts from zero and changes only by such sums, or in a new one:

    %3 = read acc
    %4 = matmul %1, %2
    %5 = add %3, %4
    acc[:] = %5              →      acc += %1 @ %2

    %4 = matmul %0, %1
    %5 = matmul %2, %3              sum = alloc Tile[…], init=0
    %6 = add %4, %5          →      sum += %0 @ %1; sum += %2 @ %3; %6 = read sum

`sum_in_loops` gives a loop a sum of its own that starts from zero, if its buffer holds other values before or after. One sum crosses from
the cube core then, instead of one product per iteration:

    acc[:] = bias                            acc[:] = bias
    for i in range(0, n, 1):                 sum = alloc Tile[…], init=0
        %3 = read acc                        for i in range(0, n, 1):
        %4 = matmul %1, %2                       %3 = read sum; %4 = matmul %1, %2; %5 = add %3, %4; sum[:] = %5
        %5 = add %3, %4                      %6 = read acc; %7 = read sum; %8 = add %6, %7
        acc[:] = %5                  →       acc[:] = %8
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from functools import partial

from pto_wsp.ir import kernel as k
from pto_wsp.ir.kernel_walk import Body, bodies_of, map_bodies, map_uses, result_of, touches_buffer, uses_of, walk
from pto_wsp.ops.entries.cast import cast
from pto_wsp.ops.entries.elementwise import add
from pto_wsp.ops.entries.movement import transpose
from pto_wsp.ops.spec import Matmul
from pto_wsp.ops.table import computes
from pto_wsp.passes.kernel.context import KernelContext, fresh_ids, use_counts
from pto_wsp.passes.kernel.tiles import drop_dead_code
from pto_wsp.source import Span
from pto_wsp.values import dataclass


def part_products(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel with every product of three operands split into a product of two and an addition."""
    del context
    ids = fresh_ids(kernel)

    def parted(body: Body) -> Body:
        out: list[k.Stmt] = []
        for stmt in body:
            if is_product(stmt) and isinstance(stmt, k.Compute) and len(stmt.operands) == 3:
                product = k.Value(next(ids), stmt.result.type)
                out.append(replace(stmt, result=product, operands=stmt.operands[:2]))
                stmt = k.Compute(stmt.result, add.name, (product, stmt.operands[2]), span=stmt.span)
            out.append(map_bodies(stmt, parted))
        return tuple(out)

    return replace(kernel, body=parted(kernel.body))


def narrow_products(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel with products of widened whole numbers made of the numbers as they were loaded: equal bits, sums wrap in i32."""
    made = {value.id: stmt for stmt in walk(kernel.body) if (value := result_of(stmt)) is not None}
    kept = frozenset(param.name for param in kernel.memory_params if not param.role.writes)
    ids = fresh_ids(kernel)

    def narrow(value: k.Value) -> tuple[k.Value, bool] | None:
        """Return the loaded value that was widened, and whether `value` is its transpose; None for other values."""
        match made.get(value.id):
            case k.Compute(op=transpose.name, operands=(k.Value() as inner,)):
                found = narrow(inner)
                return None if found is None else (found[0], not found[1])
            case k.Compute(op=cast.name, operands=(k.Value() as inner,)):
                widens = inner.type.dtype.is_integer and inner.type.dtype.accumulates_in is value.type.dtype
                return (inner, False) if widens and lies_in_memory(inner) else None
            case _:
                return None

    def lies_in_memory(value: k.Value) -> bool:
        """Return whether a value is loaded from what the kernel does not write, or is the transpose of such a value."""
        match made.get(value.id):
            case k.Compute(op=transpose.name, operands=(k.Value() as inner,)):
                return lies_in_memory(inner)
            case k.Load(param=param):
                return param in kept
            case _:
                return False

    def narrowed(body: Body) -> Body:
        out: list[k.Stmt] = []
        for stmt in body:
            if isinstance(stmt, k.Accumulate) or (isinstance(stmt, k.Compute) and is_product(stmt)):
                operands = uses_of(stmt)[:2]
                found = [narrow(value) for value in operands]
                if found[0] is not None and found[1] is not None:
                    parts = {value.id: _turned(*one, ids, out, stmt.span) for value, one in zip(operands, found, strict=True) if one}
                    stmt = map_uses(stmt, lambda value, parts=parts: parts.get(value.id, value))  # type: ignore[misc]
            out.append(map_bodies(stmt, narrowed))
        return tuple(out)

    body = narrowed(kernel.body)
    return kernel if body == kernel.body else drop_dead_code(replace(kernel, body=body), context)


def _turned(value: k.Value, turned: bool, ids: Iterator[int], out: list[k.Stmt], span: Span) -> k.Value:
    """Return a value, or its transpose, which is appended to `out`."""
    if not turned:
        return value
    result = k.Value(next(ids), replace(value.type, rows=value.type.cols, cols=value.type.rows), value.name)
    out.append(k.Compute(result, transpose.name, (value,), span=span))
    return result


def verify_after_part_products(kernel: k.Kernel) -> None:
    """No product starts from a tile."""
    assert not any(is_product(stmt) and isinstance(stmt, k.Compute) and len(stmt.operands) == 3 for stmt in walk(kernel.body))


def is_product(stmt: k.Stmt) -> bool:
    """Return whether a statement is a matrix product that defines a value."""
    return computes(stmt, Matmul)


def turn_loads(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return a cube kernel with each transposition of a loaded tile replaced by a transposing load."""
    del context
    loads: dict[int, k.Load] = {}
    transposed: dict[int, list[k.Load]] = {}     # by the value of the original load
    gone: set[int] = set()                  # results of the removed transpositions
    for stmt in walk(kernel.body):
        match stmt:
            case k.Load(result):
                loads[result.id] = stmt
            case k.Compute(result, transpose.name, (k.Value(id=source),)) if source in loads:
                loads[result.id] = replace(loads[source], result=result, transpose=not loads[source].transpose)
                transposed.setdefault(source, []).append(loads[result.id])
                gone.add(result.id)
            case _:
                pass

    used = use_counts(kernel.body)

    def loaded(load: k.Load) -> Iterator[k.Stmt]:
        if used[load.result.id] > len(transposed.get(load.result.id, ())):
            yield load
        for turned in transposed.get(load.result.id, ()):
            yield from loaded(turned)

    def rebuilt(body: Body) -> Body:
        out: list[k.Stmt] = []
        for stmt in body:
            if isinstance(stmt, k.Load):
                out += loaded(stmt)
            elif not (isinstance(stmt, k.Compute) and stmt.result.id in gone):
                out.append(map_bodies(stmt, rebuilt))
        return tuple(out)

    return replace(kernel, body=rebuilt(kernel.body))


@dataclass(frozen=True, slots=True)
class ProductSum:
    """The terms of a sum: products, reads of buffers, and other values. `inner`: statements that the rewritten sum no longer needs."""

    products: tuple[k.Compute, ...]
    reads: tuple[k.Read, ...]
    others: tuple[k.Operand, ...]
    inner: frozenset[int]            # id() of statements


@dataclass(slots=True)
class _Rewriting:
    """The facts that a rewrite of sums needs, and ids for new buffers."""

    counts: Counter[int]
    value_ids: Iterator[int]
    first_sum: int                       # a new buffer's id is this number plus the id of the sum's value
    excluded: frozenset[int]
    writes: dict[int, ProductSum] = field(default_factory=dict)    # id() of a write to an accumulator -> its sum


def accumulate_products(kernel: k.Kernel, excluded: frozenset[int] = frozenset()) -> k.Kernel:
    """Return the kernel with sums of products accumulated in place, except in the buffers `excluded`."""
    buffers = [stmt.buffer.id for stmt in walk(kernel.body) if isinstance(stmt, k.Alloc)]
    values = [result.id for stmt in walk(kernel.body) if (result := result_of(stmt)) is not None]
    rewriting = _Rewriting(use_counts(kernel.body), itertools.count(max(values, default=-1) + 1), max(buffers, default=-1) + 1, excluded)
    additions = dict(accumulations(kernel.body, rewriting.counts))
    owned = accumulators(kernel, additions) - excluded
    rewriting.writes = {write: made for write, (buffer, made) in additions.items() if buffer in owned}
    return replace(kernel, body=_rewritten(kernel.body, rewriting))


def accumulators(kernel: k.Kernel, found: Mapping[int, tuple[int, ProductSum]]) -> frozenset[int]:
    """Return the buffers that start from zero and change only by additions of products: `found`, by `id()` of the write."""
    fit = {buffer for buffer, _ in found.values()}
    for stmt in walk(kernel.body):
        if (isinstance(stmt, k.Alloc) and stmt.init not in (None, 0)) or (isinstance(stmt, k.Write) and id(stmt) not in found):
            fit.discard(stmt.buffer.id)
    return frozenset(fit)


def accumulations(body: Body, counts: Counter[int]) -> Iterator[tuple[int, tuple[int, ProductSum]]]:
    """Yield (id() of write, (buffer id, sum)) for each write that adds products to the previous contents of its buffer.

    Nothing between the read and the write may touch the buffer or use the sum.
    """
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
    plain: set[int] = set()            # additions inside a sum with at most one product; their own sums have no more
    sums: dict[int, ProductSum] = {}          # by id() of the last addition of the sum
    made = _made(body)
    for stmt in reversed(body):         # backwards: the last addition of a sum comes before its inner additions
        if isinstance(stmt, k.Write) and id(stmt) in rewriting.writes:
            gone |= rewriting.writes[id(stmt)].inner
        elif isinstance(stmt, k.Compute) and _is_addition(stmt) and id(stmt) not in gone and id(stmt) not in plain:
            terms = _terms(stmt.result, made, rewriting.counts, reads=False)
            if len(terms.products) > 1 and rewriting.first_sum + stmt.result.id not in rewriting.excluded:
                sums[id(stmt)] = terms
                gone |= terms.inner - {id(stmt)}
            elif len(terms.products) <= 1:
                plain |= terms.inner
    out: list[k.Stmt] = []
    for stmt in body:
        if id(stmt) in gone:
            continue
        if isinstance(stmt, k.Write) and id(stmt) in rewriting.writes:
            out += _added(stmt.buffer, rewriting.writes[id(stmt)])
            if rewriting.counts[stmt.value.id] > 1:      # later statements use the sum too
                out.append(k.Read(stmt.value, stmt.buffer, stmt.span))
        elif isinstance(stmt, k.Compute) and id(stmt) in sums:
            out += _summed(stmt, sums[id(stmt)], rewriting)
        else:
            out.append(map_bodies(stmt, lambda inner: _rewritten(inner, rewriting)))
    return tuple(out)


def _made(body: Body) -> Mapping[int, k.Compute | k.Read]:
    return {stmt.result.id: stmt for stmt in body if isinstance(stmt, k.Compute | k.Read)}


def _terms(value: k.Value, made: Mapping[int, k.Compute | k.Read], counts: Counter[int], *, reads: bool = True) -> ProductSum:
    """Return the terms of the sum `value` in this body, through intermediate results with a single use."""
    products: list[k.Compute] = []
    seen: list[k.Read] = []
    others: list[k.Operand] = []
    inner: set[int] = set()

    left: list[k.Operand] = [value]      # explicit stack, next operand last: a sum may be deeper than Python's recursion limit
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
    return ProductSum(tuple(products), tuple(seen), tuple(others), frozenset(inner))


def _added(buffer: k.Buffer, terms: ProductSum) -> Iterator[k.Stmt]:
    for product in terms.products:
        lhs, rhs = product.operands
        assert isinstance(lhs, k.Value) and isinstance(rhs, k.Value)
        yield k.Accumulate(buffer, lhs, rhs, product.attrs, product.span)


def _summed(stmt: k.Compute, terms: ProductSum, rewriting: _Rewriting) -> Iterator[k.Stmt]:
    """Yield the products of a sum accumulated in a new buffer, then the additions of the other terms."""
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


# -- sums in loops ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Known:
    """The additions of products to buffers, by `id()` of their writes and reads, and ids for new values and buffers."""

    writes: frozenset[int]
    reads: frozenset[int]
    value_ids: Iterator[int]
    buffer_ids: Iterator[int]


def sum_in_loops(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel in which each loop that only adds products to a buffer sums them in a buffer of its own.

    Buffers that accumulate in place anyway are left alone.
    """
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
    """Return a body with own sums for loops. `mixed`: buffers to treat; `names`: replacements of buffers in the enclosing loop."""
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
    """Return whether a loop does nothing to a buffer but add products to it."""
    return all(id(inner) in known.writes | known.reads for inner in walk(loop.body)
               if isinstance(inner, k.Alloc | k.Read | k.Write) and inner.buffer.id == buffer.id)
