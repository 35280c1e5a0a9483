"""Text that breaks into lines where it is too long: lists whose parts go below one another, indented.

>>> print(laid_out(Listed("f(", (Part("x: In", ","), Part("y: Out")), ")"), width=10))
f(
    x: In,
    y: Out)
"""

from __future__ import annotations

from typing import TypeAlias

from pto_wsp.values import dataclass

WIDTH = 100       # of a terminal, and of a cell in a notebook
_INDENT = 4


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a list, and what stands behind it: a space, or a new line, follows."""

    text: Text
    end: str = ""


@dataclass(frozen=True, slots=True)
class Listed:
    """Parts between two brackets: on one line where they fit, else one a line."""

    head: str
    parts: tuple[Part, ...]
    tail: str


@dataclass(frozen=True, slots=True)
class Row:
    """Texts one behind the other."""

    parts: tuple[Text, ...]


Text: TypeAlias = str | Listed | Row


def listed(head: str, parts: tuple[Text, ...], end: str, tail: str) -> Listed:
    """Return a list with the same mark behind each part but the last."""
    last = len(parts) - 1
    return Listed(head, tuple(Part(text, end if k < last else "") for k, text in enumerate(parts)), tail)


def one_line(text: Text) -> str:
    """Return the text on one line, however long."""
    match text:
        case str():
            return text
        case Row(parts):
            return "".join(map(one_line, parts))
        case Listed(head, parts, tail):
            return head + " ".join(one_line(part.text) + part.end for part in parts) + tail


def laid_out(text: Text, width: int = WIDTH) -> str:
    """Return the text in lines of at most `width` columns, as far as its parts allow."""
    return _laid_out(text, 0, 0, 0, width)


def _laid_out(text: Text, column: int, indent: int, behind: int, width: int) -> str:
    """`column`: where the text starts; `behind`: how much follows it on its last line."""
    flat = one_line(text)
    if column + len(flat) + behind <= width:
        return flat
    match text:
        case str():
            return text
        case Row(parts):
            shown = ""
            for k, part in enumerate(parts):
                line_start = shown.rfind("\n") + 1
                at = len(shown) - line_start + (column if line_start == 0 else 0)
                after = behind if k == len(parts) - 1 else 0
                shown += _laid_out(part, at, indent, after, width)
            return shown
        case Listed(head, parts, tail):
            inner = indent + _INDENT
            last = len(parts) - 1
            lines = [_laid_out(part.text, inner, inner, len(part.end) + (len(tail) + behind if k == last else 0), width) + part.end
                     for k, part in enumerate(parts)]
            return head + "".join(f"\n{' ' * inner}{line}" for line in lines) + tail
