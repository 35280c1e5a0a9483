"""Show an error in IPython: the report first, then the user's own frames, without those of libraries.

IPython calls `_render_traceback_` of an exception, if it has one, in place of printing every frame.
"""

from __future__ import annotations

import linecache
import os
import sys
import traceback
from collections.abc import Iterator
from types import CodeType, TracebackType

from pto_wsp.doors import Displayed
from pto_wsp.source import cell_name, is_internal

_BOLD, _RED, _BLUE, _END = "\x1b[1m", "\x1b[31m", "\x1b[34m", "\x1b[0m"
_MACHINERY = tuple(f"{os.sep}{name}{os.sep}" for name in ("IPython", "ipykernel", "site-packages", "dist-packages"))


def notebook_lines(error: BaseException) -> list[str]:
    """Return the lines that IPython prints for an error: the report, the calls that led to the error, and its causes."""
    lines = [_coloured(line) for line in str(error).splitlines()]
    calls = [line for step in _steps(error.__traceback__) for line in step]
    if calls:
        lines += ["", "raised in these calls, the first one outermost:", *calls]
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        how = "raised from" if error.__cause__ is not None else "raised while handling"
        lines += ["", f"{how} {type(cause).__name__}:"]
        lines += (line for step in _steps(cause.__traceback__) for line in step)
        lines += "".join(traceback.format_exception_only(cause)).rstrip().splitlines()
    return lines


_shown_behind_cell: list[Displayed] = []


def show_below(error: Displayed) -> None:
    """Show the card of an error below its report, if a notebook runs: behind the cell, since the report is printed after this."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    if shell is None or getattr(shell, "kernel", None) is None or error in _shown_behind_cell:    # IPython may ask twice
        return

    def show(*_: object) -> None:
        shell.events.unregister("post_run_cell", show)
        _shown_behind_cell.remove(error)
        html = error._repr_mimebundle_().get("text/html")
        if html is not None:
            sys.modules["IPython"].display.display({"text/html": html}, raw=True)

    _shown_behind_cell.append(error)
    shell.events.register("post_run_cell", show)


def _steps(trace: TracebackType | None) -> Iterator[tuple[str, ...]]:
    """Yield, for each of the user's frames, its place and the line that it runs."""
    while trace is not None:
        code = trace.tb_frame.f_code
        if not is_internal(code) and not _is_library(code):
            place = cell_name(code.co_filename) or code.co_filename
            text = linecache.getline(code.co_filename, trace.tb_lineno).strip()
            name = "" if code.co_name == "<module>" else f", in {code.co_name}"
            yield (f"  {place}, line {trace.tb_lineno}{name}", *((f"    {text}",) if text else ()))
        trace = trace.tb_next


def _is_library(code: CodeType) -> bool:
    return not cell_name(code.co_filename) and any(part in code.co_filename for part in _MACHINERY)


def _coloured(line: str) -> str:
    """Return a line of a report with colours: the head in red, places and gutters in blue."""
    if os.environ.get("NO_COLOR"):
        return line
    if line.startswith("error["):
        head, colon, rest = line.partition(":")
        return f"{_BOLD}{_RED}{head}{_END}{_BOLD}{colon}{rest}{_END}"
    stripped = line.lstrip()
    gutter, bar, rest = stripped.partition("|")
    if stripped.startswith(("-->", "= ")):
        mark, _, text = stripped.partition(" ")
        return f"{line[:len(line) - len(stripped)]}{_BLUE}{mark}{_END} {text}"
    if bar and (not gutter.strip() or gutter.strip().isdigit()):
        rest = f"{_RED}{rest}{_END}" if rest.strip() and set(rest.strip()) == {"^"} else rest
        return f"{line[:len(line) - len(stripped)]}{_BLUE}{gutter}|{_END}{rest}"
    return line
