"""A small C syntax tree: the output of lowering and the input of `printer`.

The tree has only the forms that generated code uses. Names come from `c_ident`, so no user string reaches C unchecked.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from pto_wsp.values import dataclass

_KEYWORDS = frozenset((
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern", "float", "for",
    "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed", "sizeof", "static", "struct",
    "switch", "typedef", "union", "unsigned", "void", "volatile", "while", "_Bool", "_Complex", "asm", "typeof"))
# Names that the preprocessor would replace: ours, those of stdint.h, and three that gcc predefines.
_MACRO = re.compile(r"PTO_\w*|U?INT\w*_(?:MAX|MIN|C|WIDTH)|\w+_(?:MAX|MIN|WIDTH)|NULL|linux|unix|i386")


def c_ident(name: str) -> str:
    """Return a C identifier close to `name`: other characters become _, and a C keyword or macro gets a trailing _."""
    text = re.sub(r"[^A-Za-z0-9_]", "_", name) or "_"
    if text[0].isdigit():
        text = "_" + text
    return text + "_" if text in _KEYWORDS or _MACRO.fullmatch(text) else text


@dataclass(frozen=True, slots=True)
class Name:
    """An identifier."""

    text: str


@dataclass(frozen=True, slots=True)
class Int:
    """An integer constant; `suffix` such as L or LL."""

    value: int
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class Float:
    """A floating constant with exact text; `single` rounds it to f32 and appends an f."""

    value: float
    single: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """function(args)."""

    function: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Prefix:
    """op operand: - ! ~ * &."""

    op: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class Infix:
    """lhs op rhs."""

    op: str
    lhs: Expr
    rhs: Expr


@dataclass(frozen=True, slots=True)
class Ternary:
    """condition ? then : other."""

    condition: Expr
    then: Expr
    other: Expr


@dataclass(frozen=True, slots=True)
class Index:
    """base[index]."""

    base: Expr
    index: Expr


@dataclass(frozen=True, slots=True)
class Member:
    """base.name, or base->name."""

    base: Expr
    name: str
    arrow: bool = False


@dataclass(frozen=True, slots=True)
class Cast:
    """(type)operand."""

    type: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class Braces:
    """{a, b, …}, or with a type (type){a, b, …}."""

    items: tuple[Expr, ...]
    type: str = ""


@dataclass(frozen=True, slots=True)
class Designated:
    """.field = value, an item of braces."""

    field: str
    value: Expr


@dataclass(frozen=True, slots=True)
class StatementExpr:
    """({ statements; result; })."""

    body: tuple[Stmt, ...]
    result: Expr


Expr: TypeAlias = (Name | Int | Float | Call | Prefix | Infix | Ternary | Index | Member | Cast | Braces | Designated
                       | StatementExpr)


@dataclass(frozen=True, slots=True)
class Declare:
    """type name = init;  `array` appends [array], `align` an alignment attribute."""

    type: str
    name: str
    init: Expr | None = None
    array: tuple[int, ...] = ()
    align: int = 0


@dataclass(frozen=True, slots=True)
class Construct:
    """type name(args); in C++, or type name; without arguments."""

    type: str
    name: str
    args: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Using:
    """using name = type; in C++."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Assign:
    """target op value; where op is = += -= …."""

    target: Expr
    value: Expr
    op: str = "="


@dataclass(frozen=True, slots=True)
class Evaluate:
    """expression;"""

    expr: Expr


@dataclass(frozen=True, slots=True)
class For:
    """for (type var = start; var < stop; var += step) { body }; an empty type: the variable is declared already.

    `wraps`: var may pass the largest integer, which ends the loop.
    """

    type: str
    var: str
    start: Expr
    stop: Expr
    step: Expr
    body: tuple[Stmt, ...]
    pragma: str = ""
    wraps: bool = False


@dataclass(frozen=True, slots=True)
class If:
    """if (condition) { then } else { other }."""

    condition: Expr
    then: tuple[Stmt, ...]
    other: tuple[Stmt, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """{ body }, with a macro before it if given."""

    body: tuple[Stmt, ...]
    macro: str = ""


@dataclass(frozen=True, slots=True)
class Return:
    """return value;"""

    value: Expr | None = None


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment line; printing escapes text that would end it."""

    text: str


@dataclass(frozen=True, slots=True)
class Forever:
    """for (;;) { body }"""

    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Break:
    """break;"""


@dataclass(frozen=True, slots=True)
class Label:
    """name:"""

    name: str


@dataclass(frozen=True, slots=True)
class JumpTable:
    """switch (value) { case 1: goto the first label; … }; other values continue after it."""

    value: Expr
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Struct:
    """struct name { fields }; in C++ also inside a function."""

    name: str
    fields: tuple[Declare, ...]


@dataclass(frozen=True, slots=True)
class Closure:
    """const auto name = [&](parameters) -> result { body }; in C++."""

    name: str
    parameters: str
    result: str
    body: tuple[Stmt, ...]


Stmt: TypeAlias = (Declare | Construct | Using | Assign | Evaluate | For | If | Block | Return | Comment | Forever | Break | Label
                   | JumpTable | Struct | Closure)


@dataclass(frozen=True, slots=True)
class Function:
    """head { body }, preceded by a comment line."""

    head: str
    body: tuple[Stmt, ...]
    comment: str = ""


Definition: TypeAlias = Struct | Function


def may_wrap(stop: Expr, step: Expr) -> bool:
    """Return whether a 64-bit loop variable may pass the largest integer before it reaches `stop`."""
    return step != Int(1) and not (isinstance(stop, Int) and isinstance(step, Int) and stop.value + step.value < 1 << 63)
