"""How values go to another process: `pickle`, `copy.copy` and `copy.deepcopy` ask the same questions of a value."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from typing import Any, ClassVar, NoReturn

from pto_wsp.errors import ProgramStateError
from pto_wsp.source import here


class PickledByName:
    """Base of what decorators make of functions: pickled as a function is, by module and name; a copy is the object itself."""

    __slots__ = ()
    __qualname__: str

    def __reduce__(self) -> str | tuple[object, ...]:
        return self.__qualname__


class InOneProcess:
    """Base of values that use memory and code of this process: they are neither pickled nor copied."""

    __slots__ = ()
    _instead: ClassVar[str] = ""      # what the user does instead

    def __reduce__(self) -> NoReturn:
        raise ProgramStateError(f"a value of {type(self).__name__} is neither pickled nor copied: it uses memory and code of this process",
                                here(), help=self._instead)


def with_computed(record: Any, *names: str) -> tuple[object, ...]:
    """Return the `__reduce__` of a record. Fields `names`, which are computed by a call, are computed now: each call returns the value."""
    def kept(name: str) -> object:
        value = getattr(record, name)
        return value if name not in names or value is None else partial(_same, value())
    return type(record), tuple(kept(field.name) for field in fields(record))


def _same(value: object) -> object:
    return value
