"""Spell golden.py: folded lines with source positions, identifiers, scalar expressions, and ops in NumPy.

The NumPy text of an op is that of its entry in the op table, with operands, dtypes and attributes filled in.

>>> spell_dtype(DType.BF16)
'ml_dtypes.bfloat16'
"""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from pto_wsp.errors import unreachable
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel import Attr
from pto_wsp.ir.scalar import COMPARISONS, Op
from pto_wsp.ir.tile import TileType
from pto_wsp.ops.entries.movement import picked
from pto_wsp.ops.entry import Attrs
from pto_wsp.ops.rounding import default_mode
from pto_wsp.ops.spec import ColReduce, Convert, Elementwise, RowReduce
from pto_wsp.ops.table import find
from pto_wsp.source import Span

INDENT = "    "
_LONGEST = 130   # the template indents lines by up to 8 more


class Lines:
    """Collects lines. `line`: the line of the user's file that the first line need not name."""

    def __init__(self, line: int = 0) -> None:
        self.out: list[str] = []
        self._line = line

    def put(self, depth: int, text: str, span: Span) -> None:
        """Append a line, with its source position if that differs from the position of the previous line."""
        where = f"# {span.short}" if span.line and span.line != self._line else ""
        self._line = span.line or self._line
        line = INDENT * depth + text
        if where and len(line) + len(where) + 2 <= _LONGEST:
            self.out.append(f"{line}  {where}")
            return
        if where:
            self.out.append(INDENT * depth + where)
        self.out += fold(line, depth)


def fold(line: str, depth: int) -> list[str]:
    """Return a line in pieces, each but the last ending after a comma inside brackets."""
    pieces: list[str] = []
    while len(line) > _LONGEST and (at := _comma(line)) is not None:
        pieces.append(line[:at + 1])
        line = INDENT * (depth + 2) + line[at + 2:]
    return [*pieces, line]


def _comma(line: str) -> int | None:
    """Return the position of the last foldable comma, None if there is none. Strings in generated lines have no brackets."""
    open_brackets, last = 0, None
    for at, char in enumerate(line[:_LONGEST]):
        open_brackets += (char in "([{") - (char in ")]}")
        if char == "," and open_brackets > 0 and line[at + 1] == " ":
            last = at
    return last


# Names that golden.py does not give to a user's tensor, kernel or variable.
PYTHON_NAMES = frozenset((
    *keyword.kwlist, *keyword.softkwlist, *dir(builtins), "np", "ml_dtypes", "ctypes", "math", "tensors", "params", "rng"))


def python_ident(wanted: str, otherwise: str) -> str:
    """Return `wanted` without the characters that an identifier cannot have; `otherwise` if none are left."""
    return re.sub(r"\W", "", wanted, flags=re.ASCII).lstrip("_0123456789") or otherwise


# -- scalars ---------------------------------------------------------------------------------------


Leaf: TypeAlias = Callable[[s.Scalar], str]

# Divisions of integers, which give 0 for a divisor of 0, and of floats.
_DIVISIONS = {Op.FLOORDIV: ("_floordiv", "np.floor_divide"), Op.MOD: ("_mod", "np.mod"), Op.DIV: ("", "np.divide")}


def spell_scalar(node: s.Scalar, leaf: Leaf) -> str:
    """Return Python for a scalar without superfluous parentheses. `leaf` spells nodes other than constants and operations."""
    text = _spell(node, leaf)
    return ast.unparse(ast.parse(text, mode="eval")) if "(" in text else text


def _spell(node: s.Scalar, leaf: Leaf) -> str:
    match node:
        case s.Const(float() as value):
            return repr(value) if abs(value) < float("inf") else f"float('{value!r}')"
        case s.Const(value):
            return repr(value)
        case s.Unary(op, value):
            if op is Op.NOT:
                return f"(not {_spell(value, leaf)})" if s.scalar_dtype(value).is_bool else f"(~{_spell(value, leaf)})"
            return f"(-{_spell(value, leaf)})"
        case s.Binary(op, lhs, rhs):
            return _binary(op, lhs, rhs, leaf)
        case s.Select(condition, then, other):
            kind = s.scalar_dtype(node)
            sides = [f"float({_spell(side, leaf)})" if kind is DType.F64 and not s.scalar_dtype(side).is_float else _spell(side, leaf)
                     for side in (then, other)]
            return f"({sides[0]} if {_spell(condition, leaf)} else {sides[1]})"
        case s.Sum():
            unreachable("a sum outside of a cost")
        case _:
            return leaf(node)


