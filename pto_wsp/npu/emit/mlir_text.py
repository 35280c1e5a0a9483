"""Write MLIR text: operations with locations, unique names, regions, types of the `pto` dialect, and scalars in `arith`.

Integers are `index`, conditions `i1`, other scalars `f32`. // and % round down, and give 0 for a divisor of 0.

>>> text.value("c", "arith.constant 16 : index", span)
'%c'
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias

from pto_wsp.arch.model import Arch
from pto_wsp.errors import DialectError, InternalError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.names import Names
from pto_wsp.ir.scalar import Const, Op, Scalar, print_scalar
from pto_wsp.npu.isa.tile_program import Form, TileView
from pto_wsp.source import UNKNOWN, Span

_INDENT = "  "


class Text:
    """Lines of operations, each with its source location. `fallback`: the location of operations without one.

    `names`: of the function, shared by all of its texts.
    """

    def __init__(self, fallback: Span, depth: int, names: Names) -> None:
        self.lines: list[str] = []
        self._fallback = fallback
        self._depth = depth
        self._names = names

    def op(self, operation: str, span: Span) -> None:
        """Append an operation without results."""
        self.lines.append(f"{_INDENT * self._depth}{operation} {self._loc(span)}")

    def value(self, name: str, operation: str, span: Span) -> str:
        """Append an operation with one result and return the result's name, which is close to `name`."""
        given = self.fresh(name)
        self.op(f"{given} = {operation}", span)
        return given

    def fresh(self, name: str) -> str:
        """Return an unused name."""
        stem = re.sub(r"[^A-Za-z0-9_]", "_", name) or "v"
        stem = f"v{stem}" if stem[0].isdigit() else stem
        return f"%{self._names.take(stem)}"

    @contextmanager
    def region(self, head: str, span: Span) -> Iterator[None]:
        """Append an operation whose region is what the caller appends inside."""
        self.lines.append(f"{_INDENT * self._depth}{head} {{")
        self._depth += 1
        yield
        self._depth -= 1
        self.lines.append(f"{_INDENT * self._depth}}} {self._loc(span)}")

    def otherwise(self) -> None:
        """End the first region of an operation and begin its second."""
        self.lines.append(f"{_INDENT * (self._depth - 1)}}} else {{")

    def _loc(self, span: Span) -> str:
        return location(span if span.line else self._fallback)


def location(span: Span) -> str:
    """Return a source location with the bare file name, so that the text does not depend on folders."""
    name = os.path.basename(span.file).replace("\\", "_").replace('"', "_")
    return f'loc("{name}":{span.line}:{span.column})'


# -- types -----------------------------------------------------------------------------------------


_ELEMENTS: Mapping[DType, str] = {
    DType.F32: "f32", DType.F16: "f16", DType.BF16: "bf16", DType.I8: "i8", DType.I16: "i16", DType.I32: "i32", DType.I64: "i64",
    DType.U8: "ui8", DType.U16: "ui16", DType.U32: "ui32", DType.U64: "ui64", DType.BOOL: "ui8",
}
_Layout: TypeAlias = tuple[str, str, str, int]      # loc, blayout, slayout, bytes of a fractal
_ROWS, _COLS = "row_major", "col_major"
_FORMS: Mapping[Form, _Layout] = {
    Form.ROWS: ("vec", _ROWS, "none_box", 512), Form.COLUMN: ("vec", _COLS, "none_box", 512),
    Form.NZ: ("mat", _COLS, _ROWS, 512), Form.ZN: ("mat", _ROWS, _COLS, 512),
    Form.LEFT: ("left", _ROWS, _ROWS, 512), Form.RIGHT: ("right", _ROWS, _COLS, 512), Form.ACC: ("acc", _COLS, _ROWS, 1024),
}


def element(dtype: DType) -> str | None:
    """Return the type of an element, None if the dialect has none."""
    return _ELEMENTS.get(dtype)


def tile_type(tile: TileView, arch: Arch) -> str:
    """Return the type of a tile. On a5, the left operand of products has blocks in column order."""
    loc, blayout, slayout, fractal = _FORMS[tile.form]
    if tile.form is Form.LEFT and arch.family == "a5":
        blayout = _COLS
    return (f"!pto.tile_buf<loc={loc}, dtype={element(tile.dtype)}, rows={tile.rows}, cols={tile.cols}, v_row={extent(tile.valid_rows)}, "
            f"v_col={extent(tile.valid_cols)}, blayout={blayout}, slayout={slayout}, fractal={fractal}, pad=0>")


