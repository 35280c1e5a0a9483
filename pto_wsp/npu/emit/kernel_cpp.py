"""Lower a tile program to the C++ of its kernel: each step becomes a statement, in order.

Memory and order are decided before: the program has addresses and flags. `cpp_ident` spells identifiers that the headers do not own.
`geometry` finds the strides and the layout of a `GlobalTensor` for a tile. The other functions spell arguments, tiles and dtypes in C++.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Literal, TypeAlias, assert_never

from pto_wsp.c import syntax as c
from pto_wsp.c.printer import print_stmts
from pto_wsp.c.scalars import lower_scalar
from pto_wsp.c.syntax import c_ident
from pto_wsp.errors import InternalError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel import ScalarParamDecl
from pto_wsp.ir.names import Names
from pto_wsp.ir.scalar import Const, print_scalar
from pto_wsp.npu.isa import tile_program as tp
from pto_wsp.npu.isa.tile_program import Form, ParamAccess, TileView
from pto_wsp.values import dataclass

_CPP_WORDS = frozenset((
    "and", "and_eq", "asm", "bitand", "bitor", "bool", "catch", "char8_t", "char16_t", "char32_t", "class", "compl", "concept", "consteval",
    "constexpr", "constinit", "const_cast", "co_await", "co_return", "co_yield", "decltype", "delete", "dynamic_cast", "explicit", "export",
    "false", "friend", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or", "or_eq", "private",
    "protected", "public", "reinterpret_cast", "requires", "static_assert", "static_cast", "template", "this", "thread_local", "throw",
    "true", "try", "typeid", "typename", "using", "virtual", "wchar_t", "xor", "xor_eq"))
# Names that a user's name must not hide: the headers' types, instructions and constants, and names that this generator numbers.
_THEIRS = re.compile(r"[A-Z][A-Z0-9_]{2,}|T[A-Z]\w*|\w+_t|half|pto\w*|args|main|Tile\w*|GlobalTensor|Shape|Stride|Layout|BLayout|SLayout|"
                     r"kernel_entry|set_flag|wait_flag|pipe_barrier|get_block_\w+|k[A-Z]\w*|(?:Gm|Vec|Mat|Left|Right|Acc)[A-Z0-9]\w*|g_\w+|"
                     r"rt_\w+|aicpu_\w+|std")


def cpp_ident(wanted: str, theirs: re.Pattern[str] = _THEIRS) -> str:
    """Return a C++ identifier close to the user's name `wanted`, and unlike the names that `theirs` matches."""
    stem = c_ident(wanted)
    if stem in _CPP_WORDS or theirs.fullmatch(stem) or stem.startswith("_"):
        return f"user_{stem.lstrip('_')}"
    return stem


# -- arguments -------------------------------------------------------------------------------------


Side: TypeAlias = Literal["row", "col"]
ARGS = c.Name("args")


def pointer(element: str, slot: int) -> c.Expr:
    """Return the address of a parameter's first element in global memory."""
    return c.Call(f"pto_wsp::gm<{element}>", (ARGS, c.Int(slot)))


def extent_of(access: ParamAccess, slot: int, side: Side) -> c.Expr:
    """Return the row or column count of a parameter: a constant if all tasks share it."""
    dim, by, extent = _side(access, side)
    if extent is not None or dim is None:
        return c.Int(1 if extent is None else extent)
    shape = c.Call("pto_wsp::shape", (ARGS, c.Int(slot), c.Int(dim)))
    return shape if by == 1 else c.Infix("/", c.Infix("+", shape, c.Int(by - 1)), c.Int(by))


def step_of(access: ParamAccess, slot: int, side: Side) -> c.Expr:
    """Return the distance in elements between rows or columns of a parameter; 1 if there is a single one."""
    dim, by, _ = _side(access, side)
    if dim is None:
        return c.Int(1)
    stride = c.Call("pto_wsp::stride", (ARGS, c.Int(slot), c.Int(dim)))
    return stride if by == 1 else c.Infix("*", stride, c.Int(by))


def float_value(slot: int) -> c.Expr:
    """Return a float argument."""
    return c.Call("pto_wsp::f32", (ARGS, c.Int(slot)))


def _side(access: ParamAccess, side: Side) -> tuple[int | None, int, int | None]:
    """Return the dimension of a side, the distance between its elements, and its extent if known."""
    return ((access.row_dim, access.row_step, access.rows) if side == "row" else (access.col_dim, access.col_step, access.cols))


# -- geometry of tiles in global memory ------------------------------------------------------------


