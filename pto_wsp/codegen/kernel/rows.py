"""Print a row region: one loop over rows, and in it loops over columns with the intermediate values in locals.

Row reductions split a row's work into levels: what depends on a reduction of level n belongs to level n + 1. A value needed at
several levels is computed again where that is cheap, else kept in a buffer of one row. Float reductions run in 64 lanes that
are folded in a fixed order, so they vectorise and do not depend on the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from pto_wsp.codegen.c import syntax as c
from pto_wsp.codegen.c.dtypes import highest, literal, loaded, local_type, lowest, memory_type, rounded, stored
from pto_wsp.codegen.kernel.elements import converted, elementwise, spell
from pto_wsp.codegen.kernel.env import CHUNK, COL, LANE, ROW, Env, Place
from pto_wsp.errors import unreachable
from pto_wsp.expr import kernel as k
from pto_wsp.ops.dtypes import computed_in
from pto_wsp.ops.entry import Finish, Function, Identity
from pto_wsp.ops.spec import Cast, ColReduce, Elementwise, Expand, Iota, RowReduce
from pto_wsp.ops.table import find
from pto_wsp.plan.kernel.regions import Member
from pto_wsp.types import scalar as s
from pto_wsp.types.dtype import DType
from pto_wsp.types.tile import TileType

LANES = 64
_IVDEP = "GCC ivdep"       # every access is to the column of the iteration, and overlapping arguments were staged
_CHEAP = 2                 # operators that are repeated rather than kept
_COSTLY = frozenset({"/"})


@dataclass(slots=True)
class _Loop:
    """One loop over columns: what it computes, and what it leaves behind."""

    level: int
    cols: int
    computes: list[k.Compute | k.Read] = field(default_factory=list)
    reduces: list[k.Compute] = field(default_factory=list)
    col_reduces: list[k.Compute] = field(default_factory=list)
    stores: list[tuple[k.Value, Place]] = field(default_factory=list)


class RowRegion:
    """Emits the members of one region; `targets` gives the memory that each Store and Write goes to, by its id()."""

    def __init__(self, env: Env, rows: int, members: Sequence[Member], external: frozenset[int],
                 targets: dict[int, Place]) -> None:
        self.env, self.rows, self.members, self.external, self.targets = env, rows, members, external, targets
        self.before: list[c.Stmt] = []
        self.row_start: list[c.Stmt] = []
        self.row_end: list[c.Stmt] = []
        self.after: list[c.Stmt] = []
        self.made: dict[int, k.Compute | k.Read] = {}
        self.level: dict[int, int] = {}            # wide: the level it can be computed at; one a row: the first that can use it
        self.wanted: dict[int, set[int]] = {}      # wide: the levels that read it
        self.names: dict[int, str] = {}
        self.kept: dict[int, Place] = {}           # wide values in memory: whole tiles and row buffers
        self.loops: dict[tuple[int, int], _Loop] = {}
        self.sums: dict[int, Place] = {}           # column reductions: where they add up
        self.row_pointers: dict[str, str] = {}
        self.scalars: dict[tuple[s.Scalar, DType], str] = {}
        self.row_locals: dict[str, str] = {}

    def emit(self) -> list[c.Stmt]:
        """Return the C statements of the region."""
        self._place_col_reduces()
        self._assign_levels()
        self._assign_loops()
        body: list[c.Stmt] = []
        top = max([level for level, _ in self.loops] + list(self.level.values()), default=0)
        for level in range(top + 1):
            for stmt in self.members:
                if isinstance(stmt, k.Compute | k.Read) and self._is_row_scalar(stmt) and self.level[stmt.result.id] == level:
                    body += self._row_scalar(stmt)
            for loop in [found for found in self.loops.values() if found.level == level]:
                body += self._column_loop(loop)
        for stmt in self.members:
            if isinstance(stmt, k.Store | k.Write) and stmt.value.type.cols == 1:
                self.row_end.append(self._assign(self._row_element(self.targets[id(stmt)]), self._narrow(stmt.value), stmt.value))
        body = [*self.row_start, *body, *self.row_end]
        if self.rows > 1:
            pragma = "" if self.loops else _IVDEP
            body = [c.For("int64_t", ROW, c.Int(0), c.Int(self.rows), c.Int(1), tuple(body), pragma)]
        elif body:
            body = [c.Block(tuple(body))]
        return [*self.before, *body, *self.after]

    # ---- levels and loops ----

    def _assign_levels(self) -> None:
        for stmt in self.members:
            if isinstance(stmt, k.Store | k.Write):
                continue
            value = stmt.result
            self.made[value.id] = stmt
            self.names[value.id] = self.env.name(stmt.op if isinstance(stmt, k.Compute) else stmt.buffer.name)
            operands = [o for o in stmt.operands if isinstance(o, k.Value)] if isinstance(stmt, k.Compute) else []
            level = max((self.level[o.id] for o in operands if o.id in self.level), default=0)
            reduces = isinstance(stmt, k.Compute) and isinstance(find(stmt.op), RowReduce)
            if reduces and operands and operands[0].type.cols > 1:
                level += 1
            if not self._is_col_reduce(stmt):
                self.level[value.id] = level

    def _assign_loops(self) -> None:
        top = max(self.level.values(), default=0)
        for stmt in reversed(self.members):
            match stmt:
                case k.Store() | k.Write():
                    if stmt.value.type.cols > 1:
                        level = top if self._is_hazard(stmt) else self.level.get(stmt.value.id, 0)
                        self._loop(level, stmt.value.type.cols).stores.insert(0, (stmt.value, self.targets[id(stmt)]))
                        self._want(stmt.value, level)
                case k.Compute() if self._is_col_reduce(stmt):
                    value = _first(stmt)
                    level = self.level.get(value.id, 0) if isinstance(value, k.Value) else 0
                    self._loop(level, stmt.result.type.cols).col_reduces.insert(0, stmt)
                    self._want(value, level)
                case k.Compute() if isinstance(find(stmt.op), RowReduce):
                    value = _first(stmt)
                    if isinstance(value, k.Value) and value.type.cols > 1:
                        level = self.level[stmt.result.id] - 1
                        self._loop(level, value.type.cols).reduces.insert(0, stmt)
                        self._want(value, level)
                    if stmt.result.id in self.external:
                        self._keep_row_scalar(stmt)
                case k.Compute() | k.Read():
                    if stmt.result.type.cols == 1:
                        if stmt.result.id in self.external:
                            self._keep_row_scalar(stmt)
                    else:
                        self._assign_wide(stmt)
                case _:
                    assert_never(stmt)

    def _assign_wide(self, stmt: k.Compute | k.Read) -> None:
        value = stmt.result
        levels = set(self.wanted.get(value.id, set()))
        if value.id in self.external:
            place = self.env.scratch(f"{self.names[value.id]}_tile", value.type)
            self.env.values[value.id] = self.kept[value.id] = place
            levels = {min(levels | {self.level[value.id]})}
            self._loop(min(levels), value.type.cols).stores.insert(0, (value, place))
        elif len(levels) > 1 and self._cost(value) > _CHEAP:
            tile = TileType(1, value.type.cols, value.type.dtype)
            self.kept[value.id] = place = self.env.scratch(f"{self.names[value.id]}_row", tile)
            levels = {min(levels)}
            self._loop(min(levels), value.type.cols).stores.insert(0, (value, place))
        for level in sorted(levels):
            self._loop(level, value.type.cols).computes.insert(0, stmt)
            for operand in stmt.operands if isinstance(stmt, k.Compute) else ():
                self._want(operand, level)

    def _keep_row_scalar(self, stmt: k.Compute | k.Read) -> None:
        value = stmt.result
        place = self.env.scratch(f"{self.names[value.id]}_tile", value.type)
        self.env.values[value.id] = place
        self.row_end.insert(0, self._assign(self._row_element(place), c.Name(self.names[value.id]), value))

    def _want(self, operand: k.Operand, level: int) -> None:
        if isinstance(operand, k.Value) and operand.type.cols > 1 and operand.id in self.made:
            self.wanted.setdefault(operand.id, set()).add(level)

    def _loop(self, level: int, cols: int) -> _Loop:
        return self.loops.setdefault((level, cols), _Loop(level, cols))

    def _is_hazard(self, store: k.Store | k.Write) -> bool:
        """Tell whether some member reads in place what `store` writes: then the row is written last."""
        target = self.targets[id(store)]
        return any(place.memory == target.memory for stmt in self.members for place in self._read_places(stmt))

    def _read_places(self, stmt: Member) -> list[Place]:
        if isinstance(stmt, k.Read):
            return [self.env.buffers[stmt.buffer.id]]
        operands: Sequence[k.Operand] = stmt.operands if isinstance(stmt, k.Compute) else (stmt.value,)
        return [self.env.values[o.id] for o in operands if isinstance(o, k.Value) and o.id in self.env.values]

    def _cost(self, value: k.Value) -> int:
        stmt = self.made.get(value.id)
        if not isinstance(stmt, k.Compute) or value.id in self.kept or value.type.cols == 1:
            return 0
        entry = find(stmt.op)
        own = 0 if isinstance(entry, Expand) else 1
        if isinstance(entry, Elementwise | Cast) and (isinstance(entry.c, Function) or entry.c.text in _COSTLY):
            own = _CHEAP + 1
        return own + sum(self._cost(o) for o in stmt.operands if isinstance(o, k.Value))

    def _is_row_scalar(self, stmt: k.Compute | k.Read) -> bool:
        return stmt.result.type.cols == 1 and not self._is_col_reduce(stmt)

    def _is_col_reduce(self, stmt: Member) -> bool:
        return isinstance(stmt, k.Compute) and isinstance(find(stmt.op), ColReduce)

    # ---- one a row ----

    def _row_scalar(self, stmt: k.Compute | k.Read) -> list[c.Stmt]:
        value = stmt.result
        kind, name = local_type(value.type.dtype), self.names[value.id]
        if isinstance(stmt, k.Read):
            return [c.Declare(f"const {kind}", name, loaded(self._row_element(self.env.buffers[stmt.buffer.id]), value.type.dtype))]
        if isinstance(find(stmt.op), RowReduce):
            operand = _first(stmt)
            if isinstance(operand, k.Value) and operand.type.cols > 1:
                return []   # declared behind its loop
            return [c.Declare(f"const {kind}", name, self._narrow(operand))]
        return [c.Declare(f"const {kind}", name, self._expression(stmt, self._narrow, c.Int(0)))]

    def _narrow(self, operand: k.Operand) -> c.Expr:
        """Return an operand that has one element a row, or one at all."""
        if isinstance(operand, k.ScalarOperand):
            return self._constant(operand)
        if operand.id in self.made:
            return c.Name(self.names[operand.id])
        place = self._place(operand)
        if place.pointer not in self.row_locals:
            single = operand.type.rows == 1
            name = self.env.name(f"{place.pointer}_{0 if single else ROW}")
            dtype = operand.type.dtype
            declared = c.Declare(f"const {local_type(dtype)}", name, loaded(self._row_element(place), dtype))
            (self.before if single and self.rows > 1 else self.row_start).append(declared)
            self.row_locals[place.pointer] = name
        return c.Name(self.row_locals[place.pointer])

    def _constant(self, operand: k.ScalarOperand) -> c.Expr:
        lowered = self.env.scalar_as(operand.value, operand.dtype)
        if isinstance(operand.value, s.Const):
            return lowered
        key = (operand.value, operand.dtype)
        if key not in self.scalars:
            wanted = operand.value.name if isinstance(operand.value, s.ParamScalar | s.Var) else "scalar"
            name = self.scalars[key] = self.env.name(wanted)
            self.before.append(c.Declare(f"const {local_type(operand.dtype)}", name, lowered))
        return c.Name(self.scalars[key])

    def _row_element(self, place: Place) -> c.Expr:
        if place.type.rows == 1:
            return c.Index(c.Name(place.pointer), c.Int(0))
        index: c.Expr = c.Name(ROW)
        return c.Index(c.Name(place.pointer), index if place.step == c.Int(1) else c.Infix("*", index, place.step))

    def _place(self, value: k.Value) -> Place:
        found = self.env.values.get(value.id)
        if found is None:
            unreachable(f"value {value.id} outside memory")
        return found

    # ---- columns ----

    def _column_loop(self, loop: _Loop) -> list[c.Stmt]:
        floats = [stmt for stmt in loop.reduces if stmt.result.type.dtype.is_float and loop.cols >= LANES // 4]
        plain = [stmt for stmt in loop.reduces if stmt not in floats]
        out: list[c.Stmt] = []
        for stmt in loop.reduces:
            dtype = stmt.result.type.dtype
            start = _identity(stmt)
            if stmt in floats:
                lanes = self._lanes(stmt)
                out.append(c.Declare(local_type(dtype), lanes, array=(LANES,), align=64))
                out.append(c.For("int64_t", LANE, c.Int(0), c.Int(LANES), c.Int(1),
                                 (c.Assign(c.Index(c.Name(lanes), c.Name(LANE)), start),)))
            else:
                out.append(c.Declare(local_type(dtype), self._sum_name(stmt), start))
        whole = loop.cols // LANES * LANES
        if not floats or loop.cols <= LANES:
            out.append(self._columns(0, loop.cols, self._body(loop, floats, plain, c.Name(COL))))
        else:
            inner = (c.Declare("const int64_t", COL, c.Infix("+", c.Name(CHUNK), c.Name(LANE))),
                     *self._body(loop, floats, plain, c.Name(LANE)))
            lanes_loop = c.For("int64_t", LANE, c.Int(0), c.Int(LANES), c.Int(1), inner, _IVDEP)
            out.append(c.For("int64_t", CHUNK, c.Int(0), c.Int(whole), c.Int(LANES), (lanes_loop,)))
            if whole < loop.cols:
                lane = c.Infix("-", c.Name(COL), c.Int(whole))
                out.append(self._columns(whole, loop.cols, self._body(loop, floats, plain, lane)))
        for stmt in loop.reduces:
            out += self._finish_reduce(stmt, loop.cols, stmt in floats)
        return out

    def _columns(self, start: int, stop: int, body: tuple[c.Stmt, ...]) -> c.Stmt:
        return c.For("int64_t", COL, c.Int(start), c.Int(stop), c.Int(1), body, _IVDEP)

    def _body(self, loop: _Loop, floats: Sequence[k.Compute], plain: Sequence[k.Compute], lane: c.Expr) -> tuple[c.Stmt, ...]:
        here = {stmt.result.id for stmt in loop.computes}
        out: list[c.Stmt] = []

        def read(operand: k.Operand) -> c.Expr:
            return self._wide(operand, here)

        for stmt in loop.computes:
            kind = f"const {local_type(stmt.result.type.dtype)}"
            value = (self._loaded(self.env.buffers[stmt.buffer.id]) if isinstance(stmt, k.Read)
                     else self._expression(stmt, read, c.Name(COL)))
            out.append(c.Declare(kind, self.names[stmt.result.id], value))
        for reduce in (*floats, *plain):
            total: c.Expr = c.Index(c.Name(self._lanes(reduce)), lane) if reduce in floats else c.Name(self._sum_name(reduce))
            out.append(c.Assign(total, self._combine(reduce, total, read(_first(reduce)))))
        for reduce in loop.col_reduces:
            target = c.Index(c.Name(self.sums[reduce.result.id].pointer), c.Name(COL))
            out.append(c.Assign(target, self._combine(reduce, target, read(_first(reduce)))))
        for value_stored, place in loop.stores:
            out.append(self._assign(self._element(place), read(value_stored), value_stored))
        return tuple(out)

    def _wide(self, operand: k.Operand, here: set[int]) -> c.Expr:
        """Return an operand's element at the column of the loop."""
        if isinstance(operand, k.ScalarOperand) or operand.type.cols == 1:
            return self._narrow(operand)
        if operand.id in here:
            return c.Name(self.names[operand.id])
        return self._loaded(self.kept[operand.id] if operand.id in self.kept else self._place(operand))

    def _loaded(self, place: Place) -> c.Expr:
        return loaded(self._element(place), place.type.dtype)

    def _assign(self, element: c.Expr, value: c.Expr, of: k.Value) -> c.Stmt:
        return c.Assign(element, stored(value, of.type.dtype))

    def _element(self, place: Place) -> c.Expr:
        if place.type.rows == 1:
            return c.Index(c.Name(place.pointer), c.Name(COL))
        if place.pointer not in self.row_pointers:
            name = self.row_pointers[place.pointer] = self.env.name(f"{place.pointer}_row")
            kind = memory_type(place.type.dtype)
            offset = c.Infix("*", c.Name(ROW), place.step)
            self.row_start.append(c.Declare(f"{kind} *const", name, c.Infix("+", c.Name(place.pointer), offset)))
        return c.Index(c.Name(self.row_pointers[place.pointer]), c.Name(COL))

    def _lanes(self, stmt: k.Compute) -> str:
        return f"{self.names[stmt.result.id]}_lanes"

    def _sum_name(self, stmt: k.Compute) -> str:
        return f"{self.names[stmt.result.id]}_total"

    def _combine(self, stmt: k.Compute, lhs: c.Expr, rhs: c.Expr) -> c.Expr:
        entry = find(stmt.op)
        if not isinstance(entry, RowReduce | ColReduce):
            unreachable(f"reduction {stmt.op}")
        return spell(entry.combine, (lhs, rhs), stmt.result.type.dtype)

    def _finish_reduce(self, stmt: k.Compute, count: int, in_lanes: bool) -> list[c.Stmt]:
        entry, dtype = find(stmt.op), stmt.result.type.dtype
        out: list[c.Stmt] = []
        result: c.Expr = c.Name(self._sum_name(stmt))
        if in_lanes:
            lanes = c.Name(self._lanes(stmt))
            out.append(c.Evaluate(c.Call("PTO_FOLD", (lanes, self._combine(stmt, c.Name("lo"), c.Name("hi"))))))
            result = c.Index(lanes, c.Int(0))
        if isinstance(entry, RowReduce) and entry.finish is Finish.DIVIDE_BY_COUNT:
            result = c.Infix("/", result, literal(count, computed_in(dtype)))
        out.append(c.Declare(f"const {local_type(dtype)}", self.names[stmt.result.id], rounded(result, dtype)))
        return out

    # ---- expressions ----

    def _expression(self, stmt: k.Compute, read: Callable[[k.Operand], c.Expr], col: c.Expr) -> c.Expr:
        entry = find(stmt.op)
        match entry:
            case Elementwise():
                last = stmt.operands[-1]
                dtype = last.type.dtype if isinstance(last, k.Value) else last.dtype
                return elementwise(entry, tuple(read(o) for o in stmt.operands), dtype)
            case Cast():
                source = stmt.operands[0]
                dtype = source.type.dtype if isinstance(source, k.Value) else source.dtype
                return converted(entry, read(source), dtype, stmt.result.type.dtype, *entry.rules_of(stmt.attrs))
            case Expand():
                return read(stmt.operands[0])
            case Iota():
                axis = next(value for name, value in stmt.attrs if name == "axis")
                row: c.Expr = c.Name(ROW) if self.rows > 1 else c.Int(0)
                dtype = stmt.result.type.dtype
                return rounded(c.Cast(local_type(dtype), col if axis == 1 else row), dtype)
            case _:
                unreachable(f"operation {stmt.op} inside a row")

    def _place_col_reduces(self) -> None:
        """Make the [1, C] results of column reductions, filled before the rows and finished after them."""
        for stmt in self.members:
            if not isinstance(stmt, k.Compute) or not self._is_col_reduce(stmt):
                continue
            entry, value = find(stmt.op), stmt.result
            dtype = value.type.dtype
            place = self.env.values[value.id] = self.env.scratch(stmt.op, value.type)
            wide = place if dtype is computed_in(dtype) else self.env.scratch(f"{stmt.op}_sums", value.type.with_dtype(computed_in(dtype)))
            self.sums[value.id] = wide
            element = c.Index(c.Name(wide.pointer), c.Name(COL))
            self.before.append(self._columns(0, value.type.cols, (c.Assign(element, _identity(stmt)),)))
            mean = isinstance(entry, ColReduce) and entry.finish is Finish.DIVIDE_BY_COUNT
            if mean or wide is not place:
                total = c.Infix("/", element, literal(self.rows, computed_in(dtype))) if mean else element
                finished = self._assign(c.Index(c.Name(place.pointer), c.Name(COL)), rounded(total, dtype), value)
                self.after.append(self._columns(0, value.type.cols, (finished,)))


def _first(stmt: k.Compute) -> k.Operand:
    return stmt.operands[0]


def _identity(stmt: k.Compute) -> c.Expr:
    entry, dtype = find(stmt.op), stmt.result.type.dtype
    if not isinstance(entry, RowReduce | ColReduce):
        unreachable(f"reduction {stmt.op}")
    match entry.identity:
        case Identity.ZERO:
            return literal(0, dtype)
        case Identity.LOWEST:
            return lowest(dtype)
        case Identity.HIGHEST:
            return highest(dtype)
        case _:
            assert_never(entry.identity)
