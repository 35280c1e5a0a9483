"""Select instructions for vector cores: lower kernel IR to a tile program, statement by statement.

Three analyses precede the selection:

- `check_statement` refuses dtypes, and ops on some dtypes, that vector cores do not run.
- `whole_values` finds the values whose every row is needed. All other values are computed only in the rows that the outputs have, if that
  number is known at run time: with n output rows, a load of up to 16 rows fills nothing and every instruction handles n rows. A column
  reduction in between would need all 16.
- `state_of` finds the reads of kernel buffers that need a copy, and the results that are computed in the buffer in place:

    %1 = read acc
    %2 = add %1, %0          %1 is acc itself, and %2 is computed in it: no tile is copied
    acc[:] = %2

`tidy` removes scalars, tiles and on-chip buffers without users.

>>> program = select_vector(use, builtin_arch("ascend_910b"))
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from pto_wsp.arch.model import Arch
from pto_wsp.errors import NpuOpError, unreachable
from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel_walk import bodies_of, result_of, touches_buffer, uses_of, walk, writes_buffer
from pto_wsp.ir.rewrite import nodes
from pto_wsp.ir.scalar import Var
from pto_wsp.npu.isa import tile_program as tp
from pto_wsp.npu.plan.model import NpuKernel
from pto_wsp.npu.rules.builder import Builder, ChipTile, ValidRows, loop_range
from pto_wsp.npu.rules.elementwise import IN_PLACE
from pto_wsp.npu.rules.lanes import copy, copy_tile
from pto_wsp.npu.rules.masks import pack_comparison, packed_masks
from pto_wsp.npu.rules.operands import ON_CHIP, round_result, storage_dtype
from pto_wsp.npu.rules.registry import LACKING, RULES, WRAPPED
from pto_wsp.npu.select.memory import gather, load, read_item, scatter, store, valid_part
from pto_wsp.ops.rounding import print_dtypes
from pto_wsp.ops.spec import Convert, Elementwise, Expand, RowReduce
from pto_wsp.ops.table import TABLE, find
from pto_wsp.passes.kernel.context import use_counts
from pto_wsp.values import dataclass

ITEMS = (*(dtype for dtype in ON_CHIP if dtype.is_integer and storage_dtype(dtype) is dtype), DType.I64)     # read by the scalar unit
MOVED = (DType.I64, DType.U64)                 # loaded, stored, and read as an index by the scalar unit
_INSTEAD: Mapping[DType, DType] = {DType.F64: DType.F32, DType.I64: DType.I32, DType.U64: DType.I32, DType.FP8E4M3: DType.BF16,
                                   DType.FP8E5M2: DType.BF16, DType.U32: DType.I32}


def vector_dtypes(op: str) -> tuple[DType, ...]:
    """Return the dtypes on which vector cores run an op of the table."""
    entry = TABLE.get(op)
    supported = ON_CHIP if entry is None else tuple(dtype for dtype in entry.dtypes if dtype in ON_CHIP)
    return tuple(dtype for dtype in supported if dtype not in LACKING.get(op, ()))


def check_statement(kernel: k.Kernel, stmt: k.Stmt, arch: Arch) -> None:
    """Raise N103 if a statement computes on or moves a dtype that vector cores do not support."""
    match stmt:
        case k.Compute():
            first = stmt.operands[0] if stmt.operands else None
            dtypes = [o.type.dtype if isinstance(o, k.Value) else o.dtype for o in stmt.operands] + [stmt.result.type.dtype]
            what = f"`pto.{stmt.op}`"
            works = vector_dtypes(stmt.op)
            wrong = next((dtype for dtype in dtypes if dtype not in ON_CHIP), None)
            if wrong is None and first is not None and dtypes[0] not in works:
                wrong = dtypes[0]
        case k.Load(result) | k.Gather(result):
            what, works = "a load", (*ON_CHIP, *MOVED)
            wrong = None if result.type.dtype in works else result.type.dtype
        case k.Item(item):
            what, works = "a read of one item", ITEMS
            wrong = None if item.dtype in works else item.dtype
        case k.Alloc(buffer):
            what, works = "a buffer", ON_CHIP
            wrong = None if buffer.type.dtype in ON_CHIP else buffer.type.dtype
        case _:
            return
    if wrong is not None:
        instead = DType.I32 if isinstance(stmt, k.Item) else _INSTEAD.get(wrong, DType.F32)
        exact = ", which holds whole numbers up to 16,777,216" if wrong.is_integer and instead is DType.F32 else ""
        raise NpuOpError(f"kernel `{kernel.name}`: {arch.name} does not run {what} on {wrong}", stmt.span, expected=print_dtypes(works),
                         found=f"{wrong}, for {arch.name}", help=f"convert it first: x.astype({instead!r})" + exact if wrong in ON_CHIP else
                         f"hold the data as {instead!r}, which they compute on")


# -- removal of unused declarations ----------------------------------------------------------------


def tidy(program: tp.TileProgram) -> tp.TileProgram:
    """Return the program without scalars, tiles and on-chip buffers that nothing uses."""
    declared = {step.tile for step in tp.steps(program.body) if isinstance(step, tp.BindTile)}
    tiles = tuple(tile for tile in program.tiles if tile.id in declared)
    lying = {tile.buffer for tile in tiles}
    program = replace(program, tiles=tiles, buffers=tuple(buffer for buffer in program.buffers if buffer.id in lying))
    while (body := _without_unused(program)) != program.body:
        program = replace(program, body=body)
    return program


def _without_unused(program: tp.TileProgram) -> tuple[tp.Step, ...]:
    used: set[Var] = {node for node in nodes(program.tiles) if isinstance(node, Var)}
    for step in tp.steps(program.body):
        match step:
            case tp.Let(_, value):
                used.update(node for node in nodes(value) if isinstance(node, Var))
            case tp.For():
                used.update(node for node in nodes((step.start, step.stop, step.step)) if isinstance(node, Var))
            case tp.If():
                used.update(node for node in nodes(step.condition) if isinstance(node, Var))
            case _:
                used.update(node for node in nodes(step) if isinstance(node, Var))
    unused = {step.var for step in tp.steps(program.body) if isinstance(step, tp.Let)} - used
    if not unused:
        return program.body

    def kept(body: tuple[tp.Step, ...]) -> tuple[tp.Step, ...]:
        out: list[tp.Step] = []
        for step in body:
            match step:
                case tp.Let(var) if var in unused:
                    continue
                case tp.For():
                    step = replace(step, body=kept(step.body))
                case tp.If():
                    step = replace(step, then=kept(step.then), other=kept(step.other))
                case _:
                    pass
            out.append(step)
        return tuple(out)

    return kept(program.body)


# -- rows that are needed --------------------------------------------------------------------------


def whole_values(kernel: k.Kernel) -> tuple[frozenset[int], frozenset[int]]:
    """Return the ids of values and of kernel buffers whose every row is needed, even if the outputs have fewer rows.

    Backward dataflow analysis to a fixed point.
    """
    values: set[int] = set()
    buffers: set[int] = set()
    statements = tuple(walk(kernel.body))[::-1]
    grown = True
    while grown:      # fixed point: an iteration may need what a later iteration of the loop reads
        before = len(values) + len(buffers)
        for stmt in statements:
            _need(stmt, values, buffers)
        grown = len(values) + len(buffers) > before
    return frozenset(values), frozenset(buffers)


def _need(stmt: k.Stmt, values: set[int], buffers: set[int]) -> None:
    """Add the operands of a statement whose every row it needs."""
    match stmt:
        case k.Read(result, buffer):
            if result.id in values:
                buffers.add(buffer.id)
        case k.Write(buffer, value):
            if buffer.id in buffers:
                values.add(value.id)
        case k.Store():
            pass
        case k.Compute() if keeps_rows(stmt):
            if stmt.result.id in values:
                values.update(value.id for value in uses_of(stmt))
            values.update(value.id for value in uses_of(stmt) if value.type.rows != stmt.result.type.rows)
        case _ if not bodies_of(stmt):
            values.update(value.id for value in uses_of(stmt))
        case _:
            pass


def keeps_rows(stmt: k.Compute) -> bool:
    """Return whether each row of the result depends on the same row of the operands only, or on a row that repeats."""
    return isinstance(find(stmt.op), Elementwise | RowReduce | Convert | Expand)


@dataclass(frozen=True, slots=True)
class State:
    """The kernel buffers' storage decisions.

    `copied`: values read from a buffer that changes before their last use. `direct`: the buffer in which a result is computed; the buffer
    keeps that result until after its last use.
    """

    copied: frozenset[int]
    direct: Mapping[int, k.Buffer]


def state_of(kernel: k.Kernel) -> State:
    """Return the storage decisions for the buffers of a kernel."""
    direct: dict[int, k.Buffer] = {}
    copied: set[int] = set()
    for body in _bodies(kernel.body):
        made = dict(_direct(body))
        direct.update({value: buffer for value, (buffer, _) in made.items()})
        changes = {at: buffer for buffer, at in made.values()}
        copied.update(stmt.result.id for at, stmt in enumerate(body) if isinstance(stmt, k.Read) and _changes(body, at, stmt, changes))
    return State(frozenset(copied), direct)


def _bodies(body: Sequence[k.Stmt]) -> Iterator[Sequence[k.Stmt]]:
    yield body
    for stmt in walk(tuple(body)):
        yield from bodies_of(stmt)


def _direct(body: Sequence[k.Stmt]) -> Iterator[tuple[int, tuple[k.Buffer, int]]]:
    """Yield (value, (buffer, position)) for each result that can be computed in its buffer."""
    place = {stmt.result.id: at for at, stmt in enumerate(body) if isinstance(stmt, k.Compute) and stmt.op in IN_PLACE}
    inside: dict[int, set[int]] = {}      # by buffer: the values that alias the buffer's contents
    for read in body:
        if isinstance(read, k.Read):
            inside.setdefault(read.buffer.id, set()).add(read.result.id)
    for end, stmt in enumerate(body):
        if not isinstance(stmt, k.Write) or stmt.value.id not in place:
            continue
        at, buffer, held = place[stmt.value.id], stmt.buffer, inside.setdefault(stmt.buffer.id, set())
        if not any(touches_buffer(between, buffer) for between in body[at + 1:end]) \
                and not any(_is_defined(body, value, at) for value in held if _last_use(body, value) > at) \
                and not _written(body, end, _last_use(body, stmt.value.id), buffer):
            held.add(stmt.value.id)
            yield stmt.value.id, (buffer, at)


def _is_defined(body: Sequence[k.Stmt], value: int, before: int) -> bool:
    """Return whether a value is defined before a position of the body."""
    return any((result := result_of(stmt)) is not None and result.id == value for stmt in body[:before])


def _last_use(body: Sequence[k.Stmt], value: int) -> int:
    """Return the position of the last statement that uses a value, -1 if there is none."""
    return max((at for at, stmt in enumerate(body) if any(used.id == value for used in uses_of(stmt))), default=-1)


def _written(body: Sequence[k.Stmt], after: int, last: int, buffer: k.Buffer) -> bool:
    """Return whether a buffer is written after position `after` and before the statement at `last` has read."""
    return any(writes_buffer(stmt, buffer) and (at < last or bool(bodies_of(stmt))) for at, stmt in enumerate(body) if after < at <= last)


def _changes(body: Sequence[k.Stmt], at: int, read: k.Read, changes: Mapping[int, k.Buffer]) -> bool:
    """Return whether the buffer changes between a read and the last use of the read value; a statement reads before it writes."""
    last = _last_use(body, read.result.id)
    return _written(body, at, last, read.buffer) or any(buffer.id == read.buffer.id for n, buffer in changes.items() if at < n < last)


# -- selection -------------------------------------------------------------------------------------


def select_vector(use: NpuKernel, arch: Arch) -> tp.TileProgram:
    """Return the tile program of a kernel for vector cores.

    Raises: N103 at the line of an op without an instruction on the arch.
    """
    b = Builder(use, arch)
    _VectorSelection(b, leave_early(b)).body(use.kernel.body)
    return tidy(b.program())


def leave_early(b: Builder) -> ValidRows | None:
    """Emit an early return for the case that all outputs are empty.

    Return the row count that all stores share, if it is known only at run time; None otherwise, and for several outputs of unknown extent.
    """
    body = tuple(walk(b.kernel.body))
    conditions: dict[s.Scalar, None] = {}
    written = dict.fromkeys(stmt.param for stmt in body if isinstance(stmt, k.Store | k.Scatter))
    for param in written:
        unknown = [extent for dim in (0, 1) if not isinstance(extent := b.scalar(s.ParamExtent(param, dim)), s.Const)]
        empty = [s.binary(s.Op.EQ, extent, s.Const(0)) for extent in unknown]
        if not empty:
            return None
        conditions[empty[0] if len(empty) == 1 else s.binary(s.Op.OR, *empty)] = None
    if not conditions:
        return None
    condition, *others = conditions
    for other in others:
        condition = s.binary(s.Op.AND, condition, other)
    b.add(tp.Leave(condition, b.span))
    if others:
        return None
    b.positive.update(unknown)
    return _rows_of_stores(b, [stmt for stmt in body if isinstance(stmt, k.Store | k.Scatter)])


def _rows_of_stores(b: Builder, stores: Sequence[k.Store | k.Scatter]) -> ValidRows | None:
    """Return the row count that all stores share, if it is known only at run time and at least one; None otherwise."""
    counts: set[tuple[int, s.Scalar]] = set()
    for stmt in stores:
        if isinstance(stmt, k.Scatter):
            return None
        counts.add((stmt.value.type.rows, valid_part(b, stmt)[0]))
    most, valid = counts.pop()
    if counts or most == 1 or isinstance(valid, s.Const) or any(isinstance(leaf, s.Var) for leaf in s.leaves(valid)) \
            or not b.surely(valid, s.Const(1)):
        return None
    return ValidRows(most, b.named(valid, "rows"))


class _VectorSelection:
    """Selects the instructions of one kernel, body by body."""

    def __init__(self, b: Builder, rows: ValidRows | None) -> None:
        self.b = b
        self.rows = rows
        self.whole, self.whole_buffers = whole_values(b.kernel)
        self.uses = use_counts(b.kernel.body)
        self.packed = packed_masks(b.kernel)
        self.state = state_of(b.kernel)

    def body(self, stmts: Sequence[k.Stmt]) -> None:
        """Append the steps of a body to the current block."""
        for stmt in stmts:
            if not isinstance(stmt, k.Rows | k.Columns):
                self.b.span = stmt.span
            self._statement(stmt)

    def _statement(self, stmt: k.Stmt) -> None:
        b = self.b
        check_statement(b.kernel, stmt, b.arch)
        b.rows = self._rows_of(stmt)
        match stmt:
            case k.Compute() if stmt.result.id in self.packed:
                b.masks[stmt.result.id] = pack_comparison(b, stmt)
            case k.Compute():
                b.values[stmt.result.id] = self._computed(stmt)
            case k.Load():
                if self.uses[stmt.result.id]:   # without users, only the guard of the load remains
                    b.values[stmt.result.id] = load(b, stmt)
            case k.Store():
                store(b, stmt)
            case k.Alloc():
                self._alloc(stmt)
            case k.Read(result, buffer):
                held = b.buffers[buffer.id]
                b.values[result.id] = copy_tile(b, held, result.name or f"{buffer.name}_then") if result.id in self.state.copied else held
            case k.Write(buffer, value):
                into, held = b.buffers[buffer.id], b.held(value)
                if held.buffer != into.buffer:
                    copy(b, into, held.part(into.valid_rows, into.valid_cols))
            case k.For():
                start, stop, step = (b.scalar(bound) for bound in (stmt.start, stmt.stop, stmt.step))
                b.ranges[stmt.var] = loop_range(start, stop, step)
                with b.inside() as body:
                    self.body(stmt.body)
                b.span = stmt.span
                b.add(tp.For(stmt.var, start, stop, step, tuple(body), stmt.span))
            case k.If():
                with b.inside() as then:
                    self.body(stmt.then)
                with b.inside() as other:
                    self.body(stmt.other)
                b.add(tp.If(b.scalar(stmt.condition), tuple(then), tuple(other), stmt.span))
            case k.Gather():
                b.values[stmt.result.id] = gather(b, stmt)
            case k.Scatter():
                scatter(b, stmt)
            case k.Item():
                read_item(b, stmt)
            case k.Print():
                raise NpuOpError(f"kernel `{b.kernel.name}`: a vector core has nowhere to print to", stmt.span,
                                 expected="kernels without `pto.print`", found=f"`pto.print` for {b.arch.name}",
                                 help="take it out, or look at the value with target=\"cpu_sim\"")
            case k.WritePart() | k.Accumulate() | k.FiniteCheck() | k.Rows() | k.Columns():
                unreachable(f"{type(stmt).__name__} in a kernel for vector cores")
            case _:
                assert_never(stmt)

    def _rows_of(self, stmt: k.Stmt) -> ValidRows | None:
        """Return the rows that a statement must compute, None for all rows of its result."""
        match stmt:
            case k.Compute(result):
                return self.rows if result.id not in self.whole and keeps_rows(stmt) else None
            case k.Load(result) | k.Read(result):
                return self.rows if result.id not in self.whole else None
            case k.Alloc(buffer):
                return self.rows if buffer.id not in self.whole_buffers else None
            case _:
                return None

    def _alloc(self, stmt: k.Alloc) -> None:
        b, buffer = self.b, stmt.buffer
        if buffer.id not in b.buffers:
            b.buffers[buffer.id] = b.hold(buffer.type.rows, buffer.type.cols, storage_dtype(buffer.type.dtype), buffer.name)
        held = b.buffers[buffer.id]
        if stmt.init is not None:
            b.emit("TEXPANDS", b.flat(held), b.number(stmt.init, held.dtype))

    def _computed(self, stmt: k.Compute) -> ChipTile:
        b = self.b
        rule = RULES.get(stmt.op)
        if rule is None:
            raise NpuOpError(f"kernel `{b.kernel.name}`: `pto.{stmt.op}` does not run on vector cores", stmt.span,
                             expected="an op with tile instructions", found=f"{stmt.op} for {b.arch.name}")
        buffer = self.state.direct.get(stmt.result.id)
        b.target = None if buffer is None else b.buffers[buffer.id]
        held = rule(b, stmt)
        into, b.target = b.target, None
        dtype = stmt.result.type.dtype
        held = round_result(b, held, dtype, in_range=stmt.op in WRAPPED or dtype in find(stmt.op).keeps_range)
        kept = {other.buffer for other in b.buffers.values()} - ({into.buffer} if into is not None else set())
        return copy_tile(b, held, f"{held.name}_then") if held.buffer in kept else held
