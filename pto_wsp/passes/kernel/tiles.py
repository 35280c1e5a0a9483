"""Optimise kernels on whole tiles: the passes that run before statements become loops over rows and columns.

Each pass is total: the result computes the same bits and fails at the same guards. A guard is the run-time check of a load or store;
`number_guards` runs first and writes each guard's number into its statement, so that later passes may move, merge and drop statements
without changing which error a run ends with.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir.kernel_walk import (
    Body,
    bodies_of,
    buffers_written,
    items_of,
    map_bodies,
    map_uses,
    result_of,
    scalars_of,
    stores,
    uses_of,
    walk,
)
from pto_wsp.ir.scalar import ItemRef, Scalar, leaves
from pto_wsp.ops.entries.movement import picked, slice_
from pto_wsp.ops.guards import guards_of
from pto_wsp.ops.spec import Elementwise, Expand, RowReduce
from pto_wsp.ops.table import computes, find
from pto_wsp.passes.kernel.context import KernelContext
from pto_wsp.passes.kernel.regions import is_row_local


# -- common subexpressions ---------------------------------------------------------------------------------------------
def merge_common(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel with equal results computed once.

        %1 = exp %0
        %2 = exp %0
        %3 = add %1, %2          →      %3 = add %1, %1

    Loads and buffer reads are equal while nothing is stored, or written to the buffer, in between. A load that repeats an earlier load
    cannot fail, so its guard is dropped too. Loop bodies reuse results computed before the loop.
    """
    return replace(kernel, body=_merge_in_body(kernel.body, {}, {}))


def _merge_in_body(body: Body, names: Mapping[int, k.Value], known: Mapping[Hashable, k.Value]) -> Body:
    """Merge a body. `names`: replacements of values; `known`: computed results, by the key of their computation."""
    names, known = dict(names), dict(known)
    out: list[k.Stmt] = []
    for stmt in body:
        stmt = map_uses(stmt, lambda value: names.get(value.id, value))
        changed = stores(stmt), buffers_written(stmt)
        if bodies_of(stmt):
            known = _after(known, *changed)
            stmt = map_bodies(stmt, partial(_merge_in_body, names=names, known=known))
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
    """Tell whether a result is free to recompute and would cost memory if kept for a later use."""
    return computes(stmt, Expand)


def _key(stmt: k.Compute | k.Load | k.Read) -> tuple[Hashable, ...]:
    """Return the key of a computation. Numbers are compared as text, because 0.0 == -0.0 but the bits differ."""
    match stmt:
        case k.Compute(result, op, operands, attrs):
            return "compute", op, repr(operands), repr(attrs), result.type
        case k.Load():
            return "load", repr(replace(stmt, result=k.Value(0, stmt.result.type), guard=None))
        case k.Read(_, buffer):
            return "read", buffer.id


def _after(known: Mapping[Hashable, k.Value], stored: frozenset[str], written: frozenset[int]) -> dict[Hashable, k.Value]:
    """Return the results that remain valid after stores and writes. Arguments may overlap, so a store invalidates all loads."""
    def holds(key: Hashable) -> bool:
        match key:
            case ("load", _):
                return not stored
            case ("read", buffer):
                return buffer not in written
            case _:
                return True

    return {key: value for key, value in known.items() if holds(key)}


