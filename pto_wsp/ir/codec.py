"""Convert IR nodes to and from JSON, `{"kind": "Loop", …}`, by the tags of their level.

Spans are omitted. A round trip returns an equal node.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from pto_wsp.errors import DataFormatError, WorkloadStructureError
from pto_wsp.ir import tile
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.rewrite import field_names
from pto_wsp.ir.tags import WORKLOAD_TAGS, NodeTag, Tags, values_of
from pto_wsp.ir.workload import WorkloadNote
from pto_wsp.source import UNKNOWN, Span, here

Data: TypeAlias = "bool | int | float | str | list[Data] | dict[str, Data] | None"

# the names in repr() of a node: eval(repr(node), dict(NAMES)) == node
NAMES: Mapping[str, object] = {
    **{kind.__name__: kind for kind in (*WORKLOAD_TAGS.nodes, *WORKLOAD_TAGS.enums, *WORKLOAD_TAGS.wrappers, WorkloadNote)},
    "Tile": tile.Tile,
    **{str(dtype): dtype for dtype in DType}, "inf": math.inf, "nan": math.nan,
}


class NodeCodec:
    """A JSON codec for the node classes and enums of a level, by their tags."""

    def __init__(self, tags: Tags, *, key: str = "kind", spans: bool = False) -> None:
        """Create a codec.

        `key`: the JSON key of tags, no field of any node. `spans`: keep spans as basename and line; otherwise drop them.
        """
        self._tags, self._key, self._spans = tags, key, spans

    def to_data(self, node: object) -> Data:
        """Return plain JSON data for a node, an enum, a number, a string, or a tuple or frozenset of these."""
        if isinstance(node, Enum):   # before int: some enums are ints
            entry, member = self._tags.of_member(node)
            return {self._key: entry.json, "value": member}
        if node is None or isinstance(node, bool | int | str):
            return node
        if isinstance(node, float):
            return node if math.isfinite(node) else {self._key: "float", "value": repr(node)}
        if isinstance(node, bytes):
            return {self._key: "bytes", "value": node.hex()}
        if isinstance(node, tuple):
            return [self.to_data(item) for item in node]
        if isinstance(node, frozenset):
            return {self._key: "set", "value": sorted((self.to_data(item) for item in node), key=json.dumps)}
        if isinstance(node, Span):
            return {self._key: "Span", "value": node.short}
        node = self._tags.unwrapped(node)
        found = self._tags.of_node(node)
        return {self._key: found.json, **{name: self.to_data(value) for name, value in values_of(node, found.fields)
                                          if self._spans or not isinstance(value, Span)}}

    def from_data(self, data: Data) -> object:
        """Return the node that `to_data` wrote.

        Raises: W113 for data that is none of ours.
        """
        if isinstance(data, list):
            return tuple([self.from_data(item) for item in data])
        if not isinstance(data, dict):
            return data
        values = dict(data)
        kind = values.pop(self._key, None)
        if isinstance(kind, str) and kind not in self._tags.node_of:
            return self._leaf(kind, values)
        node = self._tags.node_of.get(kind) if isinstance(kind, str) else None
        if node is None:
            raise DataFormatError("this JSON is not a workload", here(), found=f"kind {kind!r}")
        entry = self._tags.nodes[node]
        unknown = values.keys() - {field.tag for field in entry.fields}
        missing = [tag for tag in _needed(node, entry) if tag not in values]
        if unknown or missing:
            wrong = f"with {sorted(unknown)}" if unknown else f"without {', '.join(missing)}"
            raise DataFormatError("this JSON is not a workload", here(), found=f"{kind} {wrong}")
        given = {field.attribute: self.from_data(values[field.tag]) if field.tag in values else field.empty
                 for field in entry.fields if field.tag in values or (field.optional and field.attribute in _bare(node))}
        if self._tags.note is not None and "note" in field_names(node):
            noted = {name.partition(".")[2]: given.pop(name) for name in [*given] if "." in name}
            given["note"] = self._tags.note(**noted)
        return self._tags.wrapped(node(**given))

    def _leaf(self, kind: str, values: Mapping[str, Data]) -> object:
        """Return a tagged value that is not a node: an enum, a non-finite float, a set, a span."""
        value = values.get("value")
        try:
            match kind, value:
                case "float", str(text):
                    return float(text)
                case "bytes", str(text):
                    return bytes.fromhex(text)
                case "set", list(items) if self._spans:
                    return frozenset(self.from_data(item) for item in items)
                case "Span", str(text) if self._spans:
                    file, _, line = text.rpartition(":")
                    return Span(file, int(line), 0) if int(line) else UNKNOWN
                case _, str(text) if kind in self._tags.enum_of:
                    enum = self._tags.enum_of[kind]
                    return next(enum[name] for name, member in self._tags.enums[enum].members.items() if member == text)
        except (StopIteration, ValueError):
            pass
        found = f"kind {kind!r} with {dict(values)}" if kind in ("float", "bytes", *self._tags.enum_of) else f"kind {kind!r}"
        raise DataFormatError("this JSON is not a workload", here(), found=found)


@cache
def _needed(kind: type, entry: NodeTag) -> tuple[str, ...]:
    """Return the tags of the fields without a default, and of those that data must have."""
    return tuple(field.tag for field in entry.fields if field.needed or (field.attribute in _bare(kind) and not field.optional))


@cache
def _bare(kind: type) -> frozenset[str]:
    """Return the names of the fields without a default."""
    return frozenset(f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING)


IR = NodeCodec(WORKLOAD_TAGS)


def to_data(node: object) -> Data:
    """Return plain JSON data for a node, an enum, a number, a string or a tuple of these."""
    return IR.to_data(node)


def from_data(data: Data) -> object:
    """Return the node that `to_data` wrote.

    Raises: W113 for data that is none of ours.
    """
    return IR.from_data(data)


def dumps(node: object) -> str:
    """Return the node as one line of JSON, identical for equal nodes."""
    return json.dumps(to_data(node), separators=(",", ":"), sort_keys=True, allow_nan=False)


def loads(text: str) -> object:
    """Return the node that `dumps` wrote, with the declared type in every field, numbers of at most 64 bits, and UTF-8 text.

    Raises: W113 for text that is none of ours.
    """
    try:
        node = from_data(json.loads(text))
        check_types(node)
    except RecursionError:
        raise too_deep() from None
    except (ValueError, TypeError) as problem:
        raise DataFormatError("this is not JSON", here(), found=f"{problem!s:.200}") from None
    return node


def check_types(node: object, tags: Tags = WORKLOAD_TAGS) -> None:
    """Raise W113 unless every field of a tree is of the type that its node declares; `tags`: of the tree's level."""
    wrong = _misfit(node, tags)
    if wrong is not None:
        raise DataFormatError("this JSON is not a workload", here(), found=wrong)


