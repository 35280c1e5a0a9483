"""Lines of Python with their depth, folded where they are long, and with the place in the user's file that they come from."""

from __future__ import annotations

from pto_wsp.source import Span

INDENT = "    "
_LONGEST = 130   # the template moves lines in by up to 8


class Lines:
    """Collects lines. `line`: of the user's file, which the first line need not name."""

    def __init__(self, line: int = 0) -> None:
        self.out: list[str] = []
        self._line = line

    def put(self, depth: int, text: str, span: Span) -> None:
        """Add a line, with its place in the user's file where that is another than the line before's."""
        where = f"# {span.short}" if span.line and span.line != self._line else ""
        self._line = span.line or self._line
        line = INDENT * depth + text
        if where and len(line) + len(where) + 2 <= _LONGEST:
            self.out.append(f"{line}  {where}")
            return
        if where:
            self.out.append(INDENT * depth + where)
        self.out += fold(line, depth)


def fold(line: str, depth: int) -> list[str]:
    """Return the line in pieces, each but the last ending behind a comma inside brackets."""
    pieces: list[str] = []
    while len(line) > _LONGEST and (at := _comma(line)) is not None:
        pieces.append(line[:at + 1])
        line = INDENT * (depth + 2) + line[at + 2:]
    return [*pieces, line]


def _comma(line: str) -> int | None:
    """Return where the last comma inside brackets stands before a line is too long. Strings in generated lines have no brackets."""
    open_brackets, found = 0, None
    for at, char in enumerate(line[:_LONGEST]):
        open_brackets += (char in "([{") - (char in ")]}")
        if char == "," and open_brackets > 0 and line[at + 1] == " ":
            found = at
    return found
