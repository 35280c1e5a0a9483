"""Lower a tile program to the C++ of its kernel: every step is a statement, in order; nothing is decided about memory or order here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import assert_never

from pto_wsp.codegen.c import syntax as c
from pto_wsp.codegen.c.printer import print_stmts
from pto_wsp.codegen.c.scalars import lower_scalar
from pto_wsp.codegen.npu.arguments import ARGS, Side, extent_of, float_value, pointer, step_of
from pto_wsp.codegen.npu.global_memory import Geometry, geometry
from pto_wsp.codegen.npu.names import Names
from pto_wsp.codegen.npu.tile_types import alias_stem, device_type, is_dynamic, tile_type
from pto_wsp.errors import InternalError
from pto_wsp.expr import tile_program as tp
from pto_wsp.expr.kernel import ScalarParamDecl, TileParam
from pto_wsp.types import scalar as s
from pto_wsp.types.dtype import DType
from pto_wsp.types.scalar_text import print_scalar
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class KernelCpp:
    """The pieces of a kernel's file: constants of its memory plan, and the body of `kernel_entry`, as lines."""

    plan: tuple[str, ...]
    body: tuple[str, ...]


def emit_kernel_cpp(program: tp.TileProgram) -> KernelCpp:
    """Return the C++ of a tile program that has addresses and flags."""
    lowering = _Lowering(program)
    body = (*lowering.prologue(), *lowering.block(program.body))
    lines = print_stmts((*lowering.arguments(), *body), 1, comment="//")
    return KernelCpp(tuple(lowering.plan_lines()), tuple(lines))


