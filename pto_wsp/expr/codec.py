"""JSON for every node: `{"kind": "Loop", …}`, spans left out; what comes back is equal to what went in."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import TypeAlias, get_args, get_origin, get_type_hints

from pto_wsp.errors import WorkloadStructureError
from pto_wsp.expr import kernel as k
from pto_wsp.expr import workload as wl
from pto_wsp.source import UNKNOWN, Span, here
from pto_wsp.types import layout, scalar, tile, view
from pto_wsp.types.dtype import DType

Data: TypeAlias = "bool | int | float | str | list[Data] | dict[str, Data] | None"

NODES: Mapping[str, type] = {
    kind.__name__: kind
    for module in (layout, scalar, tile, view, k, wl)
    for kind in vars(module).values()
    if isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == module.__name__
}
ENUMS: Mapping[str, type[Enum]] = {"DType": DType, "Op": scalar.Op, "Role": k.Role, "Reach": k.Reach, "BodyForm": k.BodyForm,
                                       "SlotKind": k.SlotKind, "Contract": layout.Contract}
# what repr() of a node is written in: eval(repr(node), dict(NAMES)) == node
NAMES: Mapping[str, object] = {
    **NODES, **ENUMS, "Tile": tile.Tile, **{str(dtype): dtype for dtype in DType}, "inf": math.inf, "nan": math.nan,
}


class NodeCodec:
    """JSON for a closed set of node classes and enums, by what each is called there."""

    def __init__(self, nodes: Mapping[str, type], enums: Mapping[str, type[Enum]], *, key: str = "kind", spans: bool = False) -> None:
        """`key`: of what a node is called, no field of any. `spans`: keep where it was written, as basename and line; else left out."""
        self._nodes, self._enums, self._key, self._spans = nodes, enums, key, spans
        self._names: Mapping[type, str] = {kind: name for name, kind in (*nodes.items(), *enums.items())}

    def to_data(self, node: object) -> Data:
        """Return plain JSON data for a node, an enum, a number, a string or a tuple or frozenset of them."""
        if isinstance(node, Enum):   # before int: some enums are numbers
            return {self._key: self._name(node), "value": node.name}
        if node is None or isinstance(node, bool | int | str):
            return node
        if isinstance(node, float):
            return node if math.isfinite(node) else {self._key: "float", "value": repr(node)}
        if isinstance(node, tuple):
            return [self.to_data(item) for item in node]
        if isinstance(node, frozenset):
            return {self._key: "set", "value": sorted((self.to_data(item) for item in node), key=json.dumps)}
        if isinstance(node, Span):
            return {self._key: "Span", "value": node.short}
        name, data = self._name(node), _fields_of(node)
        return {self._key: name, **{f: self.to_data(value) for f, value in data if self._spans or not isinstance(value, Span)}}

    def _name(self, node: object) -> str:
        name = self._names.get(type(node))
        if name is None:
            raise TypeError(f"no JSON for {type(node).__name__}")
        return name

    def from_data(self, data: Data) -> object:
        """Return the node that `to_data` wrote.

        Raises: W102 for data that is none of ours.
        """
        if isinstance(data, list):
            return tuple([self.from_data(item) for item in data])
        if not isinstance(data, dict):
            return data
        values = dict(data)
        kind = values.pop(self._key, None)
        if isinstance(kind, str) and kind not in self._nodes:
            return self._leaf(kind, values)
        node = self._nodes.get(kind) if isinstance(kind, str) else None
        if node is None:
            raise WorkloadStructureError("this JSON is not a workload", here(), found=f"kind {kind!r}")
        known = {f.name for f in fields(node)}
        if not values.keys() <= known:
            raise WorkloadStructureError("this JSON is not a workload", here(), found=f"{kind} with {sorted(values.keys() - known)}")
        try:
            made: object = node(**{name: self.from_data(value) for name, value in values.items()})
        except TypeError as problem:
            raise WorkloadStructureError("this JSON is not a workload", here(), found=f"{kind}: {problem}") from None
        return made

    def _leaf(self, kind: str, values: Mapping[str, Data]) -> object:
        """Return what is no node: an enum, a float that JSON has no number for, a set, a span."""
        value = values.get("value")
        try:
            match kind, value:
                case "float", str(text):
                    return float(text)
                case "set", list(items) if self._spans:
                    return frozenset(self.from_data(item) for item in items)
                case "Span", str(text) if self._spans:
                    file, _, line = text.rpartition(":")
                    return Span(file, int(line), 0) if int(line) else UNKNOWN
                case _, str(text) if kind in self._enums:
                    return self._enums[kind][text]
        except (KeyError, ValueError):
            pass
        found = f"kind {kind!r} with {dict(values)}" if kind in ("float", *self._enums) else f"kind {kind!r}"
        raise WorkloadStructureError("this JSON is not a workload", here(), found=found)


def _fields_of(node: object) -> tuple[tuple[str, object], ...]:
    """Return a node's fields and their values."""
    return tuple((f.name, getattr(node, f.name)) for f in fields(node))  # type: ignore[arg-type]


