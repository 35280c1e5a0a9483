"""Lines of MLIR text: operations with their locations, names that are given once, regions.

>>> text.value("c", "arith.constant 16 : index", span)
'%c'
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from pto_wsp.source import Span

_INDENT = "  "


class Text:
    """Operations as they are added, each with the place that the user wrote it at. `fallback`: for what has none.

    `taken`: the names given so far, which several texts of one function share.
    """

    def __init__(self, fallback: Span, depth: int, taken: set[str]) -> None:
        self.lines: list[str] = []
        self._fallback = fallback
        self._depth = depth
        self._taken = taken

    def op(self, operation: str, span: Span) -> None:
        """Add an operation without results."""
        self.lines.append(f"{_INDENT * self._depth}{operation} {self._loc(span)}")

    def value(self, name: str, operation: str, span: Span) -> str:
        """Add an operation with one result and return the result's name, which reads like `name`."""
        given = self.fresh(name)
        self.op(f"{given} = {operation}", span)
        return given

    def fresh(self, name: str) -> str:
        """Return a name that nothing else has."""
        stem = re.sub(r"[^A-Za-z0-9_]", "_", name) or "v"
        stem = f"v{stem}" if stem[0].isdigit() else stem
        found = next(text for n in itertools.count(1) if (text := stem if n == 1 else f"{stem}_{n}") not in self._taken)
        self._taken.add(found)
        return f"%{found}"

    @contextmanager
    def region(self, head: str, span: Span) -> Iterator[None]:
        """Add an operation with a region around what is added inside."""
        self.lines.append(f"{_INDENT * self._depth}{head} {{")
        self._depth += 1
        yield
        self._depth -= 1
        self.lines.append(f"{_INDENT * self._depth}}} {self._loc(span)}")

    def otherwise(self) -> None:
        """End the first region of an operation and begin its second."""
        self.lines.append(f"{_INDENT * (self._depth - 1)}}} else {{")

    def _loc(self, span: Span) -> str:
        return location(span if span.line else self._fallback)


def location(span: Span) -> str:
    """Return a place in the user's file: its bare name, so that the text is the same wherever it is made."""
    name = os.path.basename(span.file).replace("\\", "_").replace('"', "_")
    return f'loc("{name}":{span.line}:{span.column})'
