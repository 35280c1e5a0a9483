"""Print the C syntax tree as C or C++ text, with one precedence table; spell strings and comments."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import assert_never

import numpy as np

from pto_wsp.c import syntax as c


def c_string(text: str) -> str:
    r"""Return a literal of the text's UTF-8 bytes, in ASCII.

    >>> c_string('a "b"\n→')
    '"a \\"b\\"\\012\\342\\206\\222"'
    """
    inside = "".join(_spelled(byte) for byte in text.encode())
    return '"' + re.sub(r"(?<=\?)\?", r"\\?", inside) + '"'     # avoids trigraphs, which strict standards replace


def comment_text(text: str) -> str:
    r"""Return text as one line that cannot end a comment of C or C++, nor continue on the next line.

    >>> comment_text("a */ b\n" + chr(92))
    'a * / b?/'
    """
    line = "".join(c if c.isprintable() else "?" for c in text).replace("\\", "/").replace("??/", "?? /")
    return line.replace("*/", "* /").replace("/*", "/ *")


def _spelled(byte: int) -> str:
    if byte in b'"\\':
        return f"\\{byte:c}"
    return chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}"     # three octal digits end the escape before a following digit


_PRECEDENCE = {
    "*": 13, "/": 13, "%": 13, "+": 12, "-": 12, "<<": 11, ">>": 11, "<": 10, "<=": 10, ">": 10, ">=": 10,
    "==": 9, "!=": 9, "&": 8, "^": 7, "|": 6, "&&": 5, "||": 4,
}
_TERNARY, _PREFIX, _POSTFIX = 3, 14, 15
# gcc warns about these mixed without parentheses; comparisons joined by && and || need none
_MIXED = {"&", "|", "^", "<<", ">>", "&&", "||"}
_COMPARISONS = {"<", "<=", ">", ">=", "==", "!="}
_INDENT = "    "


def print_expr(expr: c.Expr, level: int = 0) -> str:
    """Return the expression's text, in parentheses if its precedence is below `level`."""
    match expr:
        case c.Name(text):
            return text
        case c.Int(value, suffix):
            if value == -(1 << 63):
                return "INT64_MIN"
            return _wrap(f"{value}{suffix}", _PREFIX if value < 0 else _POSTFIX, level)
        case c.Float(value, single):
            return _wrap(_float(value, single), _PREFIX if math.copysign(1.0, value) < 0 else _POSTFIX, level)
        case c.Call(function, args):
            return f"{function}({', '.join(print_expr(a) for a in args)})"
        case c.Prefix(op, operand):
            inner = print_expr(operand, _PREFIX)
            gap = " " if inner.startswith(op) else ""
            return _wrap(f"{op}{gap}{inner}", _PREFIX, level)
        case c.Infix(op, lhs, rhs):
            own = _PRECEDENCE[op]
            text = f"{_operand(op, lhs, own)} {op} {_operand(op, rhs, own + 1)}"
            return _wrap(text, own, level)
        case c.Ternary(condition, then, other):
            text = f"{print_expr(condition, _TERNARY + 1)} ? {print_expr(then, _TERNARY)} : {print_expr(other, _TERNARY)}"
            return _wrap(text, _TERNARY, level)
        case c.Index(base, index):
            return f"{print_expr(base, _POSTFIX)}[{print_expr(index)}]"
        case c.Member(base, name, arrow):
            return f"{print_expr(base, _POSTFIX)}{'->' if arrow else '.'}{name}"
        case c.Cast(type_, operand):
            return _wrap(f"({type_}){print_expr(operand, _PREFIX)}", _PREFIX, level)
        case c.Braces(items, type_):
            return (f"({type_})" if type_ else "") + "{" + ", ".join(print_expr(i) for i in items) + "}"
        case c.Designated(field, value):
            return f".{field} = {print_expr(value)}"
        case c.StatementExpr(body, result):
            inside = " ".join(line.strip() for line in print_stmts(body))
            return f"({{ {inside} {print_expr(result)}; }})"
        case _:
            assert_never(expr)


def _operand(op: str, operand: c.Expr, level: int) -> str:
    joined = op in ("&&", "||") and isinstance(operand, c.Infix) and operand.op in _COMPARISONS
    if isinstance(operand, c.Infix) and operand.op != op and not joined and (op in _MIXED or operand.op in _MIXED):
        return f"({print_expr(operand)})"
    return print_expr(operand, level)


def _wrap(text: str, own: int, level: int) -> str:
    return f"({text})" if own < level else text


