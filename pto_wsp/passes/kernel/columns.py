"""Form the loops over columns inside each loop over rows, and decide which values are kept between them.

    rows 16:                     rows 16:
        %1 = rowmax %0               columns 100:
        %2 = sub %0, %1                  %1 = rowmax %0
        %3 = exp %2                  columns 100:
        store y, %3          →           %2 = sub %0, %1; %3 = exp %2; store y, %3

Row reductions divide the work into levels: a value that depends on a reduction of level n has level n + 1. A value that several levels need
is recomputed if cheap (under a new name); otherwise it is computed once and kept for the duration of the row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from pto_wsp.ir import kernel as k
from pto_wsp.ir.kernel_walk import Body, map_bodies, map_uses, uses_of, walk
from pto_wsp.ops.entry import CFunction
from pto_wsp.ops.spec import ColReduce, Convert, Elementwise, Expand, RowReduce
from pto_wsp.ops.table import computes, find
from pto_wsp.passes.kernel.context import KernelContext, fresh_ids, leaving, use_counts
from pto_wsp.values import dataclass

_CHEAP = 2                 # most operators that are recomputed rather than kept
_COSTLY = frozenset({"/"})


def form_columns(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel with operations along rows in `Columns`."""
    uses, ids, sources = use_counts(kernel.body), fresh_ids(kernel), _sources(kernel.body)

    def formed(body: Body) -> Body:
        return tuple(_Levels(stmt, leaving(stmt.body, uses), sources, ids).formed() if isinstance(stmt, k.Rows)
                     else map_bodies(stmt, formed) for stmt in body)

    return replace(kernel, body=formed(kernel.body))


def verify_after_form_columns(kernel: k.Kernel) -> None:
    """What is wider than one column stands in `Columns` of its width."""
    for rows in walk(kernel.body):
        for stmt in rows.body if isinstance(rows, k.Rows) else ():
            match stmt:
                case k.Columns(cols, body):
                    widths = {width for inner in body for width in _widths(inner)}
                    assert widths <= {1, cols}, f"columns {cols}: {widths}"
                case _:
                    assert _widths(stmt) <= {1}, stmt


def _widths(stmt: k.Stmt) -> set[int]:
    own = {stmt.result.type.cols} if isinstance(stmt, k.Compute | k.Read) else set()
    return own | {value.type.cols for value in uses_of(stmt)}


def _sources(body: Body) -> dict[int, str]:
    """Return the memory that values are read from in place, by value id."""
    memory_of: dict[int, str] = {}
    for stmt in walk(body):
        match stmt:
            case k.Load(result, param) if not stmt.copy:
                memory_of[result.id] = f"param {param}"
            case k.Read(result, buffer):
                memory_of[result.id] = f"buffer {buffer.id}"
            case _:
                pass
    return memory_of


@dataclass(slots=True)
class _ColumnLoop:
    """One loop over columns: its computations, reductions and stores."""

    computes: list[k.Stmt] = field(default_factory=list)
    reduces: list[k.Stmt] = field(default_factory=list)
    col_reduces: list[k.Stmt] = field(default_factory=list)
    stores: list[k.Stmt] = field(default_factory=list)


