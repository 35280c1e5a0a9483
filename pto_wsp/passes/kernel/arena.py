"""Plan the memory of a kernel: places in the scratch arena, and stores that bypass the caches.

`plan_arena` assigns an offset to everything a kernel keeps in memory; live ranges that do not overlap may share bytes. `stream_stores`
marks the stores of long rows whose outputs need not stay in the caches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pto_wsp.ir import kernel as k
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel_walk import Body, bodies_of, map_bodies, operand_types, piece_of, uses_of, valid_of, walk
from pto_wsp.ir.scalar import Const
from pto_wsp.ir.tile import TileType
from pto_wsp.ops.spec import ColReduce, Matmul
from pto_wsp.ops.table import find
from pto_wsp.ops.whole import TileFunction
from pto_wsp.passes.kernel.context import KernelContext, leaving, use_counts
from pto_wsp.passes.kernel.products import product_bytes


def best_gap(size: int, taken: Sequence[tuple[int, int]]) -> int:
    """Return the start of the smallest free gap between the sorted intervals `taken` that fits `size`; otherwise their end."""
    best: tuple[int, int] | None = None
    free = 0
    for start, end in taken:
        if start - free >= size and (best is None or start - free < best[0]):
            best = (start - free, free)
        free = max(free, end)
    return free if best is None else best[1]


# -- the arena ---------------------------------------------------------------------------------------------------------
ALIGN = 64
_STRETCH = 16      # statements per bucket: most live ranges are short, so few slots share a bucket


def plan_arena(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel with its arena.

        scratch 1536 bytes:
                0 .. 1024  acc           statements 0 to 5
             1024 .. 1536  matmul        statements 2 to 3
             1024 .. 1536  out_tile      statements 4 to 5

    Kept are buffers, results that leave the loop computing them, tiles that are or may have to be copied (a short last tile, strided
    columns, overlapping arguments), partial sums of columns, and the work space of products and functions. A live range spans the first to
    the last statement that needs the place; a place defined before a loop and used in it is live for the whole loop. Offsets are assigned
    from the largest slot to the smallest, each to the smallest gap that fits, at multiples of 64 bytes.
    """
    return replace(kernel, arena=_assign_offsets(_ArenaRanges(kernel, context).slots()))


def verify_after_plan_arena(kernel: k.Kernel) -> None:
    """Places that are needed at the same time do not overlap, and each is aligned."""
    living: list[k.Slot] = []
    for one in sorted(kernel.arena, key=lambda slot: slot.first):
        assert one.offset % ALIGN == 0, one
        living = [other for other in living if other.last >= one.first]
        assert not any(one.offset < _end_of(other) and other.offset < _end_of(one) for other in living), one
        living.append(one)


