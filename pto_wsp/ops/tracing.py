"""How an op reaches the kernel that is being traced, without knowing how tracing is done.

The front end makes itself the active `Emitter` while it runs a kernel's body; an op called at any other time has no meaning.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeAlias, TypeGuard

from pto_wsp.errors import OutsideTraceError
from pto_wsp.source import here
from pto_wsp.types.dtype import DType

Attr: TypeAlias = int | float | bool | str | DType | tuple[int, ...] | None
Attrs: TypeAlias = tuple[tuple[str, Attr], ...]


class Operand(Protocol):
    """A tile as the body of a kernel handles it: a value, a parameter or a buffer."""

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, cols)."""
        ...

    @property
    def dtype(self) -> DType:
        """The element type."""
        ...

    def __pto_tile__(self) -> None:
        """Mark the class: only tiles have it."""
        ...


def is_tile(value: object) -> TypeGuard[Operand]:
    """Tell whether `value` is a tile of a kernel."""
    return hasattr(type(value), "__pto_tile__")


class Emitter(Protocol):
    """The trace of one kernel."""

    def emit(self, op: str, operands: tuple[object, ...], attrs: Attrs) -> Operand:
        """Append the op of that name on tiles and numbers, and return its result; errors carry the user's line."""
        ...

    def read(self, tile: Operand) -> Operand:
        """Return the value that a parameter or buffer has at this point of the kernel."""
        ...


_ACTIVE: ContextVar[Emitter | None] = ContextVar("pto_wsp_active_emitter", default=None)


@contextmanager
def activate(emitter: Emitter) -> Iterator[None]:
    """Make `emitter` the one that ops reach, for the length of a `with`."""
    token = _ACTIVE.set(emitter)
    try:
        yield
    finally:
        _ACTIVE.reset(token)


def is_active() -> bool:
    """Tell whether a kernel is being traced."""
    return _ACTIVE.get() is not None


def active(name: str) -> Emitter:
    """Return the active emitter for an op called `name`.

    Raises: K105 when no kernel is being traced.
    """
    emitter = _ACTIVE.get()
    if emitter is None:
        raise OutsideTraceError(f"`pto.{name}` was called outside a kernel", here(),
                                help="call it in the body of a @kernel; for NumPy arrays at once use kernel.run(...)")
    return emitter
