"""Where in the user's program something was written, and how to show it.

A `Span` is taken from the running frame (`here`), never from parsing source, so it works in a REPL and in a notebook. The text of
the line is looked up only when an error is shown.

>>> str(Span("model.py", 3, 5))
'model.py:3:5'
"""

from __future__ import annotations

import ast
import contextlib
import copy
import linecache
import os
import re
import sys
from collections import Counter
from collections.abc import Mapping
from itertools import islice
from types import CodeType, FrameType

import numpy as np

from pto_wsp.values import dataclass

_NUMPY_DIR = os.path.dirname(os.path.abspath(np.__file__)) + os.sep
_PYTHONS = (contextlib.__file__, copy.__file__)      # modules of Python that call the package
_LIBRARIES = tuple(os.sep + folder.replace("/", os.sep) + os.sep for folder in ("pydantic", "site-packages/torch", "site-packages/jax"))
_LONGEST_HEAD = 64   # lines of decorators and parameters
_OFTEN = 16          # times that a function is on the stack, from which on it is said to call itself
_ENDS = re.compile(r"[\"'\\]|\*/|/\*")
PACKAGE_DIR = os.path.dirname(os.path.abspath(__file__)) + os.sep


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a user's file: 1-based line and columns, `end_column` excluded; line 0 means unknown.

    Column 0: the line alone is known, of a file that is not here to be shown; so it is in a program that was saved and loaded.
    """

    file: str
    line: int
    column: int = 1
    end_line: int = 0
    end_column: int = 0

    def __str__(self) -> str:
        cell = cell_name(self.file)
        if cell:
            return f"{cell}, line {self.line}"
        return f"{_shown_path(self.file)}:{self.line}:{self.column}" if self.column else f"{self.file}:{self.line}"

    @property
    def short(self) -> str:
        """The basename and line, for comments in generated code and for `declared at` notes: they end no comment, string or line."""
        name = os.path.basename(self.file)
        return f"{name if name.isprintable() and not _ENDS.search(name) else _ENDS.sub('?', ascii(name)[1:-1])}:{self.line}"

    @property
    def text(self) -> str:
        """The source text of a span within one line, "" where it is not known."""
        ends_here = self.column and self.end_line == self.line and self.end_column > self.column
        line = linecache.getline(self.file, self.line).encode() if ends_here else b""      # columns of positions count bytes
        return line[self.column - 1:self.end_column - 1].decode(errors="ignore").strip()

    def excerpt(self) -> tuple[str, ...]:
        """Return the source line with a caret line under it, or nothing when the text cannot be found."""
        text = linecache.getline(self.file, self.line).rstrip("\n") if self.column else ""
        if not text.strip():
            return ()
        start = min(self.column, len(text)) - 1
        ends_here = self.end_line == self.line and self.end_column > self.column
        width = max(1, (self.end_column if ends_here else len(text) + 1) - 1 - start)
        width = min(width, max(1, len(text) - start))
        number = str(self.line)
        gutter = " " * len(number)
        pad = "".join("\t" if c == "\t" else " " for c in text[:start])
        return (f"{gutter} |", f"{number} | {text}", f"{gutter} | {pad}{'^' * width}")


UNKNOWN = Span("<unknown>", 0)


def cell_name(file: str) -> str:
    """Return how IPython names the cell whose code was compiled under this file name, `Cell In[28]`; "" for other files."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    cells = getattr(getattr(shell, "compile", None), "_filename_map", None) or {}
    return f"Cell In[{cells[file]}]" if file in cells else ""


_user_lines: dict[str, dict[int, Span]] = {}    # of files that the package wrote: the user's line behind each line
_user_spans: set[Span] = set()


def map_lines(file: str, spans: Mapping[int, Span]) -> None:
    """Say from which lines of the user's the lines of a file come that the package wrote: spans in the file are these from now on."""
    _user_lines[file] = dict(spans)
    _user_spans.update(spans.values())


def _of_user(span: Span) -> Span:
    """Return the user's span for a span in a file that the package wrote; the span itself in another file."""
    return _user_lines.get(span.file, {}).get(span.line, span)


def here() -> Span:
    """Return the span of the innermost running line that lies outside this package."""
    return span_of(user_frame())


def user_frame() -> FrameType:
    """Return the innermost frame that lies outside this package (the outermost frame when there is none)."""
    frame: FrameType = sys._getframe(1)
    while frame.f_back is not None and is_internal(frame.f_code):
        frame = frame.f_back
    return frame


