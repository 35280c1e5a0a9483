"""`dataclass`: the decorator of the standard library, with slotted classes made in a sixth of the time.

Why: the package has some 300 such classes. Up to Python 3.12 the standard library compiles six functions for each class, one by one.
This module finds the fields more simply, compiles `__init__` alone, and only when a class makes its first value; the other functions
are shared. Type checkers see the standard decorator; `fields`, `replace` and `match` work as on any dataclass.
Saves: 70 of 420 ms of `import pto_wsp`, 250 of 970 ms of a first result from the cache (processor time, Python 3.11).
Ends: with Python 3.13 as the oldest version, whose standard library compiles the functions of a class together.
"""

from __future__ import annotations

import sys
from _thread import RLock  # threading takes half a millisecond of an import
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import MISSING, Field, FrozenInstanceError, field, fields, replace
from dataclasses import dataclass as _standard
from inspect import get_annotations
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

V = TypeVar("V")

_set = object.__setattr__
_reading = RLock()


class ReadLater:
    """Base of values with fields that may be read from where they are kept at the first use of one of them."""

    __slots__ = ("_read",)

    @classmethod
    def read_later(cls, later: Callable[[], Mapping[str, Any]], names: Sequence[str], **known: Any) -> Self:
        """Return a value with these fields known. `later`: returns the other fields, which are `names`."""
        make: Any = cls
        made: Self = make(**known, **dict.fromkeys(names))
        for name in names:
            object.__delattr__(made, name)
        _set(made, "_read", later)
        return made

    def __getattr__(self, name: str) -> Any:      # of a field that is not set yet
        if name not in type(self).__slots__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        with _reading:      # one thread reads, so that all see the same objects
            try:
                return object.__getattribute__(self, name)
            except AttributeError:
                for field_name, value in object.__getattribute__(self, "_read")().items():
                    _set(self, field_name, value)
                return object.__getattribute__(self, name)


class Derived:
    """Base of frozen values with attributes that follow from the fields: `_find_shape` finds `shape` at the first use, a slot keeps it."""

    __slots__ = ()

    def beside(self, **new: Any) -> Self:
        """Return the value with other fields, of which no attribute follows: attributes that are known stay known."""
        made = cast(Self, replace(cast(Any, self), **new))
        for name in [name for base in self.__class__.__mro__[1:-1] for name in base.__dict__["__slots__"] if name not in new]:
            try:
                known = object.__getattribute__(self, name)
            except AttributeError:      # not asked for yet
                continue
            _set(made, name, known)
        return made

    if not TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any:      # of a slot that is not set yet
            cls = self.__class__
            known = _DERIVED.get((cls, name))
            if known is None:
                find = getattr(cls, f"_find_{name}", None)
                if find is None:
                    raise AttributeError(f"{cls.__name__!r} object has no attribute {name!r}", name=name, obj=self)
                known = _DERIVED[cls, name] = find, getattr(cls, name).__set__
            find, keep = known
            found = find(self)
            keep(self, found)
            return found


_DERIVED: dict[tuple[type, str], tuple[Callable[[Any], Any], Callable[[Any, Any], None]]] = {}      # what finds and what keeps a slot


def replaced(value: V, /, **new: Any) -> V:
    """Return a frozen value with other fields: the same object, if each field stays the same object, or a tuple of the same objects."""
    for name, one in new.items():
        old = getattr(value, name)
        if old is not one and not (type(old) is type(one) is tuple and len(old) == len(one) and all(map(is_, old, one))):
            return cast(V, replace(cast(Any, value), **new))
    return value


def _dataclass(cls: type | None = None, /, *, frozen: bool = False, slots: bool = False, eq: bool = True, repr: bool = True,
               **options: Any) -> Any:
    """Make a dataclass, as `dataclasses.dataclass` does."""
    def make(target: type) -> type:
        plain = slots and options.keys() <= {"kw_only"} and not hasattr(target, "__post_init__")
        # From 3.13 on the standard library compiles them together itself.
        parts = _fields_of(target, frozen, options.get("kw_only", False)) if plain and sys.version_info < (3, 13) else None
        if parts is None:
            return _standard(target, frozen=frozen, slots=slots, eq=eq, repr=repr, **options)
        return _fast(target, parts, frozen=frozen, eq=eq, repr=repr)

    return make if cls is None else make(cls)


@_standard(frozen=True)
class _Prototype:
    """A dataclass of the standard library, to take from it what all have alike."""

    field: int


def _params(frozen: bool) -> Any:
    made = copy(_Prototype.__dict__["__dataclass_params__"])
    made.frozen = frozen
    return made


_PARAMS = {frozen: _params(frozen) for frozen in (False, True)}
_PLAIN_FIELD = fields(_Prototype)[0]._field_type   # type: ignore[attr-defined]


def _inherited(cls: type, frozen: bool) -> dict[str, Field[Any]] | None:
    """Return the fields that a class inherits, or None where its base is not one of ours that is as frozen as it."""
    if not any("__dataclass_fields__" in base.__dict__ for base in cls.__mro__[1:]):
        return {}
    if len(cls.__bases__) != 1:
        return None
    base = cls.__bases__[0]
    return dict(base.__dict__["__dataclass_fields__"]) if base.__dict__.get("__dataclass_params__") is _PARAMS[frozen] else None


