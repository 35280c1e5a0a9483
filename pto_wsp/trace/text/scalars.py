"""Read scalars, numbers and tile types, as `print_scalar` and `repr` write them.

Operators, their precedence and the words of functions come from `ir/scalar.py`; `names` says what a name stands for. An expression is read
as it stands: nothing is folded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from pto_wsp.errors import PtoError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import TileType, fixed_tile
from pto_wsp.trace.text.lexer import INNER, IrToken, Reader

_INFIX = {op.value: op for op in s.LEVEL}
_CALLS = {op.value: op for op in (s.Op.MIN, s.Op.MAX, s.Op.HASHMOD)}
_CONSTANTS: dict[str, s.Number] = {"True": True, "False": False, "inf": math.inf, "nan": math.nan}
_DTYPES = {str(dtype): dtype for dtype in DType}
_WORDS = (*_CALLS, "where", "slot_u64", "sum")
_UNARY_LEVEL = max(s.LEVEL.values()) + 1

Names = Callable[[IrToken], s.Scalar]


def read_scalar(reader: Reader, names: Names, level: int = 0) -> s.Scalar:
    """Return the scalar that begins at the next token. `level`: the precedence of the context.

    Raises: W116 for what is no scalar.
    """
    left = _operand(reader, names)
    while reader.next.kind == "mark" and reader.next.indent == INNER and reader.next.text in _INFIX:
        op = _INFIX[reader.next.text]
        if s.LEVEL[op] < level:
            break
        reader.take()
        left = s.Binary(op, left, read_scalar(reader, names, s.LEVEL[op] + 1))
        if op in s.COMPARISONS:
            level = s.LEVEL[op] + 1      # a < b < c is no chain
    return left


def _operand(reader: Reader, names: Names) -> s.Scalar:
    token = reader.next
    if token.indent != INNER or token.kind not in ("number", "name", "mark"):
        reader.fail("a scalar is missing", expected="a number, a name, or an expression of them")
    if token.kind == "number":
        return s.Const(reader.number(reader.take()))
    if token.kind == "mark":
        return _prefixed(reader, names)
    if token.text in _CONSTANTS:
        reader.take()
        return s.Const(_CONSTANTS[token.text])
    if reader.behind.text == "(" and reader.behind.kind == "mark":
        return _call(reader, names)
    return names(reader.take())


def _prefixed(reader: Reader, names: Names) -> s.Scalar:
    token = reader.take()
    match token.text:
        case "(":
            inner = read_scalar(reader, names)
            reader.expect(")")
            return inner
        case "-" if reader.next.kind == "number" or reader.sees("inf", "nan"):
            return s.Const(-s.Const(_constant(reader)).value)
        case "-" | "~":
            return s.Unary(s.Op.NEG if token.text == "-" else s.Op.NOT, read_scalar(reader, names, _UNARY_LEVEL))
        case _:
            reader.fail("a scalar is missing", token, expected="a number, a name, or an expression of them")


def _constant(reader: Reader) -> s.Number:
    token = reader.take()
    return reader.number(token) if token.kind == "number" else _CONSTANTS[token.text]


def _call(reader: Reader, names: Names) -> s.Scalar:
    word = reader.take()
    reader.expect("(")
    match word.text:
        case "min" | "max" | "hashmod":
            lhs, rhs = _arguments(reader, names, 2)
            return s.Binary(_CALLS[word.text], lhs, rhs)
        case "where":
            condition, then, other = _arguments(reader, names, 3)
            return s.Select(condition, then, other)
        case "slot_u64":
            slot = reader.whole("a slot")
            reader.expect(")")
            return s.SlotValue(slot)
        case "sum":
            return _sum(reader, names)
        case _:
            reader.fail(f"no scalar is called `{word.text}`", word, expected=", ".join(_WORDS), known=_WORDS)


def _sum(reader: Reader, names: Names) -> s.Sum:
    body = read_scalar(reader, names)
    reader.expect("for")
    token = reader.name("a variable")
    var = names(token)
    if not isinstance(var, s.Var):
        reader.fail(f"`{token.text}` is no variable of a loop", token)
    reader.expect("in")
    bounds = read_range(reader, names)
    reader.expect(")")
    return s.Sum(var, *bounds, body)


def read_range(reader: Reader, names: Names) -> tuple[s.Scalar, s.Scalar, s.Scalar]:
    """Return the bounds of `range(start, stop, step)`; as in Python, start is 0 and step 1 where they are left out.

    Raises: W116 for anything else.
    """
    reader.expect("range")
    reader.expect("(")
    bounds = [read_scalar(reader, names)]
    while len(bounds) < 3 and reader.has(","):
        bounds.append(read_scalar(reader, names))
    reader.expect(")")
    match bounds:
        case [stop]:
            return s.Const(0), stop, s.Const(1)
        case [start, stop]:
            return start, stop, s.Const(1)
        case [start, stop, step]:
            return start, stop, step
    reader.fail("a range has one to three bounds")


def _arguments(reader: Reader, names: Names, count: int) -> Sequence[s.Scalar]:
    found = [read_scalar(reader, names)]
    for _ in range(count - 1):
        reader.expect(",", "between arguments")
        found.append(read_scalar(reader, names))
    reader.expect(")")
    return found


# -- literals ----------------------------------------------------------------------------------------------------------
def read_number(reader: Reader, what: str) -> s.Number:
    """Return the next number, which is a constant: a fill, an init.

    Raises: W116 for anything else.
    """
    minus = reader.has("-")
    token = reader.next
    if token.indent != INNER or not (token.kind == "number" or (token.kind == "name" and token.text in _CONSTANTS)):
        reader.fail(f"{what} is missing", expected="a number, True or False")
    value = _constant(reader)
    return -value if minus else value


def read_dtype(reader: Reader) -> DType:
    """Return the dtype of the next name.

    Raises: W116 for a name that no dtype has.
    """
    token = reader.name("a dtype")
    if token.text not in _DTYPES:
        reader.fail(f"there is no dtype `{token.text}`", token, expected=f"one of {', '.join(_DTYPES)}", known=_DTYPES)
    return _DTYPES[token.text]


def is_dtype(token: IrToken) -> bool:
    """Tell whether a token is the name of a dtype."""
    return token.kind == "name" and token.text in _DTYPES


def read_tile(reader: Reader) -> TileType:
    """Return the tile type `Tile[rows, cols, dtype]`.

    Raises: W116 for what is no tile type, and for a tile that is too large.
    """
    start = reader.expect("Tile")
    reader.expect("[")
    rows = reader.whole("the number of rows")
    reader.expect(",")
    cols = reader.whole("the number of columns")
    reader.expect(",")
    dtype = read_dtype(reader)
    reader.expect("]")
    try:
        return fixed_tile((rows, cols), dtype)
    except PtoError as problem:
        reader.fail(problem.message, start, expected=problem.expected, found=problem.found)
