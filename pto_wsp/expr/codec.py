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
from pto_wsp.source import Span, here
from pto_wsp.types import layout, scalar, tile, view
from pto_wsp.types.dtype import DType

Data: TypeAlias = "bool | int | float | str | list[Data] | dict[str, Data] | None"

_NODES: Mapping[str, type] = {
    kind.__name__: kind
    for module in (layout, scalar, tile, view, k, wl)
    for kind in vars(module).values()
    if isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == module.__name__
}
_ENUMS: Mapping[str, type[Enum]] = {"DType": DType, "Op": scalar.Op, "Role": k.Role, "Reach": k.Reach, "BodyForm": k.BodyForm,
                                       "SlotKind": k.SlotKind, "Contract": layout.Contract}
# what repr() of a node is written in: eval(repr(node), dict(NAMES)) == node
NAMES: Mapping[str, object] = {
    **_NODES, **_ENUMS, "Tile": tile.Tile, **{str(dtype): dtype for dtype in DType}, "inf": math.inf, "nan": math.nan,
}


def to_data(node: object) -> Data:
    """Return plain JSON data for a node, an enum, a number, a string or a tuple of them."""
    if node is None or isinstance(node, bool | int | str):
        return node
    if isinstance(node, float):
        return node if math.isfinite(node) else {"kind": "float", "value": repr(node)}
    if isinstance(node, tuple):
        return [to_data(item) for item in node]
    if isinstance(node, Enum):
        return {"kind": type(node).__name__, "value": node.name}
    if is_dataclass(node) and not isinstance(node, type):
        values = {f.name: to_data(getattr(node, f.name)) for f in fields(node) if not isinstance(getattr(node, f.name), Span)}
        return {"kind": type(node).__name__, **values}
    raise TypeError(f"no JSON for {type(node).__name__}")


def from_data(data: Data) -> object:
    """Return the node that `to_data` wrote.

    Raises: W102 for data that is none of ours.
    """
    if isinstance(data, list):
        return tuple(from_data(item) for item in data)
    if not isinstance(data, dict):
        return data
    values = dict(data)
    kind = values.pop("kind", None)
    try:
        if kind == "float":
            return float(str(values["value"]))
        if isinstance(kind, str) and kind in _ENUMS:
            return _ENUMS[kind][str(values["value"])]
    except (KeyError, ValueError):
        raise WorkloadStructureError("this JSON is not a workload", here(), found=f"kind {kind!r} with {values}") from None
    node = _NODES.get(kind) if isinstance(kind, str) else None
    if node is None:
        raise WorkloadStructureError("this JSON is not a workload", here(), found=f"kind {kind!r}")
    known = {f.name for f in fields(node)}
    if not set(values) <= known:
        raise WorkloadStructureError("this JSON is not a workload", here(), found=f"{kind} with {sorted(set(values) - known)}")
    try:
        made: object = node(**{name: from_data(value) for name, value in values.items()})
    except TypeError as problem:
        raise WorkloadStructureError("this JSON is not a workload", here(), found=f"{kind}: {problem}") from None
    return made


def dumps(node: object) -> str:
    """Return the node as one line of JSON, the same for equal nodes."""
    return json.dumps(to_data(node), separators=(",", ":"), sort_keys=True, allow_nan=False)


def loads(text: str) -> object:
    """Return the node that `dumps` wrote.

    Raises: W102 for text that is none of ours.
    """
    try:
        data = json.loads(text)
    except (ValueError, TypeError) as problem:
        raise WorkloadStructureError("this is not JSON", here(), found=str(problem)) from None
    node = from_data(data)
    wrong = _misfit(node)
    if wrong is not None:
        raise WorkloadStructureError("this JSON is not a workload", here(), found=wrong)
    return node


def _misfit(node: object) -> str | None:
    """Return what does not fit the types that the nodes declare, or None."""
    if isinstance(node, tuple):
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
    if args:   # a union
        return any(_fits(value, arg) for arg in args)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint is float:
        return isinstance(value, float)
    return isinstance(value, hint) if isinstance(hint, type) else True
