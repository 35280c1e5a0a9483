"""Form and shape loops over rows: fuse, split, trim and vectorise them.

Operations that handle rows one by one share a loop over rows; operations on whole tiles (a product, a transpose) stand between such loops.
regions.py decides which loop a statement joins. The order of the passes is in passes.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter

from pto_wsp.ir import kernel as k
from pto_wsp.ir.kernel_walk import Body, map_bodies, map_uses, piece_of, result_of, uses_of, valid_of, walk
from pto_wsp.ir.scalar import Const
from pto_wsp.ops.entry import CFunction, Operator
from pto_wsp.ops.spec import ColReduce, Elementwise, Expand, Iota, Matmul, RowReduce
from pto_wsp.ops.table import computes, find
from pto_wsp.passes.kernel.context import KernelContext, fresh_ids, leaving, use_counts
from pto_wsp.passes.kernel.products import ROWS_OF, Packing
from pto_wsp.passes.kernel.regions import is_row_local, plan_body

MAX_WEIGHT = 256
_FUNCTION = 16             # operators of a polynomial approximation


# -- fusion ------------------------------------------------------------------------------------------------------------
def fuse_rows(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel with row-by-row statements in `Rows`, and with the loads marked that must be copied.

        %1 = rowmax %0
        %2 = sub %0, %1              rows 16:
        %3 = exp %2                      %1 = rowmax %0
        store y, %3              →       %2 = sub %0, %1; %3 = exp %2; store y, %3

    Loops above MAX_WEIGHT are cut, because the C compiler's time grows faster than linearly with a loop's length.
    """
    shared = frozenset(p.name for p in kernel.memory_params if p.role.writes and p.role.reads)
    return replace(kernel, body=_fuse_in_body(kernel.body, shared))


def verify_after_fuse_rows(kernel: k.Kernel) -> None:
    """What handles rows one by one stands in `Rows`."""
    inside = {id(stmt) for rows in walk(kernel.body) if isinstance(rows, k.Rows) for stmt in rows.body}
    for stmt in walk(kernel.body):
        local = isinstance(stmt, k.Store | k.Write) or (isinstance(stmt, k.Compute) and is_row_local(stmt))
        assert not local or id(stmt) in inside, stmt


def _fuse_in_body(body: Body, shared: frozenset[str]) -> Body:
    """Fuse a body. `shared`: names of parameters that are both loaded and stored."""
    plan = plan_body(body, shared)
    out: list[k.Stmt] = []
    for step in plan.steps:
        out += [replace(stmt, copy=True) if isinstance(stmt, k.Load) and stmt.result.id in plan.copied else stmt
                for stmt in step.prepares]
        if step.whole is not None:
            out.append(map_bodies(step.whole, partial(_fuse_in_body, shared=shared)))
        elif step.members:
            out += [k.Rows(step.rows, part) for part in _parts(step.members)]
    return tuple(out)


def _parts(members: Sequence[k.Stmt]) -> Iterator[Body]:
    """Yield the members in order, in groups of at most MAX_WEIGHT. Results that cross groups are kept in memory."""
    part: list[k.Stmt] = []
    weight = 0
    for stmt in members:
        own = weight_of(stmt)
        if part and weight + own > MAX_WEIGHT:
            yield tuple(part)
            part, weight = [], 0
        part.append(stmt)
        weight += own
    yield tuple(part)


def weight_of(stmt: k.Stmt) -> int:
    """Return the approximate number of C operators of a member."""
    entry = find(stmt.op) if isinstance(stmt, k.Compute) else None
    return _FUNCTION if isinstance(entry, Elementwise) and isinstance(entry.c, CFunction) else 1


# -- splitting at narrow reductions ------------------------------------------------------------------------------------
_MIN_ROWS = 16
_MAX_COLS = 256