class _ArenaRanges:
    """The slots of a kernel and their live ranges. Statements are numbered in pre-order."""

    def __init__(self, kernel: k.Kernel, context: KernelContext) -> None:
        self.kernel, self.context = kernel, context
        self.params = {p.name: p for p in kernel.memory_params}
        self.number = {id(stmt): at for at, stmt in enumerate(walk(kernel.body))}
        self.uses = use_counts(kernel.body)
        self.buffer_of: dict[int, int] = {}                        # id of a value read in place -> buffer id
        self.found: list[k.Slot] = []
        self.spans: dict[tuple[k.SlotKind, int], list[int]] = {}   # first and last statement
        self.home: dict[tuple[k.SlotKind, int], tuple[int, ...]] = {}   # loops around the definition of a slot

    def slots(self) -> list[k.Slot]:
        """Return the slots with live ranges, without offsets."""
        self._visit(self.kernel.body, ())
        return [replace(slot, first=self.spans[slot.kind, slot.key][0], last=self.spans[slot.kind, slot.key][1]) for slot in self.found]

    def _visit(self, body: Body, loops: tuple[tuple[int, int], ...]) -> None:
        """Visit a body. `loops`: first and last statement of each loop around, outermost first."""
        for stmt in body:
            first, last = self.number[id(stmt)], self._end(stmt)
            if isinstance(stmt, k.Rows):
                for slot in self._of_rows(stmt):
                    self._make(slot, first, last, loops)
                for value in uses_of(stmt):
                    self._touch_value(value, first, last, loops)
                for inner in walk(stmt.body):
                    if isinstance(inner, k.Read | k.Write):
                        self._touch(k.SlotKind.BUFFER, inner.buffer.id, first, last, loops)
            elif bodies_of(stmt):
                inner_loops = (*loops, (first, last)) if isinstance(stmt, k.For) else loops
                for inner_body in bodies_of(stmt):
                    self._visit(inner_body, inner_loops)
            else:
                self._of_whole(stmt, first, loops)

    def _of_whole(self, stmt: k.Stmt, at: int, loops: tuple[tuple[int, int], ...]) -> None:
        match stmt:
            case k.Alloc(buffer):
                self._make(k.Slot(buffer.name, k.SlotKind.BUFFER, buffer.id, buffer.type), at, at, loops)
            case k.Read(result, buffer):
                self.buffer_of[result.id] = buffer.id
                self._touch(k.SlotKind.BUFFER, buffer.id, at, at, loops)
            case k.Load(result, param):
                if self.uses[result.id] and self._may_stage(stmt):
                    self._make(k.Slot(f"{param}_tile", k.SlotKind.VALUE, result.id, result.type), at, at, loops)
            case k.Compute(result, op):
                self._make(k.Slot(result.name or op, k.SlotKind.VALUE, result.id, result.type), at, at, loops)
                entry = find(op)
                if isinstance(entry, Matmul):
                    self._work(f"{op}_work", product_bytes(stmt), at, loops)
                elif isinstance(entry, TileFunction):
                    self._work(f"{op}_work", entry.call(operand_types(stmt), result.type, stmt.attrs).work_bytes, at, loops)
            case k.Gather(result, param):
                self._make(k.Slot(f"{param}_rows", k.SlotKind.VALUE, result.id, result.type), at, at, loops)
            case k.WritePart(buffer):
                self._touch(k.SlotKind.BUFFER, buffer.id, at, at, loops)
            case k.Accumulate(buffer):
                self._touch(k.SlotKind.BUFFER, buffer.id, at, at, loops)
                self._work("matmul_work", product_bytes(stmt), at, loops)
            case _:
                pass
        for value in uses_of(stmt):
            self._touch_value(value, at, at, loops)

    def _of_rows(self, rows: k.Rows) -> Iterator[k.Slot]:
        external = leaving(rows.body, self.uses)
        inside = use_counts(rows.body)
        for stmt in rows.body:
            outliving = leaving((stmt,), inside)
            for made in stmt.body if isinstance(stmt, k.Columns) else (stmt,):
                match made:
                    case k.Compute(result, op) if isinstance(find(op), ColReduce):
                        yield k.Slot(_stem(made), k.SlotKind.VALUE, result.id, result.type)
                        if result.type.dtype.computed_in is not result.type.dtype:
                            sums = result.type.with_dtype(result.type.dtype.computed_in)
                            yield k.Slot(f"{_stem(made)}_sums", k.SlotKind.SUMS, result.id, sums)
                    case k.Compute(result) | k.Read(result) if result.id in external:
                        yield k.Slot(f"{_stem(made)}_tile", k.SlotKind.VALUE, result.id, result.type)
                    case k.Compute(result) | k.Read(result) if result.type.cols > 1 and result.id in outliving:
                        row = TileType(1, result.type.cols, result.type.dtype)
                        yield k.Slot(f"{_stem(made)}_row", k.SlotKind.VALUE, result.id, row)
                    case k.Store(param) if self._may_stage(made):
                        yield k.Slot(f"{param}_tile", k.SlotKind.STORE, self.number[id(made)], made.value.type)
                    case _:
                        pass

    def _may_stage(self, stmt: k.Load | k.Store) -> bool:
        """Tell whether the piece may have to be copied to or from scratch."""
        param = self.params[stmt.param]
        rows, cols = piece_of(stmt)
        if isinstance(stmt, k.Load) and (stmt.copy or stmt.transpose):
            return True
        if cols > 1 and param.name not in self.context.unit_columns:
            return True
        short = isinstance(param, k.TileParam) or valid_of(stmt) != (Const(rows), Const(cols))
        return short or (param.role.reads and any(other.role.writes for other in self.params.values() if other.name != param.name))

    def _work(self, name: str, n_bytes: int, at: int, loops: tuple[tuple[int, int], ...]) -> None:
        if n_bytes:
            self._make(k.Slot(name, k.SlotKind.WORK, at, TileType(1, n_bytes, DType.U8)), at, at, loops)

    def _make(self, slot: k.Slot, first: int, last: int, loops: tuple[tuple[int, int], ...]) -> None:
        self.found.append(slot)
        self.spans[slot.kind, slot.key] = [first, last]
        self.home[slot.kind, slot.key] = tuple(start for start, _ in loops)

    def _touch_value(self, value: k.Value, first: int, last: int, loops: tuple[tuple[int, int], ...]) -> None:
        if value.id in self.buffer_of:
            self._touch(k.SlotKind.BUFFER, self.buffer_of[value.id], first, last, loops)
        else:
            self._touch(k.SlotKind.VALUE, value.id, first, last, loops)

    def _touch(self, kind: k.SlotKind, key: int, first: int, last: int, loops: tuple[tuple[int, int], ...]) -> None:
        """Extend a live range to a statement, or to the outermost surrounding loop that starts after the slot's definition."""
        span = self.spans.get((kind, key))
        if span is None:
            return   # not kept in memory
        for start, end in loops:
            if start not in self.home[kind, key]:
                first, last = start, end
                break
        span[0], span[1] = min(span[0], first), max(span[1], last)

    def _end(self, stmt: k.Stmt) -> int:
        return self.number[id(stmt)] + sum(1 for body in bodies_of(stmt) for _ in walk(body))