Stride: TypeAlias = Literal["rows", "cols"] | int    # the parameter's own step along its rows or columns, or a constant


@dataclass(frozen=True, slots=True)
class Geometry:
    """The strides down and across a tile in memory. `by_columns`: unit stride down a column (layout DN)."""

    down: Stride
    across: Stride
    by_columns: bool


def geometry(tile: TileView, access: ParamAccess, turned: bool) -> Geometry:
    """Return the geometry of a tile in a parameter; `turned`: rows of the tile run along columns of the parameter."""
    along_rows: Stride = 1 if access.unit_rows or access.row_dim is None else "rows"
    along_cols: Stride = 1 if access.unit_cols or access.col_dim is None else "cols"
    down, across = (along_cols, along_rows) if turned else (along_rows, along_cols)
    one_row, one_col = tile.valid_rows == Const(1), tile.valid_cols == Const(1)
    if tile.form is Form.ZN:
        return _dense(Geometry(1, across, True), down == 1 or one_row, tile)
    if one_col and tile.form is Form.COLUMN:
        return _dense(Geometry(1, tile.rows, True), down == 1 or one_row, tile)
    return _dense(Geometry(down, 1, False), across == 1 or one_col, tile)


def _dense(found: Geometry, fits: bool, tile: TileView) -> Geometry:
    if not fits:
        raise InternalError(f"tile `{tile.name}` lies across its rows in global memory", "selection turns such tiles")
    return found


# -- types -----------------------------------------------------------------------------------------


_TYPES: Mapping[DType, str] = {
    DType.F32: "float", DType.F16: "half", DType.BF16: "bfloat16_t", DType.I8: "int8_t", DType.I16: "int16_t", DType.I32: "int32_t",
    DType.I64: "int64_t", DType.U8: "uint8_t", DType.U16: "uint16_t", DType.U32: "uint32_t", DType.U64: "uint64_t", DType.BOOL: "uint8_t",
}
BF16_TYPE = _TYPES[DType.BF16]
_FRACTAL = 512   # bytes of an L1 block


def device_type(dtype: DType) -> str:
    """Return the C++ type of an element on the device."""
    if dtype not in _TYPES:
        raise InternalError(f"{dtype} has no type on the device", "selection lets none through")
    return _TYPES[dtype]