def repeated(problem: RecursionError) -> tuple[str, Span] | None:
    """Return which of the user's functions a recursion error ran through most often, and where it went on; None where none calls itself.

    To be called where the error is caught: the frames above stand there, those below are in its traceback.
    """
    frames: list[FrameType] = []
    above: FrameType | None = sys._getframe(1)
    while above is not None:
        frames.append(above)
        above = above.f_back
    step = problem.__traceback__
    while step is not None:
        frames.append(step.tb_frame)
        step = step.tb_next
    counts = Counter(frame.f_code for frame in frames if not is_internal(frame.f_code))
    code, count = counts.most_common(1)[0]
    if count < _OFTEN:
        return None
    return code.co_name, span_of(next(frame for frame in frames if frame.f_code is code))


def is_internal(code: CodeType) -> bool:
    """Tell whether `code` is of this package (or of NumPy, torch, JAX, pydantic and Python's modules that call it) rather than a user's."""
    name = code.co_filename
    return (name.startswith((PACKAGE_DIR, _NUMPY_DIR)) or name.startswith("<frozen") or name in _PYTHONS
            or code.co_qualname.startswith("__create_fn__.")      # what a dataclass generates
            or any(folder in name for folder in _LIBRARIES))


def span_of(frame: FrameType) -> Span:
    """Return the span of the instruction that `frame` is executing."""
    code = frame.f_code
    position = next(islice(code.co_positions(), frame.f_lasti // 2, None), None)
    line, end_line, column, end_column = position or (None, None, None, None)
    if code.co_filename in _user_lines:
        return _of_user(Span(code.co_filename, line or frame.f_lineno))
    if line is None:
        return Span(code.co_filename, frame.f_lineno)
    return Span(code.co_filename, line, (column or 0) + 1, end_line or 0, (end_column or 0) + 1)


def definition_span(code: CodeType) -> Span:
    """Return where a function was defined: its `def` line, not that of a decorator."""
    for line in range(code.co_firstlineno, code.co_firstlineno + _LONGEST_HEAD):
        text = linecache.getline(code.co_filename, line)
        if re.match(r"\s*(async\s+)?def\s", text):
            return _of_user(Span(code.co_filename, line, len(text) - len(text.lstrip()) + 1))
        if not text:
            break
    return Span(code.co_filename, code.co_firstlineno)


def parameter_span(code: CodeType, name: str) -> Span:
    """Return where the parameter `name` stands in the function's `def`; the `def` itself when the text is not there."""
    whole = definition_span(code)
    if code.co_filename in _user_lines:
        return whole
    for line in range(whole.line, whole.line + _LONGEST_HEAD):   # read as text: decorating a kernel parses no file
        text = linecache.getline(code.co_filename, line)
        found = re.search(rf"(?<![\w.])\*{{0,2}}{re.escape(name)}\s*[:,)=]", text)
        if found:
            start = found.start() + 1
            return Span(code.co_filename, line, start, line, start + len(found.group().rstrip(" :,)=")))
        if not text:
            break
    return whole


def argument_span(call: Span, name: str, position: int | None = None) -> Span:
    """Narrow the span of a call to one of its arguments, by keyword or by position; the call itself when that fails."""
    node = None if call in _user_spans else _parsed_call(call)      # the user's line is no call of a kernel
    if node is None:
        return call
    for keyword in node.keywords:
        if keyword.arg == name:
            return _inside(call, keyword.value)
    if position is not None and position < len(node.args):
        return _inside(call, node.args[position])
    return call


def _parsed_call(call: Span) -> ast.Call | None:
    """Parse the text of a call alone: what stands around it may be no Python (a page of docs, a notebook's magics)."""
    lines = [linecache.getline(call.file, line) for line in range(call.line, call.end_line + 1)]
    if not lines or not lines[-1]:
        return None
    lines[-1] = lines[-1].encode()[:call.end_column - 1].decode(errors="ignore")
    lines[0] = lines[0].encode()[call.column - 1:].decode(errors="ignore")
    try:
        tree = ast.parse("(" + "".join(lines) + ")", mode="eval")   # in parentheses, so that lines may break anywhere
    except (SyntaxError, ValueError):
        return None
    return tree.body if isinstance(tree.body, ast.Call) else None


def _inside(call: Span, node: ast.expr) -> Span:
    """The span of a part of a parsed call: its first line starts at the call's column, behind a parenthesis."""
    def column(line: int, offset: int) -> int:
        return offset + (call.column - 1 if line == 1 else 1)

    end_line, end_offset = node.end_lineno or node.lineno, node.end_col_offset or 0
    return Span(call.file, call.line + node.lineno - 1, column(node.lineno, node.col_offset), call.line + end_line - 1,
                column(end_line, end_offset))


def _shown_path(file: str) -> str:
    if file.startswith("<"):
        return file
    try:
        relative = os.path.relpath(file)
    except ValueError:
        return file
    return file if relative.startswith("..") else relative