IR = NodeCodec(NODES, ENUMS)


def to_data(node: object) -> Data:
    """Return plain JSON data for a node, an enum, a number, a string or a tuple of them."""
    return IR.to_data(node)


def from_data(data: Data) -> object:
    """Return the node that `to_data` wrote.

    Raises: W102 for data that is none of ours.
    """
    return IR.from_data(data)


def dumps(node: object) -> str:
    """Return the node as one line of JSON, the same for equal nodes."""
    return json.dumps(to_data(node), separators=(",", ":"), sort_keys=True, allow_nan=False)


def loads(text: str) -> object:
    """Return the node that `dumps` wrote: every field of its declared type, numbers of at most 64 bits, text that is UTF-8.

    Raises: W102 for text that is none of ours.
    """
    try:
        node = from_data(json.loads(text))
        check_types(node)
    except RecursionError:
        raise too_deep() from None
    except (ValueError, TypeError) as problem:
        raise WorkloadStructureError("this is not JSON", here(), found=f"{problem!s:.200}") from None
    return node


def check_types(node: object) -> None:
    """Raise W102 unless every field of a tree is of the type that its node declares."""
    wrong = _misfit(node)
    if wrong is not None:
        raise WorkloadStructureError("this JSON is not a workload", here(), found=wrong)


def too_deep() -> WorkloadStructureError:
    """Return the error for data that is nested deeper than Python's stack goes."""
    return WorkloadStructureError("this JSON is nested too deep", here(), expected="what Workload.to_json() wrote")


def _misfit(node: object) -> str | None:
    """Return what does not fit the types that the nodes declare, or None."""
    if isinstance(node, int) and not -(1 << 63) <= node < 1 << 64:
        return f"a number of {node.bit_length()} bits, which has 64 at most"
    if isinstance(node, str) and not _is_utf8(node):
        return f"the text {node!r:.60}, which is no UTF-8"
    if isinstance(node, tuple | frozenset):
        return next((wrong for item in node if (wrong := _misfit(item)) is not None), None)
    if not is_dataclass(node) or isinstance(node, type):
        return None
    for name, hint in _hints(type(node)).items():
        value = getattr(node, name)
        if not _fits(value, hint):
            return f"{type(node).__name__}.{name} is {value!r:.60}"
        wrong = _misfit(value)
        if wrong is not None:
            return wrong
    return None


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@cache
def _hints(kind: type) -> Mapping[str, object]:
    return {name: hint for name, hint in get_type_hints(kind).items() if hint is not Span and name in {f.name for f in fields(kind)}}


def _fits(value: object, hint: object) -> bool:
    """Tell whether a value is of an annotated type: classes, unions, and tuples of one type or of several."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if len(args) == 2 and args[1] is Ellipsis:
            return all(_fits(item, args[0]) for item in value)
        return len(value) == len(args) and all(_fits(item, arg) for item, arg in zip(value, args, strict=True))
    if origin is frozenset:
        return isinstance(value, frozenset) and all(_fits(item, args[0]) for item in value)
    if args:   # a union
        return any(_fits(value, arg) for arg in args)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint is float:
        return isinstance(value, float)
    return isinstance(value, hint) if isinstance(hint, type) else True
