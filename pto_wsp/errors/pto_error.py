"""What every error has: its report, its parts, and how several are raised together.

`str(error)` is the whole report that a user sees; `code`, `span` and `notes` are there for programs. An error that is ours, not
the user's, is an `InternalError`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from typing import ClassVar, NoReturn, Protocol

from pto_wsp.doors import Displayed
from pto_wsp.errors.traceback import notebook_lines, show_below
from pto_wsp.source import is_internal

_made_in_body: ContextVar[list[PtoError] | None] = ContextVar("pto_wsp_made_in_body", default=None)


class SourcePosition(Protocol):
    """What an error needs of a source position (`source.Span` is one)."""

    def __str__(self) -> str: ...

    def excerpt(self) -> tuple[str, ...]:
        """Return the lines to show under the position, each with its gutter."""
        ...


class PtoError(Exception, Displayed):
    """Base of every error that a user can cause. Subclasses carry a stable `code`.

    `picture`: what a notebook draws of the mistake, as data; None for most.
    """

    picture: object = None

    code: ClassVar[str] = "E000"
    cause: ClassVar[str] = ""
    example: ClassVar[str] = ""
    fix: ClassVar[str] = ""

    def __init__(self, message: str, span: SourcePosition | None = None, *, expected: str | None = None, found: str | None = None,
                 help: str | None = None, notes: Sequence[str] = (), others: Sequence[PtoError] = (),
                 also: Sequence[tuple[str, SourcePosition]] = ()) -> None:
        """`also`: further places that have a part in it, each with what happens there."""
        super().__init__(message)
        self.message = message
        self.span = span
        self.expected = expected
        self.found = found
        self.help = help
        self.notes = tuple(notes)
        self.others = tuple(others)
        self.also = tuple(also)
        made = _made_in_body.get()
        if made is not None:
            made.append(self)

    def __str__(self) -> str:
        return "\n\n".join(error._one() for error in (self, *self.others))

    def _one(self) -> str:
        lines = [f"error[{self.code}]: {self.message}"]
        if self.span is not None:
            lines.append(f"  --> {self.span}")
            lines.extend(f"  {line}" for line in self.span.excerpt())
        for what, place in self.also:
            lines.append(f"  --> {place}: {what}")
            lines.extend(f"  {line}" for line in place.excerpt())
        for label, text in (("expected", self.expected), ("found", self.found), ("help", self.help)):
            if text is not None:
                lines.append(f"   = {label + ':':9} {text}")
        lines.extend(f"   = note:     {note}" for note in self.notes)
        return "\n".join(lines)

    def _render_traceback_(self) -> list[str]:
        """Return what IPython prints: the report, and the user's frames only. A notebook draws the picture, if there is one, below."""
        if any(error.picture is not None for error in (self, *self.others)):
            show_below(self)
        return notebook_lines(self)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message,), vars(self)


def raise_all(errors: Sequence[PtoError]) -> None:
    """Raise the first of several errors with the others attached, so that one report shows them all; nothing when empty."""
    if errors:
        raised = copy(errors[0])
        raised.others = (*raised.others, *errors[1:])
        raise raised


@contextmanager
def no_error_lost(body: str) -> Iterator[None]:
    """Raise, behind the block that traces a body, the first error that user code in the block caught.

    A traced body that catches an error goes on without the refused statement. An error that the package itself catches is no loss: the
    traceback of an error starts at the frame that caught it.
    """
    outer = _made_in_body.get()
    made: list[PtoError] = []
    token = _made_in_body.set(made)
    try:
        try:
            yield
        except PtoError:
            _raise_lost(body, made)
            raise
        _raise_lost(body, made)
    finally:
        _made_in_body.reset(token)
        if outer is not None:
            outer.extend(made)
        made.clear()


def _raise_lost(body: str, made: Sequence[PtoError]) -> None:
    for error in made:
        trace = error.__traceback__
        if trace is not None and not is_internal(trace.tb_frame.f_code):
            error.notes += (f"{body} catches this error: what comes behind it would run without the refused statement",)
            raise error from None


class InternalError(Exception):
    """A mistake of ours: not the user's to mend."""

    def __init__(self, message: str, context: str = "") -> None:
        super().__init__(f"{message}\nthis is a bug in pto_wsp, not in your program: please report it with the text above"
                         + (f"\n{context}" if context else ""))


def unreachable(what: str) -> NoReturn:
    """Raise an `InternalError` for a state that a stage before should have refused."""
    raise InternalError(f"unexpected {what}")
