"""Take the arguments of a call apart: tuples, lists, dicts, NamedTuples and dataclasses, down to arrays and constants.

>>> [path for path, _ in leaves_of([{"up": 1}, {"up": 2}], "layers")]
['layers.0.up', 'layers.1.up']
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from pto_wsp.errors import TensorSignatureError
from pto_wsp.source import here

Part: TypeAlias = tuple[str, object]

_DEEPEST = 32     # levels of containers in an argument; a container that holds itself has no end


def leaves_of(value: object, path: str, depth: int = 0) -> Iterator[Part]:
    """Yield the path and the value of each leaf of an argument, in order; `path` is the parameter's name.

    Raises: J101 for a container that holds itself.
    """
    parts = parts_of(value)
    if parts is None:
        yield path, value
        return
    _refuse_depth(path, depth)
    for name, part in parts:
        yield from leaves_of(part, f"{path}.{name}", depth + 1)


def with_leaves(value: object, leaves: Iterator[object]) -> object:
    """Return an argument of the same structure with other leaves, which are taken in order."""
    parts = parts_of(value)
    return next(leaves) if parts is None else with_parts(value, [with_leaves(part, leaves) for _, part in parts])


def with_parts(value: object, parts: Sequence[object]) -> object:
    """Return a container of the same kind with other parts."""
    kind: Any = type(value)
    if isinstance(value, dict):
        return dict(zip(value, parts, strict=True))
    if isinstance(value, list | tuple):
        return kind(*parts) if is_named_tuple(kind) else kind(parts)
    again = copy.copy(value)      # a dataclass: __init__ may do more than store its fields
    for (name, _), part in zip(parts_of(value) or (), parts, strict=True):
        object.__setattr__(again, name, part)
    return again


def parts_of(value: object) -> Sequence[Part] | None:
    """Return the named parts of a container, None for a leaf."""
    kind: Any = type(value)
    reader = _reader_of(kind)
    return None if reader is None else reader(value)


@lru_cache(maxsize=1024)
def _reader_of(kind: type) -> Callable[[Any], Sequence[Part]] | None:
    """Return what reads the parts of containers of a class, None for a class of leaves."""
    if kind in (tuple, list):
        return _items
    if kind is dict:
        return _values
    if is_named_tuple(kind):
        return _named
    if dataclasses.is_dataclass(kind) and not kind.__module__.startswith("pto_wsp."):
        names = tuple(each.name for each in dataclasses.fields(kind))
        return lambda value: [(name, getattr(value, name)) for name in names]
    return None


def is_named_tuple(kind: type) -> bool:
    """Tell whether a class is a named tuple."""
    return issubclass(kind, tuple) and isinstance(getattr(kind, "_fields", None), tuple)


def _items(value: Sequence[object]) -> Sequence[Part]:
    return [(str(k), item) for k, item in enumerate(value)]


def _values(value: dict[object, object]) -> Sequence[Part]:
    return [(str(key), item) for key, item in value.items()]


def _named(value: Any) -> Sequence[Part]:
    return list(zip(value._fields, value, strict=True))


def _refuse_depth(path: str, depth: int) -> None:
    if depth >= _DEEPEST:
        head = path.partition(".")[0]
        raise TensorSignatureError(f"argument `{head}` has containers in containers without end", here(),
                                expected=f"at most {_DEEPEST} levels of tuples, lists, dicts and dataclasses", found=f"{path[:60]}…",
                                help="a container must not hold itself")