def _stem(stmt: k.Compute | k.Read) -> str:
    return stmt.result.name or (stmt.op if isinstance(stmt, k.Compute) else stmt.buffer.name)


def _assign_offsets(slots: Sequence[k.Slot]) -> tuple[k.Slot, ...]:
    """Return the slots with offsets, in the order of their first statements."""
    placed: list[k.Slot] = []
    near: dict[int, list[k.Slot]] = {}     # placed slots by the buckets of statements in which they are live
    for slot in sorted(slots, key=lambda s: (-s.type.size_bytes, s.first)):
        stretches = range(slot.first // _STRETCH, slot.last // _STRETCH + 1)
        others = {id(other): other for stretch in stretches for other in near.get(stretch, ())}.values()
        occupied = sorted((other.offset, _end_of(other)) for other in others if slot.first <= other.last and other.first <= slot.last)
        placed_slot = replace(slot, offset=best_gap(slot.type.size_bytes, occupied))
        placed.append(placed_slot)
        for stretch in stretches:
            near.setdefault(stretch, []).append(placed_slot)
    return tuple(sorted(placed, key=lambda s: (s.first, s.offset, s.last)))


def _end_of(slot: k.Slot) -> int:
    return slot.offset + -(-slot.type.size_bytes // ALIGN) * ALIGN


# -- stores past the caches --------------------------------------------------------------------------------------------
BLOCK_BYTES = 1024     # measured: 0.5 to 1 KiB is best, 4 KiB as slow as plain stores


def stream_stores(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel with `streams` set at stores of long rows that bypass the caches.

        columns 4096: store y, %3        →      columns 4096: store y, %3, past the caches

    Such rows are computed block by block, and each block is written in whole cache lines. A loop that adds in lanes has blocks of its own
    and keeps its stores.
    """
    return replace(kernel, body=_streaming(kernel.body, context.streamed & context.unit_columns))


def _streaming(body: Body, params: frozenset[str]) -> Body:
    out: list[k.Stmt] = []
    for stmt in body:
        stmt = map_bodies(stmt, lambda inner: _streaming(inner, params))
        if isinstance(stmt, k.Columns) and stmt.lanes == 1:
            stmt = replace(stmt, body=tuple(_mark_streaming(inner, params) for inner in stmt.body))
        out.append(stmt)
    return tuple(out)


def _mark_streaming(stmt: k.Stmt, params: frozenset[str]) -> k.Stmt:
    if not isinstance(stmt, k.Store) or stmt.param not in params:
        return stmt
    tile = stmt.value.type
    return replace(stmt, streams=tile.cols * tile.dtype.nbytes >= BLOCK_BYTES)