class _Levels:
    """The members of one `Rows`, by level."""

    def __init__(self, rows: k.Rows, external: frozenset[int], sources: dict[int, str], ids: Iterator[int]) -> None:
        self.rows, self.members, self.external, self.sources, self.ids = rows, rows.body, external, sources, ids
        self.made: dict[int, k.Compute | k.Read] = {}
        self.level: dict[int, int] = {}            # wide value: earliest level; scalar per row: first level that may use it
        self.wanted: dict[int, set[int]] = {}      # wide value: levels that read it
        self.kept: set[int] = set()                # wide values kept in memory: whole tiles and rows
        self.loops: dict[tuple[int, int], _ColumnLoop] = {}
        self.names: dict[tuple[int, int], k.Value] = {}    # (level, value id) -> name of the recomputed value

    def formed(self) -> k.Rows:
        """Return the rows with their loops over columns."""
        self._assign_levels()
        self._assign_loops()
        body: list[k.Stmt] = []
        top = max([level for level, _ in self.loops] + list(self.level.values()), default=0)
        for level in range(top + 1):
            body += [stmt for stmt in self.members if self._is_row_scalar(stmt) and self.level[_result(stmt).id] == level]
            for (at, cols), loop in self.loops.items():
                if at == level:
                    inner = (*loop.computes, *loop.reduces, *loop.col_reduces, *loop.stores)
                    body.append(k.Columns(cols, tuple(self._named(stmt, level) for stmt in inner)))
        body += [stmt for stmt in self.members if isinstance(stmt, k.Store | k.Write) and stmt.value.type.cols == 1]
        return replace(self.rows, body=_drop_unused(body, self.external))

    def _named(self, stmt: k.Stmt, level: int) -> k.Stmt:
        stmt = map_uses(stmt, lambda value: self.names.get((level, value.id), value))
        own = self.names.get((level, stmt.result.id)) if isinstance(stmt, k.Compute | k.Read) else None
        return stmt if own is None or not isinstance(stmt, k.Compute | k.Read) else replace(stmt, result=own)

    def _assign_levels(self) -> None:
        for stmt in self.members:
            if not isinstance(stmt, k.Compute | k.Read):
                continue
            self.made[stmt.result.id] = stmt
            level = max((self.level[o.id] for o in uses_of(stmt) if o.id in self.level), default=0)
            if computes(stmt, RowReduce) and any(o.type.cols > 1 for o in uses_of(stmt)):
                level += 1
            if not computes(stmt, ColReduce):
                self.level[stmt.result.id] = level

    def _assign_loops(self) -> None:
        top = max(self.level.values(), default=0)
        for stmt in reversed(self.members):
            match stmt:
                case k.Store(_, value) | k.Write(_, value):
                    if value.type.cols > 1:
                        level = top if self._is_hazard(stmt) else self.level.get(value.id, 0)
                        self._loop(level, value.type.cols).stores.insert(0, stmt)
                        self._want(value, level)
                case k.Compute() if computes(stmt, ColReduce):
                    for value in uses_of(stmt):
                        level = self.level.get(value.id, 0)
                        self._loop(level, value.type.cols).col_reduces.insert(0, stmt)
                        self._want(value, level)
                case k.Compute() if computes(stmt, RowReduce):
                    for value in uses_of(stmt):
                        if value.type.cols > 1:
                            level = self.level[stmt.result.id] - 1
                            self._loop(level, value.type.cols).reduces.insert(0, stmt)
                            self._want(value, level)
                case k.Compute() | k.Read() if stmt.result.type.cols > 1:
                    self._assign_wide(stmt)
                case _:
                    pass

    def _assign_wide(self, stmt: k.Compute | k.Read) -> None:
        value = stmt.result
        levels = set(self.wanted.get(value.id, set()))
        if value.id in self.external:
            self.kept.add(value.id)
            levels = {min(levels | {self.level[value.id]})}
        elif len(levels) > 1 and not self._is_cheap(value):
            self.kept.add(value.id)
            levels = {min(levels)}
        for again, level in enumerate(sorted(levels)):
            if again:
                self.names[level, value.id] = replace(value, id=next(self.ids))
            self._loop(level, value.type.cols).computes.insert(0, stmt)
            for operand in uses_of(stmt):
                self._want(operand, level)

    def _want(self, operand: k.Value, level: int) -> None:
        if operand.type.cols > 1 and operand.id in self.made:
            self.wanted.setdefault(operand.id, set()).add(level)

    def _loop(self, level: int, cols: int) -> _ColumnLoop:
        return self.loops.setdefault((level, cols), _ColumnLoop())

    def _is_hazard(self, store: k.Store | k.Write) -> bool:
        """Tell whether some member reads in place the memory that `store` writes: the row is then written last."""
        target = f"param {store.param}" if isinstance(store, k.Store) else f"buffer {store.buffer.id}"
        return any(self.sources.get(value.id) == target for stmt in self.members
                   for value in (*uses_of(stmt), *((stmt.result,) if isinstance(stmt, k.Read) else ())))

    def _is_cheap(self, value: k.Value) -> bool:
        """Tell whether a value can be recomputed from kept or stored values with at most _CHEAP operators."""
        cost, open_ = 0, [value]
        while open_ and cost <= _CHEAP:
            made = open_.pop()
            stmt = self.made.get(made.id)
            if not isinstance(stmt, k.Compute) or made.id in self.kept or made.type.cols == 1:
                continue
            entry = find(stmt.op)
            if isinstance(entry, Elementwise | Convert) and (isinstance(entry.c, CFunction) or entry.c.text in _COSTLY):
                return False
            cost += 0 if isinstance(entry, Expand) else 1
            open_ += uses_of(stmt)
        return cost <= _CHEAP

    def _is_row_scalar(self, stmt: k.Stmt) -> bool:
        """Tell whether a member is computed once per row, outside loops over columns."""
        if not isinstance(stmt, k.Compute | k.Read) or stmt.result.type.cols > 1 or computes(stmt, ColReduce):
            return False
        return not (computes(stmt, RowReduce) and any(o.type.cols > 1 for o in uses_of(stmt)))


def _result(stmt: k.Stmt) -> k.Value:
    assert isinstance(stmt, k.Compute | k.Read)
    return stmt.result


def _drop_unused(body: Sequence[k.Stmt], external: frozenset[int]) -> Body:
    """Drop unused scalars per row."""
    uses: Counter[int] = use_counts(tuple(body))
    out: list[k.Stmt] = []
    for stmt in reversed(body):
        if isinstance(stmt, k.Compute | k.Read) and not uses[stmt.result.id] and stmt.result.id not in external:
            uses.subtract(value.id for value in uses_of(stmt))
            continue
        out.append(stmt)
    return tuple(reversed(out))
