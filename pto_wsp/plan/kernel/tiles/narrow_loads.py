"""Load the parts of a Tile parameter that are sliced out of it, in place of copying them.

    %0 = load x
    %1 = slice %0, rows=(0, 4, 1), cols=(8, 8, 1)      →      %1 = load x[0, 8]

Parts stand where the whole was loaded, so they see the same memory; a load that only its parts used goes as dead code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import Body, map_bodies, walk
from pto_wsp.ops.entries.movement import picked, slice_
from pto_wsp.plan.kernel.context import KernelContext
from pto_wsp.types import scalar as s


def narrow_loads(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel with slices of loaded tiles loaded themselves."""
    parts: dict[int, list[k.Compute]] = {}
    for stmt in walk(kernel.body):
        if isinstance(stmt, k.Compute) and stmt.op == slice_.name and _is_block(stmt) and isinstance(stmt.operands[0], k.Value):
            parts.setdefault(stmt.operands[0].id, []).append(stmt)
    tiles = {p.name for p in kernel.params if isinstance(p, k.TileParam)}
    loaded = [stmt for stmt in walk(kernel.body) if isinstance(stmt, k.Load) and stmt.param in tiles and not stmt.transpose]
    made = {id(stmt): tuple(_expanded(stmt, parts)) for stmt in loaded}
    gone = {load.result.id for loads in made.values() for load in loads[1:]}
    return replace(kernel, body=_narrowed(kernel.body, made, gone))


def verify_after_narrow_loads(kernel: k.Kernel) -> None:
    """No block of a loaded Tile parameter is copied."""
    again = narrow_loads(kernel, KernelContext(frozenset()))
    assert again.body == kernel.body


def _is_block(stmt: k.Compute) -> bool:
    (_, _, down), (_, _, across) = picked(stmt.attrs)
    return down == across == 1


def _expanded(load: k.Load, parts: Mapping[int, Sequence[k.Compute]]) -> Iterator[k.Load]:
    """Yield a load, then one for each of its parts and their parts."""
    yield load
    for part in parts.get(load.result.id, ()):
        (row, _, _), (col, _, _) = picked(part.attrs)
        narrow = replace(load, result=part.result, row=s.add(load.row, s.Const(row)), col=s.add(load.col, s.Const(col)),
                         valid_rows=None if load.valid_rows is None else s.sub(load.valid_rows, s.Const(row)),
                         valid_cols=None if load.valid_cols is None else s.sub(load.valid_cols, s.Const(col)), span=part.span)
        yield from _expanded(narrow, parts)


def _narrowed(body: Body, made: Mapping[int, tuple[k.Load, ...]], gone: set[int]) -> Body:
    out: list[k.Stmt] = []
    for stmt in body:
        if isinstance(stmt, k.Compute) and stmt.result.id in gone:
            continue
        out += made[id(stmt)] if id(stmt) in made else (map_bodies(stmt, lambda inner: _narrowed(inner, made, gone)),)
    return tuple(out)
