"""Lower `Rows`: one loop over rows, with loops over columns inside and intermediate values in locals.

The passes in passes/kernel/ decide the loops, the staging and the number of SIMD lanes of reductions. A value that one column loop computes
and another reads is kept in a buffer of one row; a value that other rows read, in a whole tile. `elementwise`, `spell` and `converted`
lower an op on one element, by the op table, in the op's compute dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import assert_never

import numpy as np

from pto_wsp.c import syntax as c
from pto_wsp.c.kernel_env import CHUNK, COL, LANE, ROW, CTile, Env
from pto_wsp.c.scalars import highest, literal, load_element, local_type, lowest, memory_type, round_to_dtype, store_element
from pto_wsp.errors import unreachable
from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ops.entries.elementwise import maximum, minimum
from pto_wsp.ops.entry import Attrs, CFunction, Finish, Identity, Operator, Spelling
from pto_wsp.ops.rounding import default_mode
from pto_wsp.ops.spec import ColReduce, Convert, Elementwise, Expand, Iota, RowReduce
from pto_wsp.ops.table import computes, find
from pto_wsp.passes.kernel.arena import ALIGN, BLOCK_BYTES

_WHOLE = {"rint": "pto_rint", "round": "pto_away", "floor": "pto_floor", "ceil": "pto_ceil", "trunc": "pto_trunc", "odd": "pto_odd"}
_FIT = {"round": "PTO_AWAY", "floor": "PTO_FLOOR", "ceil": "PTO_CEIL", "trunc": "PTO_TRUNC", "odd": "PTO_ODD"}


def elementwise(entry: Elementwise, operands: tuple[c.Expr, ...], dtype: DType, attrs: Attrs) -> c.Expr:
    """Return an elementwise op applied to operands of `dtype`."""
    value = spell(entry.form(attrs).c, operands, dtype)
    return round_to_dtype(value, dtype) if entry.rounds and not entry.to_mask else value


def spell(spelling: Spelling, operands: tuple[c.Expr, ...], dtype: DType) -> c.Expr:
    """Return an op of the table applied to elements, in its compute dtype."""
    match spelling, operands:
        case CFunction(), _:
            return c.Call(spelling.name(DType.U8 if dtype.is_storage else dtype.computed_in), operands)
        case Operator(""), (only,):
            return only
        case Operator(text), (only,):
            return c.Prefix(text, only)
        case Operator(text), (lhs, rhs):
            return c.Infix(text, lhs, rhs)
        case _:
            unreachable(f"spelling {spelling} of {len(operands)} operands")


def emit_cast(entry: Convert, value: c.Expr, source: DType, target: DType, mode: str | None = None, saturate: bool | None = None) -> c.Expr:
    """Return an element of dtype `source` converted to `target`, by rounding `mode` and saturation."""
    if source.is_storage:
        value, start = c.Call(f"pto_widen_{source}", (value,)), DType.F32
    else:
        start = source.computed_in
    if source.is_real and target.is_integer:
        rule = mode or default_mode(target)
        whole = value if rule == "trunc" else c.Call(f"{_WHOLE[rule]}_{start}", (value,))
        return c.Call(f"pto_wrap_{start}_{target}" if saturate is False else entry.c.name(target, start), (whole,))
    if not target.is_real:
        return _plain(entry, _clamp_integer(value, start, target) if saturate else value, start, target)
    if target.is_double and not start.is_double:
        return _clamp_float(_plain(entry, value, start, target), target, target, bool(saturate))
    if not source.is_real:
        if saturate and target.format.largest < 2.0 ** 64:      # integers may lie beyond
            value, start = _clamp_float(c.Call(f"pto_single_{start}", (value,)), DType.F32, target, True), DType.F32
        return _plain(entry, value, start, target)
    limit = _clamp_float(value, start, target, bool(saturate))
    if source is target or start is target:
        return limit if not target.is_storage else _plain(entry, limit, start, target)
    if mode is None or mode == "rint":
        return _plain(entry, limit, start, target)
    fitted: c.Expr = c.Call(f"pto_fit_{target}", (limit, c.Name(_FIT[mode])))
    return c.Call(f"pto_narrow_{target}", (fitted,)) if target.is_storage else fitted


def _plain(entry: Convert, value: c.Expr, start: DType, target: DType) -> c.Expr:
    return value if start is target else c.Call(entry.c.name(target, start), (value,))


def _clamp_float(value: c.Expr, start: DType, target: DType, saturate: bool) -> c.Expr:
    """Return a float clamped to the largest finite numbers of `target`."""
    return c.Call(f"pto_limit_{start}", (value, literal(target.format.largest, start))) if saturate else value


def _clamp_integer(value: c.Expr, start: DType, target: DType) -> c.Expr:
    """Return an integer clamped to the range of `target`, if its own range is larger."""
    if start.is_bool or target.is_bool:
        return value
    limits, own = np.iinfo(target.np), np.iinfo(start.np)
    for op, bound in ((maximum, int(limits.min)), (minimum, int(limits.max))):
        if start.holds(bound) and bound not in (own.min, own.max):
            value = spell(op.c, (value, literal(bound, start)), start)
    return value


# -- rows ------------------------------------------------------------------------------------------


_IVDEP = "GCC ivdep"       # each iteration accesses its own column only, and overlapping arguments were staged


class RowRegion:
    """Emits one `Rows`. `targets`: the memory that each Store and Write goes to, by `id()`."""

    def __init__(self, env: Env, stmt: k.Rows, targets: dict[int, CTile]) -> None:
        self.env, self.stmt, self.rows, self.targets = env, stmt, stmt.rows, targets
        self.before: list[c.Stmt] = []
        self.row_start: list[c.Stmt] = []
        self.row_end: list[c.Stmt] = []
        self.after: list[c.Stmt] = []
        self.names: dict[int, str] = {}
        self.kept: dict[int, CTile] = {}           # wide values in memory: whole tiles and row buffers
        self.sums: dict[int, CTile] = {}           # accumulators of column reductions
        self.totals: dict[int, str] = {}           # accumulators of row reductions: a variable, or an array of lanes
        self.row_pointers: dict[str, str] = {}
        self.blocks: dict[int, str] = {}           # by id(), in the current loop: the block buffers of streamed stores
        self.scalars: dict[tuple[s.Scalar, DType], str] = {}
        self.row_locals: dict[str, str] = {}

    def emit(self) -> list[c.Stmt]:
        """Return the C statements of the region."""
        self._place_results()
        body: list[c.Stmt] = []
        for stmt in self.stmt.body:
            match stmt:
                case k.Columns():
                    body += self._column_loop(stmt)
                case k.Compute() | k.Read():
                    body += self._row_scalar(stmt)
                case k.Store() | k.Write():
                    self.row_end.append(self._assign(self._row_element(self.targets[id(stmt)]), self._narrow(stmt.value), stmt.value))
                case _:
                    unreachable(f"{type(stmt).__name__} in rows")
        body = [*self.row_start, *body, *self.row_end]
        if self.rows > 1:
            pragma = _IVDEP if self.stmt.vector else ""
            stop = c.Int(self.rows) if self.stmt.of is None else self.env.extent(self.stmt.of, 0)
            body = [c.For("int64_t", ROW, c.Int(0), stop, c.Int(1), tuple(body), pragma)]
        return [*self.before, *body, *self.after]

    def _place_results(self) -> None:
        """Name every result, and find the memory of results that outlive their loop."""
        for stmt in self.stmt.body:
            for made in stmt.body if isinstance(stmt, k.Columns) else (stmt,):
                if not isinstance(made, k.Compute | k.Read):
                    continue
                value, place = made.result, self.env.slot(k.SlotKind.VALUE, made.result.id)
                if place is not None:
                    self.env.values[value.id] = place
                if computes(made, ColReduce):
                    self._start_col_reduce(made, place or unreachable("sums of columns without a place"))
                    continue
                self.names[value.id] = self.env.name(value.name or (made.op if isinstance(made, k.Compute) else made.buffer.name))
                if place is not None and value.type.cols == 1:
                    self.row_end.append(self._assign(self._row_element(place), c.Name(self.names[value.id]), value))
                elif place is not None:
                    self.kept[value.id] = place

    def _start_col_reduce(self, stmt: k.Compute, place: CTile) -> None:
        """Fill the [1, C] result of a column reduction before the rows, and finish it after them."""
        entry, value = find(stmt.op), stmt.result
        dtype = value.type.dtype
        wide = self.env.slot(k.SlotKind.SUMS, value.id) or place
        self.sums[value.id] = wide
        element = c.Index(c.Name(wide.pointer), c.Name(COL))
        self.before.append(self._columns(0, value.type.cols, (c.Assign(element, _identity(stmt)),)))
        mean = isinstance(entry, ColReduce) and entry.finish is Finish.DIVIDE_BY_COUNT
        if mean or wide is not place:
            total = c.Infix("/", element, literal(self.rows, dtype.computed_in)) if mean else element
            finished = self._assign(c.Index(c.Name(place.pointer), c.Name(COL)), round_to_dtype(total, dtype), value)
            self.after.append(self._columns(0, value.type.cols, (finished,)))

    # -- values with one element per row

    def _row_scalar(self, stmt: k.Compute | k.Read) -> list[c.Stmt]:
        value = stmt.result
        kind, name = local_type(value.type.dtype), self.names[value.id]
        if isinstance(stmt, k.Read):
            return [c.Declare(f"const {kind}", name, load_element(self._row_element(self.env.buffers[stmt.buffer.id]), value.type.dtype))]
        if isinstance(find(stmt.op), RowReduce):
            operand = _first(stmt)
            if isinstance(operand, k.Value) and operand.type.cols > 1:
                return []   # declared after its loop
            return [c.Declare(f"const {kind}", name, self._narrow(operand))]
        return [c.Declare(f"const {kind}", name, self._expression(stmt, self._narrow, c.Int(0)))]

    def _narrow(self, operand: k.Operand) -> c.Expr:
        """Return an operand with one element per row, or with a single element."""
        if isinstance(operand, k.ScalarOperand):
            return self._constant(operand)
        if operand.id in self.names:
            return c.Name(self.names[operand.id])
        place = self._place(operand)
        if place.pointer not in self.row_locals:
            single = operand.type.rows == 1
            name = self.env.name(f"{place.pointer}_{0 if single else ROW}")
            dtype = operand.type.dtype
            declared = c.Declare(f"const {local_type(dtype)}", name, load_element(self._row_element(place), dtype))
            (self.before if single and self.rows > 1 else self.row_start).append(declared)
            self.row_locals[place.pointer] = name
        return c.Name(self.row_locals[place.pointer])

    def _constant(self, operand: k.ScalarOperand) -> c.Expr:
        lowered = self.env.scalar_as(operand.value, operand.dtype)
        if isinstance(operand.value, s.Const):
            return lowered
        key = (operand.value, operand.dtype)
        if key not in self.scalars:
            wanted = operand.value.name if isinstance(operand.value, s.ParamScalar | s.ItemRef | s.Var) else "scalar"
            name = self.scalars[key] = self.env.name(wanted)
            self.before.append(c.Declare(f"const {local_type(operand.dtype)}", name, lowered))
        return c.Name(self.scalars[key])

    def _row_element(self, place: CTile) -> c.Expr:
        if place.type.rows == 1:
            return c.Index(c.Name(place.pointer), c.Int(0))
        index: c.Expr = c.Name(ROW)
        return c.Index(c.Name(place.pointer), index if place.step == c.Int(1) else c.Infix("*", index, place.step))

    def _place(self, value: k.Value) -> CTile:
        place = self.env.values.get(value.id)
        if place is None:
            unreachable(f"value {value.id} outside memory")
        return place

    # -- columns

    def _column_loop(self, loop: k.Columns) -> list[c.Stmt]:
        reduces = [stmt for stmt in loop.body if computes(stmt, RowReduce)
                   and any(isinstance(o, k.Value) and o.type.cols > 1 for o in stmt.operands)]
        in_lanes = [stmt for stmt in reduces if loop.lanes > 1 and stmt.result.type.dtype.is_float]
        out: list[c.Stmt] = []
        for stmt in reduces:
            dtype = stmt.result.type.dtype
            start = _identity(stmt)
            if stmt in in_lanes:
                lanes = self.totals[stmt.result.id] = self.env.name(f"{self.names[stmt.result.id]}_lanes")
                out.append(c.Declare(local_type(dtype), lanes, array=(loop.lanes,), align=ALIGN))
                out.append(c.For("int64_t", LANE, c.Int(0), c.Int(loop.lanes), c.Int(1),
                                 (c.Assign(c.Index(c.Name(lanes), c.Name(LANE)), start),)))
            else:
                total = self.totals[stmt.result.id] = self.env.name(f"{self.names[stmt.result.id]}_total")
                out.append(c.Declare(local_type(dtype), total, start))
        whole = loop.cols // loop.lanes * loop.lanes
        streams = [stmt for stmt in loop.body if isinstance(stmt, k.Store) and stmt.streams]
        if streams:
            out += self._streamed_columns(loop, streams)
        elif not in_lanes or loop.cols <= loop.lanes:
            out.append(self._columns(0, loop.cols, self._body(loop, in_lanes, c.Name(COL))))
        else:
            inner = (c.Declare("const int64_t", COL, c.Infix("+", c.Name(CHUNK), c.Name(LANE))),
                     *self._body(loop, in_lanes, c.Name(LANE)))
            lanes_loop = c.For("int64_t", LANE, c.Int(0), c.Int(loop.lanes), c.Int(1), inner, _IVDEP)
            out.append(c.For("int64_t", CHUNK, c.Int(0), c.Int(whole), c.Int(loop.lanes), (lanes_loop,)))
            if whole < loop.cols:
                lane = c.Infix("-", c.Name(COL), c.Int(whole))
                out.append(self._columns(whole, loop.cols, self._body(loop, in_lanes, lane)))
        for stmt in reduces:
            out += self._finish_reduce(stmt, loop.cols, stmt in in_lanes)
        return out

    def _streamed_columns(self, loop: k.Columns, streams: Sequence[k.Store]) -> list[c.Stmt]:
        """Return loops that compute blocks of columns and write them past the caches; the rest of a row is stored normally."""
        self.env.headers.add("pto_stream.h")
        size = BLOCK_BYTES // max(stmt.value.type.dtype.nbytes for stmt in streams)
        whole = loop.cols // size * size
        before: list[c.Stmt] = []
        after: list[c.Stmt] = []
        for stmt in streams:
            dtype, place = stmt.value.type.dtype, self.targets[id(stmt)]
            block = self.blocks[id(stmt)] = self.env.name(f"{place.pointer}_block")
            before.append(c.Declare(memory_type(dtype), block, array=(size,), align=ALIGN))
            target = c.Infix("+", self._row_pointer(place), c.Name(CHUNK))
            after.append(c.Evaluate(c.Call("pto_stream", (target, c.Name(block), c.Int(size * dtype.nbytes)))))
        inner = (c.Declare("const int64_t", COL, c.Infix("+", c.Name(CHUNK), c.Name(LANE))), *self._body(loop, (), c.Name(LANE)))
        lanes_loop = c.For("int64_t", LANE, c.Int(0), c.Int(size), c.Int(1), inner, _IVDEP)
        out: list[c.Stmt] = [c.For("int64_t", CHUNK, c.Int(0), c.Int(whole), c.Int(size), (*before, lanes_loop, *after))]
        self.blocks.clear()
        return out if whole == loop.cols else [*out, self._columns(whole, loop.cols, self._body(loop, (), c.Name(COL)))]

    def _columns(self, start: int, stop: int, body: tuple[c.Stmt, ...]) -> c.Stmt:
        return c.For("int64_t", COL, c.Int(start), c.Int(stop), c.Int(1), body, _IVDEP)

    def _body(self, loop: k.Columns, in_lanes: Sequence[k.Compute], lane: c.Expr) -> tuple[c.Stmt, ...]:
        here: set[int] = set()
        out: list[c.Stmt] = []

        def read(operand: k.Operand) -> c.Expr:
            return self._wide(operand, here)

        for stmt in loop.body:
            match stmt:
                case k.Compute(result) if isinstance(find(stmt.op), RowReduce):
                    total: c.Expr = c.Name(self.totals[result.id])
                    total = c.Index(total, lane) if stmt in in_lanes else total
                    out.append(c.Assign(total, self._combine(stmt, total, read(_first(stmt)))))
                case k.Compute() if isinstance(find(stmt.op), ColReduce):
                    target = c.Index(c.Name(self.sums[stmt.result.id].pointer), c.Name(COL))
                    out.append(c.Assign(target, self._combine(stmt, target, read(_first(stmt)))))
                case k.Compute(result) | k.Read(result):
                    value = (self._loaded(self.env.buffers[stmt.buffer.id]) if isinstance(stmt, k.Read)
                             else self._expression(stmt, read, c.Name(COL)))
                    out.append(c.Declare(f"const {local_type(result.type.dtype)}", self.names[result.id], value))
                    here.add(result.id)
                    if result.id in self.kept:
                        out.append(self._assign(self._element(self.kept[result.id]), c.Name(self.names[result.id]), result))
                case k.Store(_, given) if id(stmt) in self.blocks:
                    out.append(self._assign(c.Index(c.Name(self.blocks[id(stmt)]), lane), read(given), given))
                case k.Store(_, given) | k.Write(_, given):
                    out.append(self._assign(self._element(self.targets[id(stmt)]), read(given), given))
                case _:
                    unreachable(f"{type(stmt).__name__} in columns")
        return tuple(out)

    def _wide(self, operand: k.Operand, here: set[int]) -> c.Expr:
        """Return an operand's element at the loop's column."""
        if isinstance(operand, k.ScalarOperand) or operand.type.cols == 1:
            return self._narrow(operand)
        if operand.id in here:
            return c.Name(self.names[operand.id])
        return self._loaded(self.kept[operand.id] if operand.id in self.kept else self._place(operand))

    def _loaded(self, place: CTile) -> c.Expr:
        return load_element(self._element(place), place.type.dtype)

    def _assign(self, element: c.Expr, value: c.Expr, of: k.Value) -> c.Stmt:
        return c.Assign(element, store_element(value, of.type.dtype))

    def _element(self, place: CTile) -> c.Expr:
        return c.Index(self._row_pointer(place), c.Name(COL))

    def _row_pointer(self, place: CTile) -> c.Expr:
        if place.type.rows == 1:
            return c.Name(place.pointer)
        if place.pointer not in self.row_pointers:
            name = self.row_pointers[place.pointer] = self.env.name(f"{place.pointer}_row")
            kind = memory_type(place.type.dtype)
            offset = c.Infix("*", c.Name(ROW), place.step)
            self.row_start.append(c.Declare(f"{kind} *const", name, c.Infix("+", c.Name(place.pointer), offset)))
        return c.Name(self.row_pointers[place.pointer])

    def _combine(self, stmt: k.Compute, lhs: c.Expr, rhs: c.Expr) -> c.Expr:
        entry = find(stmt.op)
        if not isinstance(entry, RowReduce | ColReduce):
            unreachable(f"reduction {stmt.op}")
        return spell(entry.combine, (lhs, rhs), stmt.result.type.dtype)

    def _finish_reduce(self, stmt: k.Compute, count: int, in_lanes: bool) -> list[c.Stmt]:
        entry, dtype = find(stmt.op), stmt.result.type.dtype
        out: list[c.Stmt] = []
        result: c.Expr = c.Name(self.totals[stmt.result.id])
        if in_lanes:
            out.append(c.Evaluate(c.Call("PTO_FOLD", (result, self._combine(stmt, c.Name("lo"), c.Name("hi"))))))
            result = c.Index(result, c.Int(0))
        if isinstance(entry, RowReduce) and entry.finish is Finish.DIVIDE_BY_COUNT:
            result = c.Infix("/", result, literal(count, dtype.computed_in))
        out.append(c.Declare(f"const {local_type(dtype)}", self.names[stmt.result.id], round_to_dtype(result, dtype)))
        return out

    # -- expressions

    def _expression(self, stmt: k.Compute, read: Callable[[k.Operand], c.Expr], col: c.Expr) -> c.Expr:
        entry = find(stmt.op)
        match entry:
            case Elementwise():
                last = stmt.operands[-1]
                dtype = last.type.dtype if isinstance(last, k.Value) else last.dtype
                return elementwise(entry, tuple(read(o) for o in stmt.operands), dtype, stmt.attrs)
            case Convert():
                source = stmt.operands[0]
                dtype = source.type.dtype if isinstance(source, k.Value) else source.dtype
                return emit_cast(entry, read(source), dtype, stmt.result.type.dtype, *entry.rules_of(stmt.attrs))
            case Expand():
                return read(stmt.operands[0])
            case Iota():
                axis = next(value for name, value in stmt.attrs if name == "axis")
                row: c.Expr = c.Name(ROW) if self.rows > 1 else c.Int(0)
                dtype = stmt.result.type.dtype
                return round_to_dtype(c.Cast(local_type(dtype), col if axis == 1 else row), dtype)
            case _:
                unreachable(f"operation {stmt.op} inside a row")


def _first(stmt: k.Compute) -> k.Operand:
    return stmt.operands[0]


def _identity(stmt: k.Compute) -> c.Expr:
    entry, dtype = find(stmt.op), stmt.result.type.dtype
    if not isinstance(entry, RowReduce | ColReduce):
        unreachable(f"reduction {stmt.op}")
    match entry.identity:
        case Identity.ZERO:
            return literal(0, dtype)
        case Identity.ONE:
            return literal(1, dtype)
        case Identity.LOWEST:
            return lowest(dtype)
        case Identity.HIGHEST:
            return highest(dtype)
        case _:
            assert_never(entry.identity)