def view_type(dtype: DType) -> str:
    """Return the type of a parameter's view."""
    return f"!pto.tensor_view<?x?x{element(dtype)}>"


def part_type(tile: TileView, dtype: DType) -> str:
    """Return the type of the part of a view that a tile is loaded from or stored to."""
    return f"!pto.partition_tensor_view<{extent(tile.valid_rows)}x{extent(tile.valid_cols)}x{element(dtype)}>"


def extent(value: Scalar) -> str:
    """Return a constant extent, or ? if it is known only at run time."""
    return str(int(value.value)) if isinstance(value, Const) else "?"


# -- scalars ---------------------------------------------------------------------------------------


Leaf: TypeAlias = Callable[[s.Scalar], str]

_TYPES: Mapping[DType, str] = {DType.I64: "index", DType.F64: "f32", DType.BOOL: "i1"}
_WHOLE: Mapping[Op, str] = {Op.ADD: "addi", Op.SUB: "subi", Op.MUL: "muli", Op.MIN: "minsi", Op.MAX: "maxsi", Op.AND: "andi", Op.OR: "ori"}
_REAL: Mapping[Op, str] = {Op.ADD: "addf", Op.SUB: "subf", Op.MUL: "mulf", Op.DIV: "divf", Op.MIN: "minimumf", Op.MAX: "maximumf"}
_COMPARED: Mapping[Op, tuple[str, str]] = {Op.EQ: ("eq", "oeq"), Op.NE: ("ne", "une"), Op.LT: ("slt", "olt"), Op.LE: ("sle", "ole"),
                                           Op.GT: ("sgt", "ogt"), Op.GE: ("sge", "oge")}


