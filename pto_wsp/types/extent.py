"""The extents of a tensor as a traced body reads them: Python numbers, of which the trace hears once they are used.

A body that computes with `X.shape[0]` is made for that number. What is unpacked and not used says nothing: `rows, cols = X.shape`.
Python's own `range(rows)` takes an unpacked extent without asking it, and so is not heard of; `range(X.shape[0])` is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex

Heard = Callable[[], None]


class Extent(int):
    """An extent that calls `heard` when somebody computes with it or decides by it."""

    heard: Heard

    @staticmethod
    def of(value: int, heard: Heard) -> Extent:
        """Return the number as an extent."""
        made = Extent(value)
        made.heard = heard
        return made

    __hash__ = int.__hash__

    def __reduce__(self) -> tuple[object, ...]:
        return int, (int.__add__(self, 0),)


def _hearing(name: str) -> Callable[..., Any]:
    plain = getattr(int, name)

    def operation(self: Extent, *others: object) -> object:
        self.heard()
        return plain(self, *others)

    operation.__name__ = name
    return operation


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "lshift", "rshift", "and", "or", "xor"):
    setattr(Extent, f"__{_name}__", _hearing(f"__{_name}__"))
    setattr(Extent, f"__r{_name}__", _hearing(f"__r{_name}__"))
for _name in ("lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "abs", "invert", "int", "float", "index", "bool", "round", "ceil", "floor"):
    setattr(Extent, f"__{_name}__", _hearing(f"__{_name}__"))


class Shape(tuple[Any, ...]):
    """A shape whose entries are extents: one that is picked by its number is heard of at once."""

    __slots__ = ()

    def __getitem__(self, item: SupportsIndex | slice) -> Any:
        found = super().__getitem__(item)
        if isinstance(found, Extent):
            found.heard()
            return int.__add__(found, 0)
        return Shape(found) if isinstance(found, Sequence) and not isinstance(found, Shape) else found