@dataclass(slots=True)
class _Lowering:
    program: tp.TileProgram
    names: Names = field(default_factory=Names)
    rooms: dict[int, str] = field(default_factory=dict)
    tiles: dict[int, tp.Tile] = field(default_factory=dict)
    tile_names: dict[int, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)            # C++ type -> alias
    vars: dict[s.Var, str] = field(default_factory=dict)
    counting: set[s.Var] = field(default_factory=set)              # loop variables that are never negative
    params: dict[str, str] = field(default_factory=dict)           # a parameter -> its pointer, or its value
    positions: dict[str, int] = field(default_factory=dict)
    dtypes: dict[str, DType] = field(default_factory=dict)         # of memory parameters
    scalars: dict[str, c.Declare] = field(default_factory=dict)       # what reads a descriptor or a slot -> by the name it declares

    def __post_init__(self) -> None:
        for room in self.program.rooms:
            self.rooms[room.id] = self.names.take(f"k{room.space.value.title()}{_camel(room.name)}")
        memory = [param for param in self.program.params if not isinstance(param, ScalarParamDecl)]
        for position, param in enumerate(memory):
            self.params[param.name], self.positions[param.name] = self.names.fresh(f"{param.name}_gm"), position
            self.dtypes[param.name] = param.type.dtype if isinstance(param, TileParam) else param.dtype
        declared = [param for param in self.program.params if isinstance(param, ScalarParamDecl)]
        for position, scalar in enumerate(declared, len(memory)):
            self.params[scalar.name], self.positions[scalar.name] = self.names.fresh(scalar.name), position
        for tile in self.program.tiles:
            self.tiles[tile.id] = tile
            name = self.names.fresh(tile.name)
            self.tile_names[tile.id] = name
            spelled = tile_type(tile)
            if spelled not in self.types:
                self.types[spelled] = self.names.take(alias_stem(tile))

    # ---- around the body ----

    def plan_lines(self) -> Iterator[str]:
        """The memory plan as constants, by memory and address."""
        rooms = sorted(self.program.rooms, key=lambda room: (list(tp.Space).index(room.space), room.address or 0, room.id))
        for room in rooms:
            if room.address is None:
                raise InternalError(f"`{room.name}` has no address", self.program.name)
            copies = f" x {room.copies}" if room.copies > 1 else ""
            yield f"constexpr int {self.rooms[room.id]} = 0x{room.address:05x};  // {room.size_bytes} bytes{copies}"

    def prologue(self) -> Iterator[c.Stmt]:
        for spelled, alias in self.types.items():
            yield c.Using(alias, spelled)

    def arguments(self) -> Iterator[c.Stmt]:
        """Pointers, strides, extents and numbers from the arguments: those that the body has asked for, in the order of parameters."""
        for key in sorted(self.scalars, key=lambda key: (self.positions[key.split("#")[0]], key)):
            yield self.scalars[key]

    # ---- steps ----

    def block(self, body: tuple[tp.Step, ...]) -> Iterator[c.Stmt]:
        for step in body:
            yield from self._step(step)

    def _step(self, step: tp.Step) -> Iterator[c.Stmt]:
        match step:
            case tp.Declare():
                yield from self._declare(step)
            case tp.GmLoad(tile=tile):
                yield from self._moved(self.tiles[tile], step.param, step.row, step.col, turned=step.turned, load=True)
            case tp.GmStore(tile=tile):
                yield from self._moved(self.tiles[tile], step.param, step.row, step.col, turned=step.turned, load=False)
            case tp.Instr(name, args, template):
                kinds = [self.types[tile_type(self.tiles[arg.tile])] if isinstance(arg, tp.TileArg) else "" for arg in args]
                given = ", ".join(text.format(*kinds) for text in template)
                yield c.Evaluate(c.Call(f"{name}<{given}>" if template else name, tuple(self._arg(arg) for arg in args)))
            case tp.Let(var, value):
                kind = s.scalar_dtype(value)
                yield c.Declare("const float" if kind is not None and kind.is_float else "const int64_t", self._new_var(var),
                                self._scalar(value))
            case tp.Peek(var, tile, index):
                element = c.Index(c.Call(f"{self.tile_names[tile]}.data", ()), self._scalar(index))
                yield c.Declare("const int64_t", self._new_var(var), c.Cast("int64_t", element))
            case tp.GmPeek(var, param, row, col):
                yield c.Declare("const int64_t", self._new_var(var), c.Cast("int64_t", c.Index(self._pointer(param),
                                                                                               self._offset(param, row, col))))
            case tp.SetFlag(after, before, event):
                yield c.Evaluate(c.Call("set_flag", (c.Name(after.value), c.Name(before.value), self._event(event))))
            case tp.WaitFlag(after, before, event):
                yield c.Evaluate(c.Call("wait_flag", (c.Name(after.value), c.Name(before.value), self._event(event))))
            case tp.Barrier(pipe):
                yield c.Evaluate(c.Call("pipe_barrier", (c.Name(pipe.value),)))
            case tp.Loop(var, start, stop, by, body):
                name = self._new_var(var)
                if self._natural(start):
                    self.counting.add(var)
                yield c.For("int64_t", name, self._scalar(start), self._scalar(stop), self._scalar(by), tuple(self.block(body)))
            case tp.Branch(condition, then, other):
                yield c.If(self._scalar(condition), tuple(self.block(then)), tuple(self.block(other)))
            case tp.Leave(condition):
                yield c.If(self._scalar(condition), (c.Return(),))
            case _:
                assert_never(step)

    def _declare(self, step: tp.Declare) -> Iterator[c.Stmt]:
        tile = self.tiles[step.tile]
        room = self.program.room(tile.room)
        valid = self._valid(tile)
        yield c.Construct(self.types[tile_type(tile)], self.tile_names[tile.id], valid)
        address: c.Expr = c.Name(self.rooms[room.id])
        if tile.offset:
            address = c.Infix("+", address, c.Int(tile.offset))
        moved = step.shift
        if room.copies > 1:
            moved = s.add(s.mul(s.binary(s.Op.MOD, step.turn, s.Const(room.copies)), s.Const(room.size_bytes)), moved)
        if moved != s.Const(0):
            address = c.Cast("int", c.Infix("+", address, self._scalar(moved)))
        yield c.Evaluate(c.Call("TASSIGN", (c.Name(self.tile_names[tile.id]), address)))

    def _valid(self, tile: tp.Tile) -> tuple[c.Expr, ...]:
        """The valid extents of a tile that gets them at run time."""
        if not is_dynamic(tile):
            return ()
        return tuple(self._scalar(n) if isinstance(n, s.Const) else c.Cast("int", self._scalar(n))
                     for n in (tile.valid_rows, tile.valid_cols))

    def _arg(self, arg: tp.Arg) -> c.Expr:
        match arg:
            case tp.TileArg(tile):
                return c.Name(self.tile_names[tile])
            case tp.Word(text):
                return c.Name(text)
            case tp.ScalarArg(value, dtype):
                return self._number(value, dtype)
            case _:
                assert_never(arg)

    def _number(self, value: s.Scalar, dtype: DType) -> c.Expr:
        wanted = device_type(dtype)
        if isinstance(value, s.Const) and dtype.is_float:
            number = c.Float(float(value.value), single=True)
            return number if dtype is DType.F32 else c.Cast(wanted, number)
        lowered = self._scalar(value)
        return lowered if isinstance(value, s.Const) and dtype is DType.I32 else c.Cast(wanted, lowered)

    # ---- global memory ----

    def _moved(self, tile: tp.Tile, param: str, row: s.Scalar, col: s.Scalar, *, turned: bool, load: bool) -> Iterator[c.Stmt]:
        access = self.program.access[self.positions[param]]
        found: Geometry = geometry(tile, access, turned)
        element = device_type(self.dtypes[param])
        strides = tuple(self._stride(param, dim) if isinstance(dim, str) else c.Int(dim) for dim in (found.down, found.across))
        dynamic_strides = tuple(c.Cast("int", stride) for stride in strides if not isinstance(stride, c.Int))
        shape_args = self._valid(tile)
        extents = ("-1", "-1") if is_dynamic(tile) else (_text(tile.valid_rows), _text(tile.valid_cols))
        shape = f"Shape<1, 1, 1, {extents[0]}, {extents[1]}>"
        step_text = [str(n.value) if isinstance(n, c.Int) else "-1" for n in strides]
        stride = f"Stride<1, 1, 1, {step_text[0]}, {step_text[1]}>"
        layout = ", Layout::DN" if found.by_columns else ""
        name, alias = self.names.take(f"g_{c.c_ident(param)}"), self.names.take(f"Gm{_camel(param)}")
        pointer = self._pointer(param)
        offset = self._offset(param, row, col)
        if offset != c.Int(0):
            pointer = c.Infix("+", pointer, offset)
        extra: tuple[c.Expr, ...] = ()
        if shape_args or dynamic_strides:
            extra = (c.Call(shape, shape_args), c.Call(stride, dynamic_strides))
        yield c.Using(alias, f"GlobalTensor<{element}, {shape}, {stride}{layout}>")
        yield c.Construct(alias, name, (pointer, *extra))
        operands = (c.Name(self.tile_names[tile.id]), c.Name(name))
        yield c.Evaluate(c.Call("TLOAD", operands) if load else c.Call("TSTORE", operands[::-1]))

    def _pointer(self, param: str) -> c.Expr:
        element = device_type(self.dtypes[param])
        found = pointer(element, self.positions[param])
        self.scalars.setdefault(f"{param}#", c.Declare(f"__gm__ {element} *const", self.params[param], found))
        return c.Name(self.params[param])

    def _offset(self, param: str, row: s.Scalar, col: s.Scalar) -> c.Expr:
        access = self.program.access[self.positions[param]]
        total: c.Expr = c.Int(0)
        for at, dim, unit in ((row, "rows", access.unit_rows), (col, "cols", access.unit_cols)):
            if at == s.Const(0):
                continue
            part = self._scalar(at)
            if not unit:
                part = c.Infix("*", part, self._stride(param, dim))
            total = part if total == c.Int(0) else c.Infix("+", total, part)
        return total

    def _stride(self, param: str, which: str) -> c.Expr:
        """The step in elements along "rows" or "cols" of a parameter."""
        side: Side = "row" if which == "rows" else "col"
        return self._read(param, f"{side}_step", step_of(*self._found(param), side))

    def _extent(self, param: str, dim: int) -> c.Expr:
        side: Side = "col" if dim else "row"
        return self._read(param, f"{side}s", extent_of(*self._found(param), side))

    def _found(self, param: str) -> tuple[tp.ParamAccess, int]:
        position = self.positions[param]
        return self.program.access[position], position

    def _read(self, param: str, what: str, value: c.Expr) -> c.Expr:
        """A number as it is; what stands in a descriptor is read once, under a name."""
        if isinstance(value, c.Int):
            return value
        key = f"{param}#{what}"
        if key not in self.scalars:
            self.scalars[key] = c.Declare("const int64_t", self.names.fresh(f"{param}_{what}"), value)
        return c.Name(self.scalars[key].name)

    # ---- scalars ----

    def _event(self, event: s.Scalar) -> c.Expr:
        """An event by its name. One that changes with a loop's turn is chosen between names: their type is the headers' own."""
        match event:
            case s.Const(first):
                return c.Name(f"EVENT_ID{int(first)}")
            case s.Binary(s.Op.MOD, _, s.Const(copies)):
                turn, first = event, 0
            case s.Binary(s.Op.ADD, s.Binary(s.Op.MOD, _, s.Const(copies)) as turn, s.Const(first)):
                pass
            case _:
                raise InternalError(f"event {print_scalar(event)}", self.program.name)
        chosen: c.Expr = c.Name(f"EVENT_ID{int(first + copies) - 1}")
        for copy in reversed(range(int(copies) - 1)):
            chosen = c.Ternary(c.Infix("==", self._scalar(turn), c.Int(copy)), c.Name(f"EVENT_ID{int(first) + copy}"), chosen)
        return chosen

    def _scalar(self, node: s.Scalar) -> c.Expr:
        return lower_scalar(node, self._leaf, single=True, wide=False, natural=self._natural)

    def _natural(self, node: s.Scalar) -> bool:
        """Tell whether an integer is surely not negative: extents, loop variables that count up from 0, and what is made of them."""
        match node:
            case s.Const(value):
                return value >= 0
            case s.Var():
                return node in self.counting
            case s.ParamExtent():
                return True
            case s.Binary(s.Op.ADD | s.Op.MUL | s.Op.MIN | s.Op.FLOORDIV | s.Op.MOD, lhs, rhs):
                return self._natural(lhs) and self._natural(rhs)
            case s.Binary(s.Op.MAX, lhs, rhs):
                return self._natural(lhs) or self._natural(rhs)
            case _:
                return False

    def _leaf(self, node: s.Scalar) -> c.Expr:
        match node:
            case s.Var():
                return c.Name(self.vars[node])
            case s.ParamExtent(name, dim):
                return self._extent(name, dim)
            case s.ParamScalar(name, dtype):
                key = f"{name}#value"
                if key not in self.scalars:
                    self.scalars[key] = self._scalar_argument(name, dtype)
                return c.Name(self.params[name])
            case _:
                raise InternalError(f"{print_scalar(node)} in a tile program", self.program.name)

    def _scalar_argument(self, name: str, dtype: DType) -> c.Declare:
        slot = self.positions[name]
        if dtype.is_float:
            return c.Declare("const float", self.params[name], float_value(slot))
        return c.Declare("const int64_t", self.params[name], c.Index(ARGS, c.Int(slot)))

    def _new_var(self, var: s.Var) -> str:
        self.vars[var] = self.names.fresh(var.name)
        return self.vars[var]


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in c.c_ident(name).split("_"))


def _text(extent: s.Scalar) -> str:
    if not isinstance(extent, s.Const):
        raise InternalError("a valid extent is not constant", print_scalar(extent))
    return str(int(extent.value))
