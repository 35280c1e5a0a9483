"""Read what a function's body captures: the globals and closure variables that it, and the plain functions it calls, name.

Captured values are constants of the traced function. They are read again at each call, since they may have changed: `CapturedNames.key`.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from enum import Enum
from inspect import unwrap
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any, TypeAlias

import numpy as np

from pto_wsp.trace.tensor.leaves import leaves_of, parts_of
from pto_wsp.values import dataclass

MOST_ELEMENTS = 4096       # of a captured array that counts by its elements: larger ones are refused by the trace
_CHANGING = ("datetime", "numpy.random", "random", "secrets", "time", "uuid")      # modules whose functions give others at each call
_DRAWS = ("bernoulli", "multinomial", "normal", "rand", "rand_like", "randint", "randn", "randn_like", "randperm")     # of torch
_LIBRARIES = ("builtins", "jax", "math", "numpy", "pto_wsp", "torch", "typing")     # what their modules hold does not change

Scope: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True, eq=False)
class _Same:
    """An object that counts by identity, and that a key keeps alive, so that no other one gets its address."""

    value: object

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value


@dataclass(frozen=True, slots=True, eq=False)
class _CapturedName:
    """A name that a body reads: where it is, the function that it was when it was walked, and the attributes read of it."""

    scope: Scope | CellType
    name: str
    walked: object
    attributes: tuple[str, ...] = ()

    def value(self) -> object:
        if isinstance(self.scope, CellType):
            try:
                return self.scope.cell_contents
            except ValueError:      # not bound yet
                return _UNBOUND
        return self.scope.get(self.name, _UNBOUND)


_UNBOUND = _Same(None)


@dataclass(slots=True, eq=False)
class CapturedNames:
    """The names that a function's body captures."""

    function: Callable[..., object]
    _names: tuple[_CapturedName, ...] | None = field(default=None)

    def key(self) -> tuple[object, ...]:
        """Return the captured values as they are now, as a part of a key: with equal keys a trace gives the same function."""
        key = self._read()
        return self._read(again=True) or () if key is None else key

    def values(self) -> Iterator[tuple[str, object, tuple[str, ...]]]:
        """Yield each captured name with its value, and the attributes that are read of the value."""
        for one in self._names or ():
            yield one.name, one.value(), one.attributes

    @property
    def may_change(self) -> bool:
        """Whether the body may read a clock or draw random numbers; only two traces tell whether it computes with them."""
        return any(_changes(one) for _, value, attributes in self.values() for one in _with_attributes(value, attributes))

    def _read(self, *, again: bool = False) -> tuple[object, ...] | None:
        """Return the key, or None where a name stands for another function than when the names were found."""
        if self._names is None or again:
            self._names = tuple(_names_of(self.function, {}))
        parts: list[object] = []
        for name in self._names:
            value = name.value()
            if callable(value):
                if value is not name.walked and not again:
                    return None
                parts.append(_Same(value))
            else:
                parts.append(key_of(value, name.attributes))
        return tuple(parts)


def key_of(value: object, attributes: tuple[str, ...] = ()) -> object:
    """Return what a constant is equal by: its number and type, an array by its elements, a container by its parts, the rest by identity.

    `attributes`: of an object or a module, which count by their values, too.
    """
    kind = type(value)
    if kind is float:
        return kind, value.hex()  # type: ignore[attr-defined]
    if kind in (int, bool, str, bytes) or value is None:
        return kind, value
    if isinstance(value, np.generic):
        return kind, value.tobytes()
    if isinstance(value, np.ndarray) and value.size <= MOST_ELEMENTS:
        return value.dtype, value.shape, value.tobytes()
    if isinstance(value, Enum):
        return value
    if parts_of(value) is not None:
        return kind, tuple((path, key_of(leaf)) for path, leaf in leaves_of(value, ""))
    if attributes:
        return _Same(value), tuple(key_of(getattr(value, name, _UNBOUND)) for name in attributes)
    return _Same(value)


def _names_of(function: Callable[..., object], seen: dict[CodeType, None]) -> Iterator[_CapturedName]:
    """Yield the names that a function and the functions that it calls capture, each once a function."""
    plain = unwrap(function)
    if not isinstance(plain, FunctionType) or plain.__code__ in seen:
        return
    seen[plain.__code__] = None
    cells = dict(zip(plain.__code__.co_freevars, plain.__closure__ or (), strict=False))
    for name, attributes in _names_in(plain.__code__).items():
        scope: Scope | CellType = cells.get(name, plain.__globals__)
        if scope is plain.__globals__ and name not in plain.__globals__:
            continue      # of the builtins, or a variable of the body
        found = _CapturedName(scope, name, None)
        value = found.value()
        if _is_of_library(value) and not any(map(_changes, _with_attributes(value, attributes))):
            continue
        yield _CapturedName(scope, name, value, () if callable(value) else attributes)
        if callable(value):
            yield from _names_of(value, seen)


def _names_in(code: CodeType) -> dict[str, tuple[str, ...]]:
    """Return the names of globals and closure variables that code reads, inner functions included, with the attributes read of each."""
    found: dict[str, tuple[str, ...]] = {}
    before = ""
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_DEREF", "LOAD_NAME", "LOAD_CLASSDEREF"):
            before = str(instruction.argval)
            found.setdefault(before, ())
        elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD") and before:
            found[before] = tuple(dict.fromkeys((*found[before], str(instruction.argval))))
            before = ""
        elif instruction.opname not in ("CACHE", "EXTENDED_ARG"):
            before = ""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            for name, attributes in _names_in(constant).items():
                found[name] = tuple(dict.fromkeys((*found.get(name, ()), *attributes)))
    return found


def _with_attributes(value: object, attributes: tuple[str, ...]) -> tuple[object, ...]:
    return value, *(getattr(value, name, None) for name in attributes)


def _changes(value: object) -> bool:
    """Tell whether a value is a clock, a generator of random numbers, a module of these, or a function of one of these."""
    if isinstance(value, BuiltinFunctionType) and value.__name__ in _DRAWS:
        return True
    owner = getattr(value, "__self__", None)
    modules = (value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None), type(value).__module__,
               type(owner).__module__)
    return any(isinstance(name, str) and (name in _CHANGING or name.startswith("numpy.random.")) for name in modules)


def _is_of_library(value: Any) -> bool:
    """Tell whether a value is a module, a class or a function of a library, which stays as it is."""
    if isinstance(value, ModuleType):
        name = value.__name__
    elif isinstance(value, type | FunctionType):
        name = value.__module__ or ""
    else:
        return False
    return name.partition(".")[0] in _LIBRARIES
