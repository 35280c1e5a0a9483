"""`dataclass`, the standard one, with frozen slotted classes made in a third of the time.

This package is built of some 180 such classes, and up to Python 3.12 the standard library compiles six functions for each, one by
one, which was the largest part of `import pto_wsp`. Here the functions of a class are compiled together and those that are the same
for all are shared. Type checkers see the standard decorator; `fields`, `replace` and `match` work as on any dataclass.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from dataclasses import dataclass as _standard
from typing import TYPE_CHECKING, Any

_set = object.__setattr__


def _dataclass(cls: type | None = None, /, *, frozen: bool = False, slots: bool = False, eq: bool = True, repr: bool = True,
               **options: Any) -> Any:
    """Make a dataclass, as `dataclasses.dataclass` does."""
    def make(target: type) -> type:
        plain = frozen and slots and not options and target.__bases__ == (object,) and not hasattr(target, "__post_init__")
        if not plain or sys.version_info >= (3, 13):   # from 3.13 on the standard library compiles them together itself
            return _standard(target, frozen=frozen, slots=slots, eq=eq, repr=repr, **options)
        return _fast(_standard(target, init=False, repr=False, eq=False), eq=eq, repr=repr)

    return make if cls is None else make(cls)


def _fast(cls: type, *, eq: bool, repr: bool) -> type:
    """Add the methods of a frozen dataclass to `cls` and give it slots."""
    parts = fields(cls)
    methods = {"__setattr__": _refuse_set, "__delattr__": _refuse_delete, "__getstate__": _get_state, "__setstate__": _set_state}
    scope: dict[str, Any] = {"_set": _set, "_MISSING": MISSING}
    source = [_init(parts, scope)]
    if repr and "__repr__" not in cls.__dict__:
        shown = ", ".join(f"{f.name}={{self.{f.name}!r}}" for f in parts if f.repr)
        source.append(f"def __repr__(self): return f'{{self.__class__.__qualname__}}({shown})'")
    if eq:
        compared = [f.name for f in parts if f.compare]
        mine, others = (f"({''.join(f'{who}.{name}, ' for name in compared)})" for who in ("self", "other"))
        if "__eq__" not in cls.__dict__:
            source.append(f"def __eq__(self, other): return {mine} == {others} if other.__class__ is self.__class__ "
                          "else NotImplemented")
        if "__hash__" not in cls.__dict__ or cls.__dict__["__hash__"] is None:
            source.append(f"def __hash__(self): return hash({mine})")
    exec("\n".join(source), scope)
    methods |= {name: scope[name] for name in ("__init__", "__repr__", "__eq__", "__hash__") if name in scope}
    for method in methods.values():
        if method.__name__ in ("__init__", "__repr__", "__eq__", "__hash__"):
            method.__qualname__ = f"{cls.__qualname__}.{method.__name__}"
    names = {f.name for f in parts}
    kept = {name: value for name, value in cls.__dict__.items() if name not in names and name not in ("__dict__", "__weakref__")}
    made = type(cls)(cls.__name__, cls.__bases__, {**kept, **methods, "__slots__": tuple(f.name for f in parts)})
    made.__qualname__ = cls.__qualname__
    return made


def _init(parts: tuple[Field[Any], ...], scope: dict[str, Any]) -> str:
    """Return the text of __init__, and put defaults into the scope that it is compiled in."""
    params, body = [], []
    for f in parts:
        value = f.name
        if f.default is not MISSING:
            scope[f"_default_{f.name}"] = f.default
            params.append(f"{f.name}=_default_{f.name}")
        elif f.default_factory is not MISSING:
            scope[f"_make_{f.name}"] = f.default_factory
            params.append(f"{f.name}=_MISSING")
            value = f"_make_{f.name}() if {f.name} is _MISSING else {f.name}"
        else:
            params.append(f.name)
        body.append(f" _set(self, {f.name!r}, {value})")
    return "\n".join((f"def __init__(self, {', '.join(params)}):", *(body or [" pass"])))


def _refuse_set(self: object, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _get_state(self: Any) -> list[object]:
    return [getattr(self, f.name) for f in fields(self)]


def _set_state(self: Any, state: list[object]) -> None:
    for f, value in zip(fields(self), state, strict=True):
        _set(self, f.name, value)


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass: Callable[..., Any] = _dataclass
