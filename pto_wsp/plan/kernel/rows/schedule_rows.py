"""Split a loop over rows that holds narrow reductions into several.

    rows 16:                     rows 16:
        %1 = rowsum %0               %1 = rowsum %0
        %2 = exp %1              rows 16:
        %3 = mul %0, %2              %2 = exp %1
        store y, %3          →   rows 16:
                                     %3 = mul %0, %2
                                     store y, %3

Folding the lanes of a reduction and then waiting for it costs more than a narrow row's arithmetic. With one loop over rows a
level, rows overlap in the machine, and what is computed once a row (`exp` of a running maximum) becomes a loop of its own that
vectorises over rows. What crosses from loop to loop is kept in memory, so wide rows stay in one loop; what is cheap is computed
again instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import itemgetter

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import Body, map_bodies, map_uses, result_of, uses_of
from pto_wsp.ops.entry import Operator
from pto_wsp.ops.spec import ColReduce, Elementwise, Expand, Iota, RowReduce
from pto_wsp.ops.table import find
from pto_wsp.plan.kernel.context import KernelContext
from pto_wsp.plan.kernel.values import fresh_ids, leaving, use_counts

_MIN_ROWS = 16
_MAX_COLS = 256


def schedule_rows(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel with each loop over rows as the loops that it runs as."""
    uses, ids = use_counts(kernel.body), fresh_ids(kernel)

    def scheduled(body: Body) -> Body:
        out: list[k.Stmt] = []
        for stmt in body:
            if isinstance(stmt, k.Rows):
                out += _split(stmt, uses, ids)
            else:
                out.append(map_bodies(stmt, scheduled))
        return tuple(out)

    return replace(kernel, body=scheduled(kernel.body))


def _split(rows: k.Rows, uses: Counter[int], ids: Iterator[int]) -> Sequence[k.Rows]:
    members, external = rows.body, leaving(rows.body, uses)
    reduced = [operand.type.cols for stmt in members if _reduces(stmt) for operand in uses_of(stmt)]
    if rows.rows < _MIN_ROWS or not reduced or max(reduced) > _MAX_COLS:
        return (rows,)
    places = _places(members)
    cheap: set[int] = set()
    for stmt in members:
        if isinstance(stmt, k.Compute) and _is_cheap(stmt, external) and not any(o.id in cheap for o in uses_of(stmt)):
            cheap.add(stmt.result.id)
    out: list[k.Rows] = []
    made = {stmt.result.id: (at, stmt) for at, stmt in enumerate(members) if isinstance(stmt, k.Compute) and stmt.result.id in cheap}
    by_place: dict[int, list[k.Stmt]] = {}
    for stmt in members:
        by_place.setdefault(places[id(stmt)], []).append(stmt)
    for place, chosen in sorted(by_place.items()):
        needed = {o.id for stmt in chosen for o in uses_of(stmt) if o.id in made}
        again = [stmt for _, stmt in sorted((made[value] for value in needed), key=itemgetter(0)) if places[id(stmt)] < place]
        names = {stmt.result.id: replace(stmt.result, id=next(ids)) for stmt in again}
        repeated = [replace(stmt, result=names[stmt.result.id]) for stmt in again]
        out.append(replace(rows, body=(*repeated, *(_renamed(stmt, names) for stmt in chosen))))
    return _without_unused(out, external)


def _renamed(stmt: k.Stmt, names: dict[int, k.Value]) -> k.Stmt:
    return map_uses(stmt, lambda value: names.get(value.id, value))


def _without_unused(parts: Sequence[k.Rows], external: frozenset[int]) -> list[k.Rows]:
    """Drop cheap results that every part has computed again for itself."""
    out: list[k.Rows] = []
    used = set(external)
    for part in reversed(parts):
        kept: list[k.Stmt] = []
        for stmt in reversed(part.body):
            result = result_of(stmt)
            if result is None or result.id in used:
                used.update(value.id for value in uses_of(stmt))
                kept.append(stmt)
        if kept:
            out.append(replace(part, body=tuple(reversed(kept))))
    return out[::-1]


def _places(members: Sequence[k.Stmt]) -> dict[int, int]:
    """Return the number of each member's loop: even for columns, odd for what is computed once a row; stores of state last."""
    level: dict[int, int] = {}
    places: dict[int, int] = {}
    for stmt in members:
        if not isinstance(stmt, k.Compute | k.Read):
            continue
        at = max((level[o.id] for o in uses_of(stmt) if o.id in level), default=0)
        wide = stmt.result.type.cols > 1 or _reduces(stmt) or _reduces_columns(stmt)
        places[id(stmt)] = at + at % 2 if wide else at + 1 - at % 2
        level[stmt.result.id] = places[id(stmt)] + (1 if _reduces(stmt) else 0)
    last = max(places.values(), default=0)
    for stmt in members:
        if isinstance(stmt, k.Store | k.Write):
            places[id(stmt)] = last + (last % 2 if stmt.value.type.cols > 1 else 1 - last % 2)
    return places


def _reduces(stmt: k.Stmt) -> bool:
    if not isinstance(stmt, k.Compute) or not isinstance(find(stmt.op), RowReduce):
        return False
    return any(operand.type.cols > 1 for operand in uses_of(stmt))


def _reduces_columns(stmt: k.Stmt) -> bool:
    return isinstance(stmt, k.Compute) and isinstance(find(stmt.op), ColReduce)


def _is_cheap(stmt: k.Compute, external: frozenset[int]) -> bool:
    """Tell whether a result is better computed again than kept: row numbers, and wide results of one operator."""
    entry = find(stmt.op)
    operator = isinstance(entry, Elementwise) and isinstance(entry.c, Operator) and entry.c.text != "/"
    wide = (operator or isinstance(entry, Expand)) and stmt.result.type.cols > 1
    return (wide or isinstance(entry, Iota)) and stmt.result.id not in external
