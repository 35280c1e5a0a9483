"""Read the text of workloads and plans, as `print_ir` writes it.

The tables of tags say which nodes and fields there are, and the declared types of the fields say what may stand in them, so a new node or
field is read without a line here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass, replace
from enum import Enum
from types import NoneType, UnionType
from typing import Any, NoReturn, TypeVar, Union, get_args, get_origin

from pto_wsp.ir import flow
from pto_wsp.ir import scalar as s
from pto_wsp.ir.codec import field_hints
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel import Kernel, Param, ScalarParamDecl, TensorParam, TileParam
from pto_wsp.ir.layout import TensorRef
from pto_wsp.ir.plan import KernelUse, TaskPlan
from pto_wsp.ir.print_ir import LEVELS, RESERVED, SCALARS, SHARED
from pto_wsp.ir.rewrite import field_names
from pto_wsp.ir.tags import FieldTag
from pto_wsp.ir.view import Clip, Cut, Permute, Pick, Reshape, Step, View
from pto_wsp.ir.workload import Workload
from pto_wsp.trace.text.kernel import read_kernel
from pto_wsp.trace.text.lexer import INNER, IrToken, Reader
from pto_wsp.trace.text.scalars import read_dtype, read_number, read_scalar

_SHORT = ("print() of a workload, and the dumps of a plan, are short forms for people: str(w.ir) and str(program.plan) are complete")
_NUMBERS: dict[str, type[Permute | Reshape]] = {"transpose": Permute, "reshape": Reshape}


def read_level(reader: Reader, kind: type[Workload] | type[TaskPlan]) -> tuple[Workload | TaskPlan, tuple[Kernel, ...]]:
    """Return the workload or plan that begins at the next token, not checked yet, and its kernels.

    Raises: W116 for what is none.
    """
    return _LevelReader(reader, kind).read()


class _LevelReader:
    """Reads one workload or plan."""

    def __init__(self, reader: Reader, kind: type[Workload] | type[TaskPlan]) -> None:
        self._reader = reader
        self._kind = kind
        self._word, self._tags = LEVELS[kind]
        self._names: dict[str, object] = {}
        self._params: dict[str, Param] = {}       # of the kernel whose cost is read

    def read(self) -> tuple[Workload | TaskPlan, tuple[Kernel, ...]]:
        """Return the node, and its kernels."""
        reader, root = self._reader, self._tags.nodes[self._kind].tag
        start = reader.take()
        name = reader.name(f"the {self._word}") if reader.next.kind == "name" else reader.next
        while not reader.sees(":") and reader.next.indent == INNER:      # the name of a workload may be <lambda>
            reader.take()
        reader.expect(":")
        if reader.next.indent == INNER:
            reader.fail(f"the head of a {self._word} has ended, and the line goes on", expected="the end of the line", help=_SHORT)
        while not (reader.next.kind == "name" and reader.next.text == root):
            self._definition(start.indent, root)
        made = self._node((self._kind,), reader.next)
        assert isinstance(made, Workload | TaskPlan)
        if name.kind == "name" and made.name.isidentifier() and made.name != name.text:
            reader.fail(f"the {self._word} has two names", name, expected=made.name)
        return made, tuple(node for node in self._names.values() if isinstance(node, Kernel))

    def _definition(self, outer: int, root: str) -> None:
        """Read a kernel, or what a name stands for."""
        reader, start = self._reader, self._reader.next
        if start.kind != "name" or start.indent <= outer:
            reader.fail(f"the {self._word} is missing", expected=f"`{root}(...)`, on lines that stand further in")
        node: object
        if start.text == "kernel" and reader.behind.kind == "name":
            name, node = read_kernel(reader)
        else:
            name = reader.take().text
            if not reader.sees("="):
                reader.fail(f"no line of a {self._word} begins like this", start, expected=f"`name = Tag(...)`, a kernel, or `{root}(...)`",
                            known=(root, "kernel"), help=_SHORT)
            reader.take()
            node = self._node(tuple(kind for kind in SHARED if kind in self._tags.nodes and kind is not Kernel), reader.next)
        if name in self._names or name in RESERVED:
            reader.fail(f"`{name}` is taken" if name in RESERVED else f"two things are called `{name}`", start,
                        expected=f"another name, e.g. {name.partition('.')[0]}.{len(self._names)}")
        self._names[name] = node

    # -- nodes ---------------------------------------------------------------------------------------------------------
    def _node(self, kinds: tuple[type, ...], token: IrToken) -> object:
        """Return a node of one of these classes: `Tag(field=value, ...)`."""
        reader = self._reader
        by_tag = {self._tags.nodes[kind].tag: kind for kind in kinds}
        if token.kind != "name" or token.text not in by_tag or reader.behind.text != "(":
            self._unexpected(" or ".join(f"{tag}(...)" for tag in by_tag), by_tag)
        reader.take()
        kind = by_tag[token.text]
        given = self._fields(kind, token)
        missing = [field.name for field in fields(kind) if field.name not in given and field.name != "span"
                   and field.default is MISSING and field.default_factory is MISSING]
        if missing:
            reader.fail(f"{token.text} has no `{self._tag_of(kind, missing[0])}`", token,
                        expected=", ".join(field.tag for field in self._tags.nodes[kind].fields if field.counts))
        if "span" in field_names(kind):
            given["span"] = reader.span(token)
        return self._tags.wrapped(kind(**given))

    def _fields(self, kind: type, start: IrToken) -> dict[str, Any]:
        reader, entry, given = self._reader, self._tags.nodes[kind], dict[str, Any]()
        known = {field.tag: field for field in entry.fields if field.counts}
        note: dict[str, Any] = {}
        reader.expect("(")
        while not reader.sees(")"):
            token = reader.name("a field")
            field = known.pop(token.text, None)
            if field is None:
                told = any(field.tag == token.text and field.counts for field in entry.fields)
                reader.fail(f"{start.text} has `{token.text}` twice" if told else f"{start.text} has no field `{token.text}`", token,
                            expected=", ".join(known), known=known)
            reader.expect("=")
            inside, _, attribute = field.attribute.rpartition(".")
            (note if inside else given)[attribute] = self._value(self._hint(kind, field))
            if kind is KernelUse and attribute == "kernel":
                self._params = {param.name: param for param in given["kernel"].params}
            if not reader.has(","):
                break
        reader.expect(")", f"behind the fields of {start.text}")
        if kind is KernelUse:
            self._params = {}
        if self._tags.note is not None and "note" in field_names(kind):
            given["note"] = self._tags.note(**note)
        return given

    def _hint(self, kind: type, field: FieldTag) -> object:
        inside, _, attribute = field.attribute.rpartition(".")
        return field_hints(self._tags.note if inside and self._tags.note else kind)[attribute]

    def _tag_of(self, kind: type, attribute: str) -> str:
        return next((field.tag for field in self._tags.nodes[kind].fields if field.attribute == attribute), attribute)

    # -- values --------------------------------------------------------------------------------------------------------
    def _value(self, hint: object) -> object:
        """Return the value of a declared type that begins at the next token."""
        reader, kinds = self._reader, tuple(self._classes(hint))
        token = reader.next
        if token.indent != INNER:
            reader.fail("a value is missing")
        if NoneType in kinds and reader.has("None"):
            return None
        rest = tuple(kind for kind in kinds if kind is not NoneType)
        if all(get_origin(kind) in (tuple, frozenset) for kind in rest):
            return self._tuple(rest[0]) if get_origin(rest[0]) is tuple else self._set(rest[0])
        if (len(rest) == 1 and rest[0] not in SCALARS) or rest == (s.Var,):
            return self._one(rest[0], token)
        if any(kind in SCALARS for kind in rest):
            return read_scalar(reader, self._name)
        if flow.Sequence in rest and reader.sees("["):
            return flow.Sequence(self._items())
        return self._node(tuple(kind for kind in rest if kind in self._tags.nodes), token)

    def _one(self, kind: Any, token: IrToken) -> object:
        """Return the value of a class."""
        reader = self._reader
        if kind in SHARED:
            return self._shared(kind)
        if kind is flow.Sequence and reader.sees("["):
            return flow.Sequence(self._items())
        if kind is View:
            return self._view()
        if kind is bool:
            if not reader.sees("True", "False"):
                self._unexpected("True or False", ("True", "False"))
            return reader.take().text == "True"
        if kind is int:
            return reader.whole("a whole number")
        if kind is float:
            return float(read_number(reader, "a number"))
        if kind is str:
            return reader.string("text")
        if kind is DType:
            return read_dtype(reader)
        if isinstance(kind, type) and issubclass(kind, Enum):
            return self._member(kind)
        if kind in self._tags.nodes:
            return self._node((kind,), token)
        self._unexpected("a value of this field", ())

    def _member(self, kind: type[Enum]) -> Enum:
        members = {tag: kind[name] for name, tag in self._tags.enums[kind].members.items()}
        if self._reader.next.text not in members or self._reader.next.kind != "name":
            self._unexpected(", ".join(members), members)
        return members[self._reader.take().text]

    def _tuple(self, hint: Any) -> tuple[object, ...]:
        reader, args, out = self._reader, get_args(hint), list[object]()
        start = reader.expect("[")
        many = len(args) == 2 and args[1] is Ellipsis
        while not reader.sees("]") and (many or len(out) < len(args)):
            out.append(self._value(args[0] if many else args[len(out)]))
            if not reader.has(","):
                break
        reader.expect("]", "behind a list")
        if not many and len(out) != len(args):
            reader.fail("a list of another length", start, expected=f"{len(args)} entries", found=f"{len(out)} entries")
        return tuple(out)

    def _items(self) -> tuple[Any, ...]:
        return self._tuple(field_hints(flow.Sequence)["items"])

    def _set(self, hint: Any) -> frozenset[object]:
        reader, out = self._reader, list[object]()
        reader.expect("{")
        while not reader.sees("}"):
            out.append(self._value(get_args(hint)[0]))
            if not reader.has(","):
                break
        reader.expect("}")
        return frozenset(out)

    def _classes(self, hint: object) -> Iterator[Any]:
        """Yield the classes, tuples and sets of which a declared type is."""
        origin = get_origin(hint)
        if isinstance(hint, TypeVar):
            yield from self._classes(self._tags.level[hint])
        elif origin in (Union, UnionType):
            for arg in get_args(hint):
                yield from self._classes(arg)
        elif isinstance(origin, type) and is_dataclass(origin):
            yield from self._classes(origin)
        elif isinstance(hint, type) and hint in self._tags.wrappers:
            yield from self._tags.wrappers[hint]
        else:
            yield hint

    def _unexpected(self, expected: str, known: Any) -> NoReturn:
        self._reader.fail("another value stands here", expected=expected, known=known)

    # -- names, scalars and views --------------------------------------------------------------------------------------
    def _shared(self, kind: type) -> object:
        token = self._reader.name(f"a {kind.__name__}")
        node = self._names.get(token.text)
        if not isinstance(node, kind):
            self._reader.fail(f"no {kind.__name__} is called `{token.text}`", token,
                              expected=f"a line before: `{token.text} = {kind.__name__}(...)`",
                              known=[name for name, other in self._names.items() if isinstance(other, kind)])
        return node

    def _name(self, token: IrToken) -> s.Scalar:
        """Return the scalar that a name stands for."""
        reader = self._reader
        if token.text + reader.index_ahead(".") in self._params and token.text not in self._params:      # a tile of a stack
            token = replace(token, text=token.text + reader.index())
        match self._params.get(token.text):
            case ScalarParamDecl(name, dtype):
                return s.ParamScalar(name, dtype)
            case TileParam() | TensorParam() if reader.has("."):
                return s.ParamExtent(token.text, self._dim(reader.expect("shape")))
        match token.text, self._names.get(token.text):
            case _, s.Var() | s.SymbolRef() as node:
                return node
            case _, TensorRef() as tensor if reader.has("."):
                word = reader.name("shape or strides")
                if word.text not in ("shape", "strides"):
                    reader.fail(f"a tensor has no `{word.text}`", word, expected="shape or strides", known=("shape", "strides"))
                dim = self._dim(word)
                return s.DimOf(tensor, dim) if word.text == "shape" else s.StrideOf(tensor, dim)
            case _, TensorRef() as tensor:
                reader.expect("[", f"behind tensor `{token.text}`")
                index = []
                while not reader.sees("]"):
                    index.append(read_scalar(reader, self._name))
                    if not reader.has(","):
                        break
                reader.expect("]")
                return s.Element(tensor, tuple(index))
            case "task_index", None:
                return s.TaskIndex()
            case "replica", None:
                return s.ReplicaIndex()
            case "calendar", None:
                for text in ("[", "task_index", "]", "["):
                    reader.expect(text)
                column = reader.whole("a column")
                reader.expect("]")
                return s.CalendarEntry(column)
        reader.fail(f"nothing is called `{token.text}` here", token, expected="a variable, a symbol or a tensor that stands before",
                    known=[name for name, node in self._names.items() if isinstance(node, s.Var | s.SymbolRef | TensorRef)])

    def _dim(self, word: IrToken) -> int:
        self._reader.expect("[", f"behind `{word.text}`")
        dim = self._reader.whole("a dimension")
        self._reader.expect("]")
        return dim

    def _view(self) -> View:
        tensor = self._shared(TensorRef)
        assert isinstance(tensor, TensorRef)
        steps: list[Step] = []
        while True:
            if self._reader.has("["):
                steps.extend(self._bracket())
            elif self._reader.has("."):
                word = self._reader.name("clip, transpose or reshape")
                if word.text == "clip":
                    steps.append(Clip(self._limits()))
                    continue
                if word.text not in _NUMBERS:
                    known = ("clip", *_NUMBERS)
                    self._reader.fail(f"a view has no `{word.text}`", word, expected=", ".join(known), known=known)
                numbers, dims = self._numbers()
                if dims and word.text != Reshape.__name__.lower():
                    self._reader.fail(f"`{word.text}` has no dims", word)
                steps.append(Reshape(numbers, dims) if dims else _NUMBERS[word.text](numbers))
            else:
                return View(tensor, tuple(steps))

    def _limits(self) -> tuple[int | None, ...]:
        """Return the limits of a `clip`: a number for each dimension, or None."""
        reader, out = self._reader, list[int | None]()
        reader.expect("(")
        while not reader.sees(")"):
            out.append(None if reader.has("None") else reader.whole("a limit"))
            if not reader.has(","):
                break
        reader.expect(")")
        return tuple(out)

    def _numbers(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the numbers in parentheses, and those of `dims=(first, end)` behind them."""
        reader, out, dims = self._reader, list[int](), tuple[int, ...]()
        reader.expect("(")
        while not reader.sees(")"):
            if reader.has("dims"):
                reader.expect("=")
                dims, _ = self._numbers()
                if len(dims) != 2:
                    reader.fail("dims are a first dimension and an end", expected="dims=(first, end)")
                break
            out.append(reader.whole("a whole number"))
            if not reader.has(","):
                break
        reader.expect(")")
        return tuple(out), dims

    def _bracket(self) -> Iterator[Step]:
        """Yield the steps of a bracket, from left to right."""
        reader, dim = self._reader, 0
        while not reader.sees("]"):
            if reader.sees(":"):
                reader.take()
                if not reader.sees(",", "]"):
                    reader.fail("a slice has a start and an end, or neither", expected="`start:stop`, or `:`")
                dim += 1
            else:
                first = read_scalar(reader, self._name)
                if reader.has(":"):
                    stop = read_scalar(reader, self._name)
                    yield Cut(dim, first, stop, reader.whole("a step") if reader.has(":") else 1)
                    dim += 1
                else:
                    yield Pick(dim, first)
            if not reader.has(","):
                break
        reader.expect("]")