def _float(value: float, single: bool) -> str:
    if math.isnan(value):
        return "PTO_NAN"
    if single:   # rounded here, so that the compiler does not round the decimal text of a double a second time
        with np.errstate(over="ignore"):
            rounded = np.float32(value)
        value, text = float(rounded), str(rounded)
    else:
        text = repr(value)
    if math.isinf(value):
        return "PTO_INF" if value > 0 else "-PTO_INF"
    if "." not in text and "e" not in text:
        text += ".0"
    return text + ("f" if single else "")


def print_stmts(body: Sequence[c.Stmt], depth: int = 0, comment: str = "/*") -> Iterator[str]:
    """Yield the lines of the statements, indented by `depth` levels; `comment` opens comments: /* or, in C++, //."""
    pad = _INDENT * depth
    for stmt in body:
        match stmt:
            case c.Declare(type_, name, init, array, align):
                brackets = "".join(f"[{n}]" for n in array)
                aligned = f" __attribute__((aligned({align})))" if align else ""
                value = "" if init is None else f" = {print_expr(init)}"
                star = "" if type_.endswith(("*", "&")) else " "
                yield f"{pad}{type_}{star}{name}{brackets}{aligned}{value};"
            case c.Construct(type_, name, args):
                inside = ", ".join(print_expr(arg) for arg in args)
                yield f"{pad}{type_} {name}({inside});" if args else f"{pad}{type_} {name};"
            case c.Using(name, type_):
                yield f"{pad}using {name} = {type_};"
            case c.Assign(target, value, op):
                yield f"{pad}{print_expr(target)} {op} {print_expr(value)};"
            case c.Evaluate(expr):
                yield f"{pad}{print_expr(expr)};"
            case c.For(type_, var, start, stop, step, inner, pragma, wraps):
                if pragma:
                    yield f"{pad}#pragma {pragma}"
                by = f"++{var}" if step == c.Int(1) else f"{var} += {print_expr(step)}"
                not_wrapped = f" && {var} >= {print_expr(start, 11)}" if wraps else ""
                head = f"{type_} {var}" if type_ else var
                yield f"{pad}for ({head} = {print_expr(start)}; {var} < {print_expr(stop, 11)}{not_wrapped}; {by}) {{"
                yield from print_stmts(inner, depth + 1, comment)
                yield f"{pad}}}"
            case c.If(condition, then, other):
                yield f"{pad}if ({print_expr(condition)}) {{"
                yield from print_stmts(then, depth + 1, comment)
                if other:
                    yield f"{pad}}} else {{"
                    yield from print_stmts(other, depth + 1, comment)
                yield f"{pad}}}"
            case c.Block(inner, macro):
                yield f"{pad}{macro} {{" if macro else f"{pad}{{"
                yield from print_stmts(inner, depth + 1, comment)
                yield f"{pad}}}"
            case c.Return(value):
                yield f"{pad}return;" if value is None else f"{pad}return {print_expr(value)};"
            case c.Comment(text):
                said = comment_text(text)
                yield f"{pad}// {said}" if comment == "//" else f"{pad}/* {said} */"
            case c.Forever(inner):
                yield f"{pad}for (;;) {{"
                yield from print_stmts(inner, depth + 1, comment)
                yield f"{pad}}}"
            case c.Break():
                yield f"{pad}break;"
            case c.Label(name):
                yield f"{name}:;"
            case c.JumpTable(value, labels):
                yield f"{pad}switch ({print_expr(value)}) {{"
                for number, label in enumerate(labels, 1):
                    yield f"{pad}case {number}:"
                    yield f"{pad}{_INDENT}goto {label};"
                yield f"{pad}}}"
            case c.Struct(name, fields):
                yield f"{pad}struct {name} {{"
                yield from print_stmts(fields, depth + 1, comment)
                yield f"{pad}}};"
            case c.Closure(name, parameters, result, inner):
                yield f"{pad}const auto {name} = [&]({parameters}) -> {result} {{"
                yield from print_stmts(inner, depth + 1, comment)
                yield f"{pad}}};"
            case _:
                assert_never(stmt)


def print_definition(definition: c.Definition) -> str:
    """Return the text of a definition outside functions."""
    match definition:
        case c.Struct():
            return "\n".join(print_stmts((definition,)))
        case c.Function(head, body, comment):
            about = [f"/* {comment_text(comment)} */"] if comment else []
            return "\n".join((*about, head, "{", *print_stmts(body, 1), "}"))
        case _:
            assert_never(definition)


def print_block(body: Sequence[c.Stmt], depth: int = 1) -> str:
    """Return the statements as text for the inside of a function's braces."""
    return "\n".join(print_stmts(body, depth))