def _binary(op: Op, lhs: s.Scalar, rhs: s.Scalar, leaf: Leaf) -> str:
    left, right = _spell(lhs, leaf), _spell(rhs, leaf)
    if op in (Op.MIN, Op.MAX):
        floats = s.scalar_dtype(lhs).is_float or s.scalar_dtype(rhs).is_float
        return f"float(np.{op.value}imum({left}, {right}))" if floats else f"{op.value}({left}, {right})"
    if op in _DIVISIONS and not (isinstance(rhs, s.Const) and rhs.value):
        by_whole, by_float = _DIVISIONS[op]
        floats = op is Op.DIV or s.scalar_dtype(lhs).is_float or s.scalar_dtype(rhs).is_float
        return f"float({by_float}(np.float64({left}), {right}))" if floats else f"{by_whole}({left}, {right})"
    if op in COMPARISONS or op in (Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.FLOORDIV, Op.MOD, Op.AND, Op.OR):
        return f"({left} {op.value} {right})"
    unreachable(f"{op!r} in a plan's values")


def spell_op(op: str, operands: Sequence[str], types: Sequence[TileType], result: TileType, attrs: Attrs) -> str:
    """Return the NumPy expression of an op on operands given as names or calls."""
    entry = find(op)
    widens = isinstance(entry, Elementwise | RowReduce | ColReduce)
    if widens:
        operands = [f"{text}.astype(np.float32)" if kind.dtype.is_half else text for text, kind in zip(operands, types, strict=True)]
    names: dict[str, str] = {name: spell_dtype(value) if isinstance(value, DType) else repr(value) for name, value in attrs}
    names |= {"shape": str(result.shape), "dtype": spell_dtype(result.dtype), "all": ", ".join(operands)}
    text = entry.form(attrs).numpy if isinstance(entry, Elementwise) else entry.numpy
    if "{picked}" in text:
        names["picked"] = ", ".join(_spell_slice(*axis) for axis in picked(attrs))
    if isinstance(entry, Convert):
        text = _cast_form(entry, types[0].dtype, result.dtype, attrs)
        names |= {"mode": repr(_attr(attrs, "mode") or default_mode(result.dtype)), "format": _spell_format(result.dtype)}
        names["saturate"] = str(_attr(attrs, "saturate") is not False if result.dtype.is_integer else bool(_attr(attrs, "saturate")))
    text = text.format(*operands, **names)
    return f"({text}).astype({spell_dtype(result.dtype)})" if widens and result.dtype.is_half else text


def spell_dtype(dtype: DType) -> str:
    """Return the name of a dtype in golden.py."""
    name = dtype.np.name
    if dtype.is_foreign:
        return f"ml_dtypes.{name}"
    return f"np.{name}" if not dtype.is_bool else "np.bool_"


def _cast_form(entry: Convert, source: DType, target: DType, attrs: Attrs) -> str:
    """Return the NumPy text of a cast with these attributes."""
    mode, saturate = _attr(attrs, "mode"), bool(_attr(attrs, "saturate"))
    if target.is_bool:
        return entry.numpy_to_mask
    if target.is_integer:
        if source.is_real:
            return entry.numpy_to_integer
        return entry.numpy_between if saturate and not source.is_bool else entry.numpy
    plain = not saturate and mode in (None, "rint")
    exact = source.is_real and target.is_float and _digits(target) >= _digits(source)
    nearest = plain and (source is DType.F32 or (target.is_float and not target.is_half) or source.is_bool)
    widens = exact and not saturate and target.nbytes > source.nbytes
    return entry.numpy if widens or nearest else entry.numpy_to_float


def _digits(dtype: DType) -> int:
    return dtype.format.digits


def _spell_format(dtype: DType) -> str:
    if not dtype.is_real:
        return ""
    kind = dtype.format
    return f"{kind.digits}, {kind.low}, {kind.largest!r}, {kind.infinite}"


def _spell_slice(first: int, count: int, step: int) -> str:
    stop = first + count * step
    text = f"{first}:{stop if stop >= 0 else ''}"
    return text if step == 1 else f"{text}:{step}"


def _attr(attrs: Attrs, wanted: str) -> Attr:
    return next((value for name, value in attrs if name == wanted), None)