def too_deep() -> WorkloadStructureError:
    """Return the error for data that is nested deeper than Python's stack goes."""
    return DataFormatError("this JSON is nested too deep", here(), expected="what Workload.to_json() wrote")


def _misfit(node: object, tags: Tags, owner: object = None) -> str | None:
    """Return what does not fit the types that the nodes declare, or None. `owner`: the node of a note."""
    if isinstance(node, int) and not -(1 << 63) <= node < 1 << 64:
        return f"a number of {node.bit_length()} bits, which has 64 at most"
    if isinstance(node, str) and not _is_utf8(node):
        return f"the text {node!r:.60}, which is no UTF-8"
    if isinstance(node, tuple | frozenset):
        return next((wrong for item in node if (wrong := _misfit(item, tags)) is not None), None)
    if not is_dataclass(node) or isinstance(node, type):
        return None
    for name, hint in field_hints(type(node)).items():
        value = getattr(node, name)
        if not _fits(value, hint, tags.level):
            named, attribute = (node, name) if owner is None else (owner, f"note.{name}")
            return f"{tags.name(named)}.{_tag_of(tags, named, attribute)} is {tags.shown(value):.60}"
        wrong = _misfit(value, tags, node if tags.note is not None and isinstance(value, tags.note) else None)
        if wrong is not None:
            return wrong
    return None


def _tag_of(tags: Tags, node: object, attribute: str) -> str:
    return next((field.tag for field in tags.of_node(tags.unwrapped(node)).fields if field.attribute == attribute), attribute)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@cache
def field_hints(kind: type) -> Mapping[str, object]:
    """Return the declared types of a node's fields, without those of spans."""
    return {name: hint for name, hint in get_type_hints(kind).items() if hint is not Span and name in {f.name for f in fields(kind)}}


def _fits(value: object, hint: object, level: Mapping[object, object]) -> bool:
    """Tell whether a value is of an annotated type: classes, unions, tuples of one type or of several, type variables of `level`."""
    if isinstance(hint, TypeVar):
        return _fits(value, level[hint], level)
    origin, args = get_origin(hint), get_args(hint)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if len(args) == 2 and args[1] is Ellipsis:
            return all(_fits(item, args[0], level) for item in value)
        return len(value) == len(args) and all(_fits(item, arg, level) for item, arg in zip(value, args, strict=True))
    if origin is frozenset:
        return isinstance(value, frozenset) and all(_fits(item, args[0], level) for item in value)
    if isinstance(origin, type) and is_dataclass(origin):      # of a control tree: all of a tree is of one level
        return isinstance(value, origin)
    if hint is Any:
        return True
    if args:   # a union
        return any(_fits(value, arg, level) for arg in args)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint is float:
        return isinstance(value, float)
    return isinstance(value, hint) if isinstance(hint, type) else True