class Scalars:
    """Appends the operations of scalars to a text, and constants to its head. `leaf` names nodes other than constants and operations."""

    def __init__(self, head: Text, text: Text, leaf: Leaf) -> None:
        self._head, self._text, self._leaf = head, text, leaf
        self._constants: dict[tuple[str, str], str] = {}

    def index(self, node: s.Scalar, span: Span) -> str:
        """Return the name of a scalar as `index`."""
        return self._as(DType.I64, node, span)

    def condition(self, node: s.Scalar, span: Span) -> str:
        """Return the name of a scalar as `i1`."""
        return self._as(DType.BOOL, node, span)

    def number(self, node: s.Scalar, dtype: DType, span: Span) -> tuple[str, str]:
        """Return the name and type of a scalar as an element of `dtype`."""
        kind = element(dtype) or "f32"
        if isinstance(node, s.Const):
            return self._constant(_literal(node.value, dtype), kind), kind
        if dtype.is_float:
            value = self._as(DType.F64, node, span)
            return (value if dtype is DType.F32 else self._text.value("narrow", f"arith.truncf {value} : f32 to {kind}", span)), kind
        whole, signless = self._as(DType.I64, node, span), kind.removeprefix("u")
        return self._text.value("number", f"arith.index_cast {whole} : index to {signless}", span), signless

    def constant(self, value: int) -> str:
        """Return the name of an integer constant."""
        return self._constant(str(value), "index")

    def _constant(self, literal: str, kind: str) -> str:
        if kind.startswith("ui"):
            kind = kind.removeprefix("u")      # arith has signless integers only
        if (literal, kind) not in self._constants:
            spelled = f"arith.constant {literal}" + ("" if kind == "i1" else f" : {kind}")
            self._constants[literal, kind] = self._head.value(_name(literal, kind), spelled, UNKNOWN)
        return self._constants[literal, kind]

    def _as(self, wanted: DType, node: s.Scalar, span: Span) -> str:
        if isinstance(node, s.Const):
            return self._constant(_literal(node.value, {DType.I64: DType.I64, DType.F64: DType.F32, DType.BOOL: DType.BOOL}[wanted]),
                                  _TYPES[wanted])
        kind, name = s.scalar_dtype(node), self._lower(node, span)
        if kind is wanted:
            return name
        match kind, wanted:
            case DType.BOOL, DType.I64:
                return self._text.value("whole", f"arith.index_castui {name} : i1 to index", span)
            case DType.I64, DType.BOOL:
                return self._text.value("holds", f"arith.cmpi ne, {name}, {self.constant(0)} : index", span)
            case DType.I64, DType.F64:
                wide = self._text.value("wide", f"arith.index_cast {name} : index to i64", span)
                return self._text.value("real", f"arith.sitofp {wide} : i64 to f32", span)
            case _:
                raise InternalError(f"{print_scalar(node)} as {wanted}", "no kernel asks for that")

    def _lower(self, node: s.Scalar, span: Span) -> str:
        match node:
            case s.Unary(Op.NOT, value) if s.scalar_dtype(value).is_bool:
                return self._text.value("not", f"arith.xori {self._as(DType.BOOL, value, span)}, {self._constant('true', 'i1')} : i1", span)
            case s.Unary(Op.NOT, value):
                return self._text.value("flipped", f"arith.xori {self.index(value, span)}, {self.constant(-1)} : index", span)
            case s.Unary(_, value) if s.scalar_dtype(value).is_float:
                return self._text.value("negated", f"arith.negf {self._as(DType.F64, value, span)} : f32", span)
            case s.Unary(_, value):
                return self._text.value("negated", f"arith.subi {self.constant(0)}, {self.index(value, span)} : index", span)
            case s.Binary(op, lhs, rhs):
                return self._binary(op, lhs, rhs, span)
            case s.Select(condition, then, other):
                kind = s.scalar_dtype(node)
                parts = self.condition(condition, span), self._as(kind, then, span), self._as(kind, other, span)
                return self._text.value("chosen", f"arith.select {', '.join(parts)} : {_TYPES[kind]}", span)
            case _:
                return self._leaf(node)

    def _binary(self, op: Op, lhs: s.Scalar, rhs: s.Scalar, span: Span) -> str:
        kinds = s.scalar_dtype(lhs), s.scalar_dtype(rhs)
        if DType.F64 in kinds or op is Op.DIV:
            one, two = self._as(DType.F64, lhs, span), self._as(DType.F64, rhs, span)
            if op in _COMPARED:
                return self._text.value("holds", f"arith.cmpf {_COMPARED[op][1]}, {one}, {two} : f32", span)
            if op in (Op.FLOORDIV, Op.MOD):
                raise DialectError(f"`{print_scalar(s.Binary(op, lhs, rhs))}` has no form in .pto", span,
                                   expected="// and % of whole numbers", help="compile for ascend_npu, which emits C++")
            return self._text.value("real", f"arith.{_REAL[op]} {one}, {two} : f32", span)
        kind = DType.BOOL if kinds == (DType.BOOL, DType.BOOL) and op in (Op.AND, Op.OR) else DType.I64
        one, two = self._as(kind, lhs, span), self._as(kind, rhs, span)
        if op in _COMPARED:
            return self._text.value("holds", f"arith.cmpi {_COMPARED[op][0]}, {one}, {two} : index", span)
        if op in (Op.FLOORDIV, Op.MOD):
            return self._divided(op, one, two, isinstance(rhs, s.Const) and rhs.value != 0, span)
        return self._text.value(op.name.lower(), f"arith.{_WHOLE[op]} {one}, {two} : {_TYPES[kind]}", span)

    def _divided(self, op: Op, one: str, two: str, known: bool, span: Span) -> str:
        text, zero = self._text, self.constant(0)
        by = two
        if not known:
            empty = text.value("by_zero", f"arith.cmpi eq, {two}, {zero} : index", span)
            by = text.value("divisor", f"arith.select {empty}, {self.constant(1)}, {two} : index", span)
        quotient = text.value("quotient", f"arith.floordivsi {one}, {by} : index", span)
        if op is Op.MOD:
            product = text.value("product", f"arith.muli {quotient}, {by} : index", span)
            quotient = text.value("rest", f"arith.subi {one}, {product} : index", span)
        return quotient if known else text.value("safe", f"arith.select {empty}, {zero}, {quotient} : index", span)


def _name(literal: str, kind: str) -> str:
    """Return a name for a constant: %c16, %c0p5_f32, %cm1, %true."""
    if kind == "i1":
        return literal
    short = literal if literal.startswith("0x") or "e" not in literal else f"{float(literal):g}"
    return f"c{short}".replace("-", "m").replace(".", "p").replace("+", "") + ("" if kind == "index" else f"_{kind}")


def _literal(value: s.Number, dtype: DType) -> str:
    """Return a constant as MLIR reads it; infinities and NaN by their bits."""
    if dtype.is_bool:
        return "true" if value else "false"
    if not dtype.is_float:
        return str(int(value))
    real = float(value)
    if math.isfinite(real):
        return f"{real:.9e}"       # enough digits for every f32
    bits = {DType.F32: (0x7F800000, 0xFF800000, 0x7FC00000, 8), DType.F16: (0x7C00, 0xFC00, 0x7E00, 4),
            DType.BF16: (0x7F80, 0xFF80, 0x7FC0, 4)}[dtype]
    return f"0x{bits[2 if math.isnan(real) else int(real < 0)]:0{bits[3]}X}"