def abi_defines(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the macros that a kernel file with these lines defines before it includes the ABI header."""
    return ("PTO_WSP_KERNEL", *(("PTO_WSP_BF16",) if any(BF16_TYPE in line for line in lines) else ()))


def is_dynamic(tile: TileView) -> bool:
    """Return whether the valid part of a tile is known only at run time."""
    return not (isinstance(tile.valid_rows, Const) and isinstance(tile.valid_cols, Const))


def tile_type(tile: TileView) -> str:
    """Return the C++ type of a tile, with both valid extents dynamic or none: the form that works on every core."""
    rows, cols = ("-1", "-1") if is_dynamic(tile) else (str(int(_const(tile.valid_rows))), str(int(_const(tile.valid_cols))))
    element, storage, valid = device_type(tile.dtype), f"{tile.rows}, {tile.cols}", f"{rows}, {cols}"
    match tile.form:
        case Form.ROWS:
            return f"Tile<TileType::Vec, {element}, {storage}, BLayout::RowMajor, {valid}>"
        case Form.COLUMN:
            return f"Tile<TileType::Vec, {element}, {storage}, BLayout::ColMajor, {valid}>"
        case Form.NZ:
            return f"Tile<TileType::Mat, {element}, {storage}, BLayout::ColMajor, {valid}, SLayout::RowMajor, {_FRACTAL}>"
        case Form.ZN:
            return f"Tile<TileType::Mat, {element}, {storage}, BLayout::RowMajor, {valid}, SLayout::ColMajor, {_FRACTAL}>"
        case Form.LEFT:
            return f"TileLeft<{element}, {storage}, {valid}>"
        case Form.RIGHT:
            return f"TileRight<{element}, {storage}, {valid}>"
        case Form.ACC:
            return f"TileAcc<{element}, {storage}, {valid}>"
        case _:
            assert_never(tile.form)


def alias_stem(tile: TileView) -> str:
    """Return a short name of a tile's type: VecF32_16x128, followed by the valid part if it is smaller."""
    kind = {Form.ROWS: "Vec", Form.COLUMN: "Col", Form.NZ: "Mat", Form.ZN: "MatT", Form.LEFT: "Left", Form.RIGHT: "Right",
            Form.ACC: "Acc"}[tile.form]
    name = f"{kind}{str(tile.dtype).upper()}_{tile.rows}x{tile.cols}"
    if is_dynamic(tile):
        return f"{name}_dyn"
    rows, cols = int(_const(tile.valid_rows)), int(_const(tile.valid_cols))
    return name if (rows, cols) == (tile.rows, tile.cols) else f"{name}_{rows}x{cols}"


def _const(node: object) -> float:
    if not isinstance(node, Const):
        raise InternalError("a valid extent is not constant", repr(node))
    return float(node.value)


# -- statements ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KernelCpp:
    """A kernel's file: constants of its memory plan, and the body of `kernel_entry`, as lines."""

    plan: tuple[str, ...]
    body: tuple[str, ...]


def emit_kernel_cpp(program: tp.TileProgram) -> KernelCpp:
    """Return the C++ of a tile program that has addresses and flags."""
    lowering = _KernelLowering(program)
    body = (*lowering.prologue(), *lowering.block(program.body))
    lines = print_stmts((*lowering.arguments(), *body), 1, comment="//")
    return KernelCpp(tuple(lowering.plan_lines()), tuple(lines))


@dataclass(slots=True)
class _KernelLowering:
    program: tp.TileProgram
    names: Names = field(default_factory=Names)
    buffers: dict[int, str] = field(default_factory=dict)
    tiles: dict[int, tp.TileView] = field(default_factory=dict)
    tile_names: dict[int, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)            # C++ type -> alias
    vars: dict[s.Var, str] = field(default_factory=dict)
    counting: set[s.Var] = field(default_factory=set)              # loop variables that are never negative
    params: dict[str, str] = field(default_factory=dict)           # a parameter -> its pointer, or its value
    positions: dict[str, int] = field(default_factory=dict)
    dtypes: dict[str, DType] = field(default_factory=dict)         # of memory parameters
    scalars: dict[str, c.Declare] = field(default_factory=dict)       # declarations that read a descriptor or a slot, by key

    def __post_init__(self) -> None:
        for buffer in self.program.buffers:
            self.buffers[buffer.id] = self.names.take(f"k{buffer.space.value.title()}{_camel(buffer.name)}")
        memory = [param for param in self.program.params if not isinstance(param, ScalarParamDecl)]
        for position, param in enumerate(memory):
            self.params[param.name], self.positions[param.name] = self.names.take(cpp_ident(f"{param.name}_gm")), position
            self.dtypes[param.name] = param.dtype
        declared = [param for param in self.program.params if isinstance(param, ScalarParamDecl)]
        for position, scalar in enumerate(declared, len(memory)):
            self.params[scalar.name], self.positions[scalar.name] = self.names.take(cpp_ident(scalar.name)), position
        for tile in self.program.tiles:
            self.tiles[tile.id] = tile
            name = self.names.take(cpp_ident(tile.name))
            self.tile_names[tile.id] = name
            spelled = tile_type(tile)
            if spelled not in self.types:
                self.types[spelled] = self.names.take(alias_stem(tile))

    # -- around the body

    def plan_lines(self) -> Iterator[str]:
        """Yield the memory plan as constants, by memory and address."""
        buffers = sorted(self.program.buffers, key=lambda buffer: (list(tp.Space).index(buffer.space), buffer.address or 0, buffer.id))
        for buffer in buffers:
            if buffer.address is None:
                raise InternalError(f"`{buffer.name}` has no address", self.program.name)
            copies = f" x {buffer.copies}" if buffer.copies > 1 else ""
            yield f"constexpr int {self.buffers[buffer.id]} = 0x{buffer.address:05x};  // {buffer.size_bytes} bytes{copies}"

    def prologue(self) -> Iterator[c.Stmt]:
        for spelled, alias in self.types.items():
            yield c.Using(alias, spelled)

    def arguments(self) -> Iterator[c.Stmt]:
        """Yield declarations of the pointers, strides, extents and numbers that the body uses, in order of parameters."""
        for key in sorted(self.scalars, key=lambda key: (self.positions[key.split("#")[0]], key)):
            yield self.scalars[key]

    # -- steps

    def block(self, body: tuple[tp.Step, ...]) -> Iterator[c.Stmt]:
        for step in body:
            yield from self._step(step)

    def _step(self, step: tp.Step) -> Iterator[c.Stmt]:
        match step:
            case tp.BindTile():
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
            case tp.For(var, start, stop, by, body):
                name = self._new_var(var)
                if self._natural(start):
                    self.counting.add(var)
                yield c.For("int64_t", name, self._scalar(start), self._scalar(stop), self._scalar(by), tuple(self.block(body)))
            case tp.If(condition, then, other):
                yield c.If(self._scalar(condition), tuple(self.block(then)), tuple(self.block(other)))
            case tp.Leave(condition):
                yield c.If(self._scalar(condition), (c.Return(),))
            case _:
                assert_never(step)

    def _declare(self, step: tp.BindTile) -> Iterator[c.Stmt]:
        tile = self.tiles[step.tile]
        buffer = self.program.buffer(tile.buffer)
        valid = self._valid(tile)
        yield c.Construct(self.types[tile_type(tile)], self.tile_names[tile.id], valid)
        address: c.Expr = c.Name(self.buffers[buffer.id])
        if tile.offset:
            address = c.Infix("+", address, c.Int(tile.offset))
        moved = step.shift
        if buffer.copies > 1:
            moved = s.add(s.mul(s.binary(s.Op.MOD, step.iteration, s.Const(buffer.copies)), s.Const(buffer.size_bytes)), moved)
        if moved != s.Const(0):
            address = c.Cast("int", c.Infix("+", address, self._scalar(moved)))
        yield c.Evaluate(c.Call("TASSIGN", (c.Name(self.tile_names[tile.id]), address)))

    def _valid(self, tile: tp.TileView) -> tuple[c.Expr, ...]:
        """Return the valid extents of a tile with dynamic extents; empty for a static tile."""
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
            case tp.NumberArg(value, dtype):
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

    # -- global memory

    def _moved(self, tile: tp.TileView, param: str, row: s.Scalar, col: s.Scalar, *, turned: bool, load: bool) -> Iterator[c.Stmt]:
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
        address = pointer(element, self.positions[param])
        self.scalars.setdefault(f"{param}#", c.Declare(f"__gm__ {element} *const", self.params[param], address))
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
        """Return the step in elements along "rows" or "cols" of a parameter."""
        side: Side = "row" if which == "rows" else "col"
        return self._read(param, f"{side}_step", step_of(*self._found(param), side))

    def _extent(self, param: str, dim: int) -> c.Expr:
        side: Side = "col" if dim else "row"
        return self._read(param, f"{side}s", extent_of(*self._found(param), side))

    def _found(self, param: str) -> tuple[tp.ParamAccess, int]:
        position = self.positions[param]
        return self.program.access[position], position

    def _read(self, param: str, what: str, value: c.Expr) -> c.Expr:
        """Return a constant unchanged; a value read from a descriptor is declared once."""
        if isinstance(value, c.Int):
            return value
        key = f"{param}#{what}"
        if key not in self.scalars:
            self.scalars[key] = c.Declare("const int64_t", self.names.take(cpp_ident(f"{param}_{what}")), value)
        return c.Name(self.scalars[key].name)

    # -- scalars

    def _event(self, event: s.Scalar) -> c.Expr:
        """Return an event by its enumerator.

        An event that alternates between iterations is a choice of enumerators, because their type belongs to the headers.
        """
        match event:
            case s.Const(first):
                return c.Name(f"EVENT_ID{int(first)}")
            case s.Binary(s.Op.MOD, _, s.Const(copies)):
                chosen_by, first = event, 0
            case s.Binary(s.Op.ADD, s.Binary(s.Op.MOD, _, s.Const(copies)) as chosen_by, s.Const(first)):
                pass
            case _:
                raise InternalError(f"event {print_scalar(event)}", self.program.name)
        chosen: c.Expr = c.Name(f"EVENT_ID{int(first + copies) - 1}")
        for copy in reversed(range(int(copies) - 1)):
            chosen = c.Ternary(c.Infix("==", self._scalar(chosen_by), c.Int(copy)), c.Name(f"EVENT_ID{int(first) + copy}"), chosen)
        return chosen

    def _scalar(self, node: s.Scalar) -> c.Expr:
        return lower_scalar(node, self._leaf, single=True, wide=False, natural=self._natural)

    def _natural(self, node: s.Scalar) -> bool:
        """Return whether an integer is surely not negative."""
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
        self.vars[var] = self.names.take(cpp_ident(var.name))
        return self.vars[var]


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in c.c_ident(name).split("_"))


def _text(extent: s.Scalar) -> str:
    if not isinstance(extent, s.Const):
        raise InternalError("a valid extent is not constant", print_scalar(extent))
    return str(int(extent.value))