# -- dead code ---------------------------------------------------------------------------------------------------------
def drop_dead_code(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel without unused results, dead buffer writes, unused buffers and empty loops.

        acc = alloc Tile[4, 8, f32], init=0.0
        acc[:] = %0
        %1 = mul %0, 2.0
        store y, %0              →      store y, %0

    Stores stay, and so do guarded statements, because a run may end there. A buffer whose initial value is never read is not filled.
    """
    body = kernel.body
    while (live := _live(body, frozenset(), {b.id for b in _used_buffers(body)}, _named_items(body))) != body:
        body = live
    return replace(kernel, body=body)


def verify_after_drop_dead_code(kernel: k.Kernel) -> None:
    """Every result is used but guarded ones, and every item; every buffer that is made is written or read; no loop is empty."""
    used = {value.id for stmt in kernel.body for value in uses_of(stmt)}
    for stmt in walk(kernel.body):
        result = result_of(stmt)
        assert result is None or result.id in used or _may_fail(stmt), f"nothing uses %{result.id}"
        assert not bodies_of(stmt) or any(bodies_of(stmt)), "a loop is empty"
    assert items_of(kernel.body) == _named_items(kernel.body), "an item is read for nothing"
    made = {stmt.buffer.id for stmt in walk(kernel.body) if isinstance(stmt, k.Alloc)}
    assert made == {buffer.id for buffer in _used_buffers(kernel.body)}, "a buffer is made for nothing"


def _used_buffers(body: Body) -> set[k.Buffer]:
    return {stmt.buffer for stmt in walk(body) if isinstance(stmt, k.Read | k.Write | k.WritePart | k.Accumulate)}


def _named_items(body: Body) -> frozenset[Scalar]:
    """Return the items that some scalar names."""
    return frozenset(leaf for stmt in walk(body) for node in scalars_of(stmt) for leaf in leaves(node) if isinstance(leaf, ItemRef))


def _live(body: Body, after: frozenset[int], in_use: set[int], named: frozenset[Scalar]) -> Body:
    """Return the live statements of a body.

    `after`: buffers read after the body; `in_use`: buffers that some statement reads or writes; `named`: items that a scalar names.
    """
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
            case k.WritePart(buffer) if buffer.id not in needed and not _may_fail(stmt):
                continue
            case k.Alloc(buffer) if buffer.id not in in_use:
                continue
            case k.Item(item) if item not in named:
                continue
            case k.Alloc(buffer, init):
                wanted = (init or 0) if buffer.id in needed else None
                stmt = stmt if wanted == init else replace(stmt, init=wanted)
                needed.discard(buffer.id)
            case k.Read(_, buffer):
                needed.add(buffer.id)
            case _ if bodies_of(stmt):
                needed |= {inner.buffer.id for inner in walk((stmt,)) if isinstance(inner, k.Read)}   # the next iteration reads
                stmt = map_bodies(stmt, partial(_live, after=frozenset(needed), in_use=in_use, named=named))
                if not any(bodies_of(stmt)):
                    continue
            case _:
                pass
        used.update(value.id for value in uses_of(stmt))
        out.append(stmt)
    return tuple(reversed(out))


def _may_fail(stmt: k.Stmt) -> bool:
    return isinstance(stmt, k.Guarded) and stmt.guard is not None


# -- buffers -----------------------------------------------------------------------------------------------------------
def forward_buffers(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel with each buffer read replaced by the value last written, where no write may have intervened.

        acc[:] = %1
        %2 = read acc
        store y, %2              →      acc[:] = %1; store y, %1
    """
    return replace(kernel, body=_forward_in_body(kernel.body, {}, {}))


def _forward_in_body(body: Body, names: Mapping[int, k.Value], held: Mapping[int, k.Value]) -> Body:
    """Forward values in a body. `names`: replacements of read results; `held`: the known value of each buffer."""
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
            case k.Alloc(buffer) | k.WritePart(buffer) | k.Accumulate(buffer):
                held.pop(buffer.id, None)
            case _ if bodies_of(stmt):
                written = buffers_written(stmt)
                held = {buffer: value for buffer, value in held.items() if buffer not in written}
                stmt = map_bodies(stmt, partial(_forward_in_body, names=names, held=held))
            case _:
                pass
        out.append(stmt)
    return tuple(out)


# -- loop invariants ---------------------------------------------------------------------------------------------------
def hoist_invariants(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel with costly loop-invariant results computed before their loop.

        for i in range(0, n, 1):                 %1 = transpose %0
            %1 = transpose %0                    for i in range(0, n, 1):
            %2 = load x[i * 8, 0]        →           %2 = load x[i * 8, 0]
            %3 = matmul %1, %2                       %3 = matmul %1, %2

    Only results that cost more than a read from memory are hoisted: operations on whole tiles, functions, divisions, and their operands.
    Guarded statements stay, because the loop may not run. Nothing leaves a branch.
    """
    return replace(kernel, body=_hoist_in_body(kernel.body))


def _hoist_in_body(body: Body) -> Body:
    out: list[k.Stmt] = []
    for stmt in body:
        stmt = map_bodies(stmt, _hoist_in_body)
        if isinstance(stmt, k.For):
            moved = _movable_statements(stmt)
            out += [inner for inner in stmt.body if id(inner) in moved]
            stmt = replace(stmt, body=tuple(inner for inner in stmt.body if id(inner) not in moved))
        out.append(stmt)
    return tuple(out)


def _movable_statements(loop: k.For) -> frozenset[int]:
    """Return the id() of each statement of the loop's body that can be hoisted and is worth hoisting."""
    made = {result.id for stmt in walk(loop.body) if (result := result_of(stmt)) is not None}
    stored, written = stores(loop), buffers_written(loop)
    varying: frozenset[Scalar] = items_of(loop.body) | {loop.var}
    same: dict[int, k.Stmt] = {}        # invariant statements, by result
    for stmt in loop.body:
        result = result_of(stmt)
        if result is None or any(value.id in made and value.id not in same for value in uses_of(stmt)):
            continue
        match stmt:
            case k.Compute():
                fixed = stmt.guard is None and not _follows(varying, stmt)
            case k.Load():
                fixed = stmt.guard is None and not stored and not _follows(varying, stmt)
            case k.Read():
                fixed = stmt.buffer.id not in written
            case _:
                fixed = False
        if fixed:
            same[result.id] = stmt
    moved: set[int] = set()
    for stmt in reversed(loop.body):    # users before their operands
        result = result_of(stmt)
        if result is not None and result.id in same and (id(stmt) in moved or _is_costly(stmt)):
            moved.add(id(stmt))
            moved.update(id(same[value.id]) for value in uses_of(stmt) if value.id in same)
    return frozenset(moved)


def _follows(varying: frozenset[Scalar], stmt: k.Stmt) -> bool:
    """Tell whether a statement evaluates a scalar that differs between iterations."""
    return any(leaf in varying for node in scalars_of(stmt) for leaf in leaves(node))


def _is_costly(stmt: k.Stmt) -> bool:
    if not isinstance(stmt, k.Compute):
        return False
    entry = find(stmt.op)
    if isinstance(entry, Elementwise):
        return not entry.c.simple
    return isinstance(entry, RowReduce) or not is_row_local(stmt)


# -- loads of parts ----------------------------------------------------------------------------------------------------
def narrow_loads(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel with slices of a loaded Tile parameter replaced by loads of the parts.

        %0 = load x
        %1 = slice %0, rows=(0, 4, 1), cols=(8, 8, 1)      →      %1 = load x[0, 8]

    A part is loaded where the whole tile was, so it reads the same memory; a whole load without other users is dropped as dead code.
    """
    parts: dict[int, list[k.Compute]] = {}
    for stmt in walk(kernel.body):
        if isinstance(stmt, k.Compute) and stmt.op == slice_.name and _is_block(stmt) and isinstance(stmt.operands[0], k.Value):
            parts.setdefault(stmt.operands[0].id, []).append(stmt)
    tiles = {p.name for p in kernel.params if isinstance(p, k.TileParam)}
    loaded = [stmt for stmt in walk(kernel.body) if isinstance(stmt, k.Load) and stmt.param in tiles and not stmt.transpose]
    made = {id(stmt): tuple(_expanded(stmt, parts)) for stmt in loaded}
    gone = {load.result.id for loads in made.values() for load in loads[1:]}
    return replace(kernel, body=_narrow_in_body(kernel.body, made, gone))


def verify_after_narrow_loads(kernel: k.Kernel) -> None:
    """No block of a loaded Tile parameter is copied."""
    again = narrow_loads(kernel, KernelContext(frozenset()))
    assert again.body == kernel.body


def _is_block(stmt: k.Compute) -> bool:
    (_, _, down), (_, _, across) = picked(stmt.attrs)
    return down == across == 1


def _expanded(load: k.Load, parts: Mapping[int, Sequence[k.Compute]]) -> Iterator[k.Load]:
    """Yield a load, then one load for each of its slices, recursively."""
    yield load
    for part in parts.get(load.result.id, ()):
        (row, _, _), (col, _, _) = picked(part.attrs)
        narrow = replace(load, result=part.result, row=s.add(load.row, s.Const(row)), col=s.add(load.col, s.Const(col)),
                         valid_rows=None if load.valid_rows is None else s.sub(load.valid_rows, s.Const(row)),
                         valid_cols=None if load.valid_cols is None else s.sub(load.valid_cols, s.Const(col)), span=part.span)
        yield from _expanded(narrow, parts)


def _narrow_in_body(body: Body, made: Mapping[int, tuple[k.Load, ...]], gone: set[int]) -> Body:
    out: list[k.Stmt] = []
    for stmt in body:
        if isinstance(stmt, k.Compute) and stmt.result.id in gone:
            continue
        out += made[id(stmt)] if id(stmt) in made else (map_bodies(stmt, lambda inner: _narrow_in_body(inner, made, gone)),)
    return tuple(out)


# -- guards ------------------------------------------------------------------------------------------------------------
def number_guards(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel with each guard's number written into its statement, in the order of `guards_of`.

        %0 = load x[row, 0]      →      %0 = load x[row, 0], guard 0
    """
    numbers = {id(guard.stmt): number for number, guard in enumerate(guards_of(kernel))}

    def numbered(body: Body) -> Body:
        return tuple(replace(stmt, guard=numbers[id(stmt)]) if isinstance(stmt, k.Guarded) and id(stmt) in numbers
                     else map_bodies(stmt, numbered) for stmt in body)

    return replace(kernel, body=numbered(kernel.body))


def verify_after_number_guards(kernel: k.Kernel) -> None:
    """Guards are numbered from 0 in the order in which they stand, and nothing else has a number."""
    numbers = [guard.stmt.guard for guard in guards_of(kernel)]
    assert numbers == list(range(len(numbers)))
    assert sum(isinstance(stmt, k.Guarded) and stmt.guard is not None for stmt in walk(kernel.body)) == len(numbers)