def _fields_of(cls: type, frozen: bool, kw_only: bool) -> tuple[Field[Any], ...] | None:
    """Return the fields of a class, or None where one is of a kind that is left to the standard library, wrong ones included."""
    found = _inherited(cls, frozen)
    if found is None:
        return None
    for name, annotation in get_annotations(cls).items():
        default = cls.__dict__.get(name, MISSING)
        one: Any = default if isinstance(default, Field) else field(default=default)
        if not _is_plain(annotation) or one.kw_only not in (MISSING, False) or type(one.default).__hash__ is None:
            return None
        one.name, one.type, one.kw_only, one._field_type = name, annotation, kw_only, _PLAIN_FIELD
        found[name] = one
    parts = tuple(found.values())
    gives = [one.default is not MISSING or one.default_factory is not MISSING for one in parts]
    return parts if len({one.kw_only for one in parts}) < 2 and (kw_only or gives == sorted(gives)) else None


def _is_plain(annotation: object) -> bool:
    """Tell whether an annotation makes an ordinary field."""
    text = annotation if isinstance(annotation, str) else repr(annotation)
    return not any(special in text for special in ("ClassVar", "InitVar", "KW_ONLY"))


def _fast(cls: type, parts: tuple[Field[Any], ...], *, frozen: bool, eq: bool, repr: bool) -> type:
    """Return `cls` as a dataclass with slots."""
    methods: dict[str, Any] = {"__init__": _Init(parts, frozen), "__dataclass_params__": _PARAMS[frozen],
                               "__dataclass_fields__": {f.name: f for f in parts},
                               "__match_args__": tuple(f.name for f in parts if not f.kw_only)}
    if frozen:
        methods |= {"__setattr__": _refuse_set, "__delattr__": _refuse_delete, "__getstate__": _get_state, "__setstate__": _set_state}
    if repr and "__repr__" not in cls.__dict__:
        methods["__repr__"] = _repr_of(tuple(f.name for f in parts if f.repr))
    if eq:
        compared = _reader(tuple(f.name for f in parts if f.compare))
        if "__eq__" not in cls.__dict__:
            methods["__eq__"] = _eq_of(compared)
        if "__hash__" not in cls.__dict__ or cls.__dict__["__hash__"] is None:
            methods["__hash__"] = _hash_of(compared) if frozen else None
    for name in ("__repr__", "__eq__", "__hash__"):
        if methods.get(name) is not None:
            methods[name].__qualname__ = f"{cls.__qualname__}.{name}"
    names, inherited = {f.name for f in parts}, getattr(cls, "__dataclass_fields__", {})
    kept = {name: value for name, value in cls.__dict__.items() if name not in names and name not in ("__dict__", "__weakref__")}
    made = type(cls)(cls.__name__, cls.__bases__, {**kept, **methods, "__slots__": tuple(f.name for f in parts if f.name not in inherited)})
    made.__qualname__ = cls.__qualname__
    return made


def _reader(names: tuple[str, ...]) -> Callable[[Any], tuple[object, ...]]:
    """Return what reads some fields as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    if not names:
        return lambda value: ()
    read = attrgetter(names[0])
    return lambda value: (read(value),)


def _repr_of(names: tuple[str, ...]) -> Callable[[Any], str]:
    def __repr__(self: Any) -> str:
        return f"{self.__class__.__qualname__}({', '.join([f'{name}={getattr(self, name)!r}' for name in names])})"
    return __repr__


def _eq_of(compared: Callable[[Any], tuple[object, ...]]) -> Callable[[Any, Any], bool]:
    def __eq__(self: Any, other: Any) -> bool:
        if self is other:
            return True
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented
    return __eq__


def _hash_of(compared: Callable[[Any], tuple[object, ...]]) -> Callable[[Any], int]:
    def __hash__(self: Any) -> int:
        return hash(compared(self))
    return __hash__


class _Init:
    """`__init__` of a class until it is first asked for; then it is compiled and takes this one's place."""

    __slots__ = ("_frozen", "_owner", "_parts")

    def __init__(self, parts: tuple[Field[Any], ...], frozen: bool) -> None:
        self._parts, self._frozen = parts, frozen

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner = owner

    def __get__(self, value: object, kind: type | None = None) -> Any:
        scope: dict[str, Any] = {"_MISSING": MISSING}
        if self._frozen:      # setters of slots take three quarters of the time of object.__setattr__
            scope.update((f"_set_{f.name}", getattr(self._owner, f.name).__set__) for f in self._parts)
        exec(_init(self._parts, scope, frozen=self._frozen), scope)
        made = scope["__init__"]
        made.__qualname__ = f"{self._owner.__qualname__}.__init__"
        made.__module__ = self._owner.__module__
        self._owner.__init__ = made   # type: ignore[misc]
        return made.__get__(value, kind)


def _init(parts: tuple[Field[Any], ...], scope: dict[str, Any], *, frozen: bool) -> str:
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
        body.append(f" _set_{f.name}(self, {value})" if frozen else f" self.{f.name} = {value}")
    start = "self, *" if parts and parts[0].kw_only else "self"
    return "\n".join((f"def __init__({', '.join((start, *params))}):", *(body or [" pass"])))


def _refuse_set(self: object, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _get_state(self: Any) -> list[object]:
    return [getattr(self, f.name) for f in fields(self)]


def _set_state(self: Any, state: list[object]) -> None:
    names = _NAMES.get(type(self))
    if names is None:
        names = _NAMES[type(self)] = tuple(f.name for f in fields(self))
    for name, value in zip(names, state, strict=True):
        _set(self, name, value)


_NAMES: dict[type, tuple[str, ...]] = {}      # of the fields of classes that were read from a pickle


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass: Callable[..., Any] = _dataclass