def schedule_rows(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel with each loop over rows that contains narrow reductions split into several.

        rows 16:                     rows 16:
            %1 = rowsum %0               %1 = rowsum %0
            %2 = exp %1              rows 16:
            %3 = mul %0, %2              %2 = exp %1
            store y, %3          →   rows 16:
                                         %3 = mul %0, %2
                                         store y, %3

    The latency of folding a reduction's lanes exceeds the arithmetic of a narrow row. With one loop per level rows overlap in the
    pipeline, and scalars per row (`exp` of a running maximum) form a loop that vectorises over rows. Results that cross loops are kept in
    memory, so wide rows stay in one loop; cheap results are recomputed instead.
    """
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
        out.append(replace(rows, body=(*repeated, *(_rename_values(stmt, names) for stmt in chosen))))
    return _without_unused(out, external)


def _rename_values(stmt: k.Stmt, names: dict[int, k.Value]) -> k.Stmt:
    return map_uses(stmt, lambda value: names.get(value.id, value))


def _without_unused(parts: Sequence[k.Rows], external: frozenset[int]) -> list[k.Rows]:
    """Drop cheap results that every user recomputes."""
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
    """Return the number of each member's loop: even for columns, odd for scalars per row; stores of state come last."""
    level: dict[int, int] = {}
    places: dict[int, int] = {}
    for stmt in members:
        if not isinstance(stmt, k.Compute | k.Read):
            continue
        level_of_operands = max((level[o.id] for o in uses_of(stmt) if o.id in level), default=0)
        wide = stmt.result.type.cols > 1 or _reduces(stmt) or computes(stmt, ColReduce)
        places[id(stmt)] = level_of_operands + level_of_operands % 2 if wide else level_of_operands + 1 - level_of_operands % 2
        level[stmt.result.id] = places[id(stmt)] + (1 if _reduces(stmt) else 0)
    last = max(places.values(), default=0)
    for stmt in members:
        if isinstance(stmt, k.Store | k.Write):
            places[id(stmt)] = last + (last % 2 if stmt.value.type.cols > 1 else 1 - last % 2)
    return places


def _reduces(stmt: k.Stmt) -> bool:
    return computes(stmt, RowReduce) and any(operand.type.cols > 1 for operand in uses_of(stmt))


def _is_cheap(stmt: k.Compute, external: frozenset[int]) -> bool:
    """Tell whether a result is better recomputed than kept: row numbers, and wide results of one operator."""
    entry = find(stmt.op)
    operator = isinstance(entry, Elementwise) and isinstance(entry.c, Operator) and entry.c.text != "/"
    wide = (operator or isinstance(entry, Expand)) and stmt.result.type.cols > 1
    return (wide or isinstance(entry, Iota)) and stmt.result.id not in external


# -- trimming ----------------------------------------------------------------------------------------------------------
def trim_rows(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel with `of` set at loops over rows that fill one output, and `rows_of` at products that only such loops read.

        %2 = matmul %0, %1               %2 = matmul %0, %1, rows_of='out'
        rows 64:                         rows 64, those of out:
            columns 100: ...     →           columns 100: ...

    If a task binds an output with fewer rows than its tile, the rows beyond need not be computed: the loop ends with the bound rows and
    writes in place, and the product multiplies no more rows. So do loops and products before, if these alone read their rows.
    """
    tiles = {p.name: p.type.rows for p in kernel.params if isinstance(p, k.TileParam) and p.name in context.ragged}
    if not tiles:
        return kernel
    uses = use_counts(kernel.body)

    def trimmed(body: Body) -> Body:
        return tuple(replace(stmt, of=_kept_by(stmt, tiles)) if isinstance(stmt, k.Rows) and not leaving(stmt.body, uses)
                     else map_bodies(stmt, trimmed) for stmt in body)

    body, before = trimmed(kernel.body), kernel.body
    while body != before:
        before = body
        body = _products(body, _readers(body))
        body = _loops(body, _readers(body), tiles, uses)
    return replace(kernel, body=body)


def verify_after_trim_rows(kernel: k.Kernel) -> None:
    """Rows of a loop that ends with an output are read by what ends there, too, and stored nowhere else."""
    uses, readers = use_counts(kernel.body), _readers(kernel.body)
    for stmt in walk(kernel.body):
        if isinstance(stmt, k.Rows) and stmt.of is not None:
            assert all(readers[value] == {stmt.of} for value in leaving(stmt.body, uses)), stmt
            assert all(inner.param == stmt.of for inner in walk(stmt.body) if isinstance(inner, k.Store)), stmt


def _kept_by(rows: k.Rows, tiles: Mapping[str, int]) -> str | None:
    """Return the only output that the rows fill, row for row; None if there is no such output."""
    params = _filled_by(rows, tiles)
    return None if params is None or len(params) != 1 else next(iter(params))


def _filled_by(rows: k.Rows, tiles: Mapping[str, int]) -> set[str] | None:
    """Return the outputs that the rows fill, row for row; None if anything else needs the rows."""
    if rows.vector or rows.rows == 1:
        return None
    params: set[str] = set()
    for stmt in walk(rows.body):
        match stmt:
            case k.Store(param):
                whole = stmt.row == Const(0) and valid_of(stmt)[0] == Const(piece_of(stmt)[0])
                if not whole or tiles.get(param) != rows.rows:
                    return None
                params.add(param)
            case k.Write():
                return None
            case k.Compute(_, op) if isinstance(find(op), ColReduce):
                return None
            case _:
                pass
    return params


def _loops(body: Body, readers: Mapping[int, set[str | None]], tiles: Mapping[str, int], uses: Counter[int]) -> Body:
    """Return a body in which loops end with an output where all that reads their rows does."""
    out: list[k.Stmt] = []
    for stmt in body:
        stmt = map_bodies(stmt, lambda inner: _loops(inner, readers, tiles, uses)) if isinstance(stmt, k.For | k.If) else stmt
        if isinstance(stmt, k.Rows) and stmt.of is None and (filled := _filled_by(stmt, tiles)) is not None:
            ends = filled.union(*(readers.get(value, {None}) for value in leaving(stmt.body, uses)))
            match [*ends]:
                case [str(param)] if tiles[param] == stmt.rows:
                    stmt = replace(stmt, of=param)
        out.append(stmt)
    return tuple(out)


def _readers(body: Body) -> dict[int, set[str | None]]:
    """Return, for each value id, the outputs with which all reading of the value's rows ends; None stands for every other reader."""
    readers_of: dict[int, set[str | None]] = {}
    for stmt in body:
        if isinstance(stmt, k.For | k.If):
            for inner in (stmt.body,) if isinstance(stmt, k.For) else (stmt.then, stmt.other):
                for read, readers in _readers(inner).items():
                    readers_of.setdefault(read, set()).update(readers)
            continue
        ends = stmt.of if isinstance(stmt, k.Rows) else None
        inside = {result.id for inner in walk(stmt.body) if (result := result_of(inner)) is not None} if isinstance(stmt, k.Rows) else set()
        for number, value in enumerate(uses_of(stmt)):
            if value.id in inside:
                continue
            if number == 0 and isinstance(stmt, k.Compute) and ROWS_OF in (attrs := dict(stmt.attrs)) and "transpose_a" not in attrs:
                ends_here: str | None = str(attrs[ROWS_OF])
            else:
                ends_here = ends
            readers_of.setdefault(value.id, set()).add(ends_here)
    return readers_of


def _products(body: Body, readers: Mapping[int, set[str | None]]) -> Body:
    out: list[k.Stmt] = []
    for stmt in body:
        stmt = map_bodies(stmt, lambda inner: _products(inner, readers))
        if computes(stmt, Matmul) and len(stmt.operands) == 2:
            match [*readers.get(stmt.result.id, ())]:
                case [str(param)] if Packing(dict(stmt.attrs)["form"]) is Packing.BLOCKS and ROWS_OF not in dict(stmt.attrs):
                    stmt = replace(stmt, attrs=(*stmt.attrs, (ROWS_OF, param)))
        out.append(stmt)
    return tuple(out)


# -- vectors -----------------------------------------------------------------------------------------------------------
LANES = 64


def vectorise(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel with the number of SIMD lanes of each loop over columns, and with row loops marked that are vector loops.

        rows 16:                         rows 16:
            columns 100:                     columns 100, 64 lanes:
                %1 = rowsum %0       →           %1 = rowsum %0

    A float reduction of a long enough row runs in lanes that are folded in a fixed order: it vectorises, and its bits do not depend on the
    machine. A loop over rows without columns is itself a vector loop.
    """
    return replace(kernel, body=_vectorise_body(kernel.body))


def verify_after_vectorise(kernel: k.Kernel) -> None:
    """No loop over rows is a vector loop and holds one."""
    assert not any(stmt.vector and any(isinstance(inner, k.Columns) for inner in stmt.body)
                   for stmt in walk(kernel.body) if isinstance(stmt, k.Rows))


def _vectorise_body(body: Body) -> Body:
    out: list[k.Stmt] = []
    for stmt in body:
        stmt = map_bodies(stmt, _vectorise_body)
        match stmt:
            case k.Rows():
                stmt = replace(stmt, vector=stmt.rows > 1 and not any(isinstance(inner, k.Columns) for inner in stmt.body))
            case k.Columns(cols, inner_body) if cols >= LANES // 4 and any(_adds_floats(inner) for inner in inner_body):
                stmt = replace(stmt, lanes=LANES)
            case _:
                pass
        out.append(stmt)
    return tuple(out)


def _adds_floats(stmt: k.Stmt) -> bool:
    return computes(stmt, RowReduce) and stmt.result.type.dtype.is_float
