"""A parser of the part of MLIR that `.pto` files are written in: tokens, types, operations with regions, and a place at each.

It takes nothing that it does not know: a type of another spelling, an attribute of another name, a missing place is an error with the
line and column. What the operations mean is checked by `meaning`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

TOKEN = re.compile(r"""
    (?P<space>[ \n]+)
  | (?P<string>"[^"\n]*")
  | (?P<value>%[A-Za-z_]\w*)
  | (?P<symbol>@[A-Za-z_]\w*)
  | (?P<type>!pto\.[a-z_]+)
  | (?P<attribute>\#pto(?:\.[a-z_]+)?)
  | (?P<number>-?\d+\.\d+e[+-]\d+|0x[0-9A-F]+|-?\d+)
  | (?P<word>[A-Za-z_][\w.]*)
  | (?P<mark>->|[(){}\[\]<>=:,?])
""", re.VERBOSE)
SHAPE = re.compile(r"(?:(\d+|\?)x)(?:(\d+|\?)x)([a-z]\w*)$")
ELEMENTS = ("f32", "f16", "bf16", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64")
SCALARS = ("index", "i1", *ELEMENTS)
TILE_FIELDS = ("loc", "dtype", "rows", "cols", "v_row", "v_col", "blayout", "slayout", "fractal", "pad")


class Fault(AssertionError):
    """What is wrong, and where."""


@dataclass(frozen=True)
class Token:
    """A piece of the text."""

    kind: str
    text: str
    line: int
    column: int


@dataclass(frozen=True)
class TileType:
    """`!pto.tile_buf<…>`; None: known at run time."""

    loc: str
    dtype: str
    rows: int
    cols: int
    v_row: int | None
    v_col: int | None
    blayout: str
    slayout: str
    fractal: int


@dataclass(frozen=True)
class MemoryType:
    """`ptr`, `tensor_view` or `partition_tensor_view` of an element; extents but for a pointer."""

    kind: str
    dtype: str
    extents: tuple[int | None, ...] = ()


Type = str | TileType | MemoryType


@dataclass
class Op:
    """An operation: results, operands with their types where these are written, attributes, regions."""

    name: str
    token: Token
    result: str | None = None
    ins: list[str] = field(default_factory=list)
    outs: list[str] = field(default_factory=list)
    in_types: list[Type] = field(default_factory=list)
    out_types: list[Type] = field(default_factory=list)
    lists: dict[str, list[str]] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    regions: list[list[Op]] = field(default_factory=list)
    place: tuple[str, int, int] = ("", 0, 0)


@dataclass
class Function:
    """A function with typed arguments."""

    name: str
    kind: str
    arch: str
    arguments: list[tuple[str, Type]]
    body: list[Op]


def tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of a text."""
    at, line, start = 0, 1, 0
    while at < len(text):
        found = TOKEN.match(text, at)
        if found is None:
            raise Fault(f"{line}:{at - start + 1}: {text[at]!r} begins nothing")
        kind = found.lastgroup or ""
        if kind == "space":
            if "\n" in found.group():
                line += found.group().count("\n")
                start = at + found.group().rindex("\n") + 1
        else:
            yield Token(kind, found.group(), line, at - start + 1)
        at = found.end()
    yield Token("end", "", line, at - start + 1)


class Parser:
    """Reads one module."""

    def __init__(self, text: str) -> None:
        self.tokens = list(tokens(text))
        self.at = 0

    # ---- tokens ----

    @property
    def next(self) -> Token:
        return self.tokens[self.at]

    def fail(self, message: str) -> Fault:
        return Fault(f"{self.next.line}:{self.next.column}: {message}, found {self.next.text!r}")

    def take(self, kind: str, what: str = "") -> str:
        if self.next.kind != kind or (what and self.next.text != what):
            raise self.fail(f"expected {what or kind}")
        self.at += 1
        return self.tokens[self.at - 1].text

    def mark(self, text: str) -> None:
        self.take("mark", text)

    def has(self, text: str) -> bool:
        if self.next.kind in ("mark", "word") and self.next.text == text:
            self.at += 1
            return True
        return False

    def whole(self) -> int:
        return int(self.take("number"))

    # ---- types ----

    def type(self) -> Type:
        if self.next.kind == "word":
            if self.next.text not in SCALARS:
                raise self.fail("expected a type")
            return self.take("word")
        name = self.take("type").removeprefix("!pto.")
        self.mark("<")
        match name:
            case "ptr":
                found: Type = MemoryType("ptr", self.element())
            case "tensor_view" | "partition_tensor_view":
                found = self.shaped(name)
            case "tile_buf":
                found = self.tile()
            case _:
                raise self.fail(f"there is no type {name}")
        self.mark(">")
        return found

    def element(self) -> str:
        if self.next.text not in ELEMENTS:
            raise self.fail("expected an element type")
        return self.take("word")

    def shaped(self, name: str) -> MemoryType:
        """`16x?xf32`, which lies in several tokens."""
        text = ""
        while not (self.next.kind == "mark" and self.next.text == ">"):
            if self.next.kind not in ("number", "word", "mark") or (self.next.kind == "mark" and self.next.text != "?"):
                raise self.fail("expected a shape")
            text += self.next.text
            self.at += 1
        found = SHAPE.match(text)
        if found is None or found.group(3) not in ELEMENTS:
            raise self.fail(f"{text} is no shape of two dimensions")
        extents = tuple(None if n == "?" else int(n) for n in found.groups()[:2])
        if name == "tensor_view" and extents != (None, None):
            raise self.fail("a view's extents are given to make_tensor_view")
        return MemoryType(name, found.group(3), extents)

    def tile(self) -> TileType:
        held: dict[str, str] = {}
        for position, name in enumerate(TILE_FIELDS):
            if position:
                self.mark(",")
            self.take("word", name)
            self.mark("=")
            held[name] = self.element() if name == "dtype" else "?" if self.has("?") else self.tokens[self.at].text
            if name != "dtype" and held[name] != "?":
                self.at += 1
        allowed = {"loc": ("vec", "mat", "left", "right", "acc"), "blayout": ("row_major", "col_major"),
                   "slayout": ("none_box", "row_major", "col_major"), "fractal": ("512", "1024"), "pad": ("0",)}
        for name, values in allowed.items():
            if held[name] not in values:
                raise self.fail(f"{name}={held[name]} is none of {', '.join(values)}")
        numbers = {name: None if held[name] == "?" else int(held[name]) for name in ("rows", "cols", "v_row", "v_col")}
        if numbers["rows"] is None or numbers["cols"] is None:
            raise self.fail("the storage of a tile is known")
        return TileType(held["loc"], held["dtype"], numbers["rows"], numbers["cols"], numbers["v_row"], numbers["v_col"],
                        held["blayout"], held["slayout"], int(held["fractal"]))

    # ---- the module ----

    def module(self) -> Function:
        self.take("word", "module")
        self.take("word", "attributes")
        self.mark("{")
        self.take("word", "pto.target_arch")
        self.mark("=")
        arch = self.take("string").strip('"')
        self.mark("}")
        self.mark("{")
        made = self.function(arch)
        self.mark("}")
        self.place()
        self.take("end")
        return made

    def function(self, arch: str) -> Function:
        self.take("word", "func.func")
        name = self.take("symbol")
        self.mark("(")
        arguments: list[tuple[str, Type]] = []
        while not self.has(")"):
            if arguments:
                self.mark(",")
            value = self.take("value")
            self.mark(":")
            arguments.append((value, self.type()))
        self.take("word", "attributes")
        self.mark("{")
        self.take("word", "pto.kernel_kind")
        self.mark("=")
        self.take("attribute", "#pto.kernel_kind")
        self.mark("<")
        kind = self.take("word")
        self.mark(">")
        self.mark("}")
        self.mark("{")
        body = self.operations()
        self.place()
        if not body or body[-1].name != "return":
            raise self.fail("a function ends with return")
        return Function(name, kind, arch, arguments, body)

    def operations(self) -> list[Op]:
        """Return the operations up to the brace that ends the region, which is taken."""
        found: list[Op] = []
        while not self.has("}"):
            found.append(self.operation())
        return found

    def place(self) -> tuple[str, int, int]:
        """`loc("file.py":line:column)`."""
        self.take("word", "loc")
        self.mark("(")
        file = self.take("string").strip('"')
        if "/" in file or "\\" in file or not file:
            raise self.fail("a place names a file without its folder")
        self.mark(":")
        line = self.whole()
        self.mark(":")
        found = file, line, self.whole()
        if min(found[1:]) < 1:
            raise self.fail("lines and columns count from 1")
        self.mark(")")
        return found

    # ---- operations ----

    def operation(self) -> Op:
        result = None
        if self.next.kind == "value":
            result = self.take("value")
            self.mark("=")
        op = Op(self.next.text, self.next, result)
        self.take("word")
        dialect, _, name = op.name.partition(".")
        match dialect, name:
            case "return", "":
                pass
            case "arith", "constant":
                self.constant(op)
            case "arith", _:
                self.arithmetic(op)
            case "scf", "for" | "if":
                self.structured(op)
                return op
            case "pto", "make_tensor_view":
                self.make_view(op)
            case "pto", "partition_view":
                self.partition(op)
            case "pto", "alloc_tile":
                self.alloc(op)
            case "pto", _:
                self.destination_form(op)
            case _:
                raise self.fail(f"there is no operation {op.name}")
        op.place = self.place()
        return op

    def constant(self, op: Op) -> None:
        if self.next.text in ("true", "false"):
            op.attributes["value"] = self.take("word")
            op.out_types.append("i1")
            return
        op.attributes["value"] = self.take("number")
        self.mark(":")
        op.out_types.append(self.type())

    def arithmetic(self, op: Op) -> None:
        if op.name in ("arith.cmpi", "arith.cmpf"):
            op.attributes["predicate"] = self.take("word")
            self.mark(",")
        op.ins.append(self.take("value"))
        while self.has(","):
            op.ins.append(self.take("value"))
        self.mark(":")
        op.in_types.append(self.type())
        if self.has("to"):
            op.out_types.append(self.type())

    def structured(self, op: Op) -> None:
        if op.name == "scf.for":
            op.attributes["variable"] = self.take("value")
            self.mark("=")
            op.ins.append(self.take("value"))
            self.take("word", "to")
            op.ins.append(self.take("value"))
            self.take("word", "step")
        op.ins.append(self.take("value"))
        self.mark("{")
        op.regions.append(self.operations())
        if op.name == "scf.if" and self.has("else"):
            self.mark("{")
            op.regions.append(self.operations())
        op.place = self.place()

    def named_list(self, op: Op, name: str) -> None:
        self.take("word", name)
        self.mark("=")
        self.mark("[")
        op.lists[name] = [self.take("value")]
        while self.has(","):
            op.lists[name].append(self.take("value"))
        self.mark("]")

    def make_view(self, op: Op) -> None:
        op.ins.append(self.take("value"))
        self.mark(",")
        self.named_list(op, "shape")
        self.mark(",")
        self.named_list(op, "strides")
        if self.has("{"):
            self.take("word", "layout")
            self.mark("=")
            self.take("attribute", "#pto.layout")
            self.mark("<")
            op.attributes["layout"] = self.take("word", "dn")
            self.mark(">")
            self.mark("}")
        self.mark(":")
        op.out_types.append(self.type())

    def partition(self, op: Op) -> None:
        op.ins.append(self.take("value"))
        self.mark(",")
        self.named_list(op, "offsets")
        self.mark(",")
        self.named_list(op, "sizes")
        self.mark(":")
        op.in_types.append(self.type())
        self.mark("->")
        op.out_types.append(self.type())

    def alloc(self, op: Op) -> None:
        for name in ("valid_row", "valid_col"):
            if self.has(name):
                self.mark("=")
                op.lists[name] = [self.take("value")]
        self.mark(":")
        op.out_types.append(self.type())

    def destination_form(self, op: Op) -> None:
        """`ins(%a, %b {attributes} : types) outs(%c : type)`."""
        if self.has("ins"):
            self.mark("(")
            op.ins.append(self.take("value"))
            while self.has(","):
                op.ins.append(self.take("value"))
            self.attributes(op)
            self.mark(":")
            op.in_types = self.types(len(op.ins))
            self.mark(")")
        self.take("word", "outs")
        self.mark("(")
        op.outs.append(self.take("value"))
        while self.has(","):
            op.outs.append(self.take("value"))
        self.mark(":")
        op.out_types = self.types(len(op.outs))
        self.mark(")")

    def types(self, count: int) -> list[Type]:
        found = [self.type()]
        for _ in range(count - 1):
            self.mark(",")
            found.append(self.type())
        return found

    def attributes(self, op: Op) -> None:
        if not self.has("{"):
            return
        while True:
            name = self.take("word")
            self.mark("=")
            attribute = self.take("attribute")
            self.mark("<")
            words = [self.take("word")]
            if self.next.kind == "word":
                words.append(self.take("word"))
            self.mark(">")
            wanted = {"rmode": ("#pto", "round_mode"), "cmpMode": ("#pto", "cmp"), "maskPattern": ("#pto.mask_pattern", None)}
            if name not in wanted or attribute != wanted[name][0] or (len(words) == 2) != (wanted[name][1] is not None) \
                    or (len(words) == 2 and words[0] != wanted[name][1]):
                raise self.fail(f"{name} = {attribute}<{' '.join(words)}> is no attribute of an instruction")
            op.attributes[name] = words[-1]
            if not self.has(","):
                break
        self.mark("}")


def parse(text: str) -> Function:
    """Return the function of a `.pto` file."""
    return Parser(text).module()
