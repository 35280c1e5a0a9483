"""A trace as text: a line an executor, a letter a kernel, time from left to right.

>>> print(timeline(trace, width=24))
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from pto_wsp.calls import user_call
from pto_wsp.doors import DisplayedText, late_module
from pto_wsp.errors import ArgumentKindError
from pto_wsp.source import here
from pto_wsp.timing.trace import Spans, Trace

Column: TypeAlias = np.ndarray[Any, Any]

_IDLE, _MIXED = "·", "#"


_WIDEST = 1 << 16     # columns and lines of text
_LATEST = (1 << 63) - 1


class Timeline(DisplayedText):
    """A timeline as text; in a notebook, the same tasks as lanes. `end`: the time that the full width stands for, None for all."""

    trace: Trace
    end: int | None

    @property
    def card(self) -> Any:
        """All that a notebook shows as data: the lanes."""
        return late_module("pto_wsp.view.notebook").timeline_card(self.trace, self.end)


@user_call()
def timeline(trace: Trace, width: int = 72, max_executors: int = 32, end: int | None = None) -> Timeline:
    """Return the timeline: each column is the kernel that was busy longest in its share of the time, `·` where nothing was.

    `end`: cycles, of a wall-clock trace ns, that the full width stands for (default: the trace's own), so that two timelines share a scale.
    """
    if not isinstance(trace, Trace):
        raise ArgumentKindError("timeline takes a trace", here(), expected="program.trace or program.wall_trace",
                                found=type(trace).__name__)
    _check_sizes(width, max_executors, 1 if end is None else end)
    span = max(1, trace.total_cycles if end is None else end)
    letters = string.ascii_uppercase + string.ascii_lowercase
    symbols = [letters[k] if k < len(letters) else _MIXED for k in range(len(trace.kernels))]
    edges = np.linspace(0, span, width + 1)
    lines = []
    homes = [trace.home_of(executor) for executor in range(trace.n_executors)]
    has_pools, shares = len({home.pool for home in homes}) > 1, len(set(homes)) < len(homes)
    named = trace.place == "executor" and (shares or has_pools)       # else an executor is an AICPU
    ranks = any(home.name for home in homes)
    shown = _shown_ranks(trace, max_executors) if ranks else _shown_executors(trace, max_executors)
    widest = max((len(trace.name_of(executor)) for executor in shown), default=0)
    spans = trace.spans
    order = np.argsort(spans.executor, kind="stable")
    first = np.searchsorted(spans.executor[order], np.arange(trace.n_executors + 1))
    for at, executor in enumerate(shown):
        home = homes[executor]
        if has_pools and not ranks and (at == 0 or homes[shown[at - 1]].pool != home.pool):
            lines.append(f"pool {home.pool}")
        mine = order[first[executor]:first[executor + 1]]
        share = (spans.end[mine] - spans.start[mine]).sum() / max(1, trace.total_cycles)   # of its own run, whatever the scale
        called = f"{trace.place} {executor:>2}{f', AICPU {home.aicpu:>2}' if named else ''}"
        lines.append(f"{home.name.ljust(widest) if ranks else called} |{_cells(spans, mine, edges, symbols)}| "
                     f"{share:4.0%} busy")
    if trace.n_executors > len(shown) and not ranks:
        lines.append(f"… and {trace.n_executors - len(shown)} more {trace.place}s")
    legend = ", ".join(f"{symbol} {name}" for symbol, name in zip(symbols, trace.kernels, strict=True))
    indent = widest + 1 if ranks else len(f"{trace.place} {0:>2} ") + 10 * named
    lines.append(f"{'':>{indent}}0{f' {trace.unit}'.rjust(width - len(str(span)) - 1 + 7)} {span}".rstrip())
    lines.append(f"{'':>{indent}}{legend}; a small letter: busy for less than half of that column")
    text = Timeline("\n".join(lines))
    text.trace, text.end = trace, end
    return text


def _check_sizes(width: object, max_executors: object, end: object) -> None:
    for name, given, most in (("width", width, _WIDEST), ("max_executors", max_executors, _WIDEST), ("end", end, _LATEST)):
        if isinstance(given, bool) or not isinstance(given, int | np.integer) or not 1 <= given <= most:
            raise ArgumentKindError(f"timeline does not take this value for {name}", here(), found=repr(given),
                                    expected=f"a whole number in 1 .. {most}")


def _cells(spans: Spans, mine: Column, edges: Column, symbols: Sequence[str]) -> str:
    """Return the columns of one executor; `mine`: its spans."""
    busy = coverage(spans.start[mine], spans.end[mine], spans.kernel[mine], len(symbols) + 1, edges)
    total, half = busy.sum(axis=0), 0.5 * np.diff(edges)
    strongest = [symbols[kernel] if total[k] > 0 else _IDLE for k, kernel in enumerate(busy.argmax(axis=0))]
    return "".join(symbol if total[k] >= half[k] else symbol.lower() if symbol.isupper() else _IDLE for k, symbol in enumerate(strongest))


def _shown_executors(trace: Trace, most: int) -> list[int]:
    """Return the executors to draw: all, or the first that ran tasks where executors are too many."""
    used = used_executors(trace)
    return list(range(trace.n_executors)) if trace.n_executors <= most else (used or list(range(most)))[:most]


def _shown_ranks(trace: Trace, most: int) -> list[int]:
    """Return the executors of a mesh's lines: those that ran tasks, rank by rank, cores before links."""
    homes = [trace.home_of(executor) for executor in range(trace.n_executors)]
    return sorted(used_executors(trace), key=lambda executor: (homes[executor].aicpu, homes[executor].pool, executor))[:most]


def used_executors(trace: Trace) -> list[int]:
    """Return the executors that ran tasks, rising."""
    used: list[int] = np.flatnonzero(np.bincount(trace.spans.executor)).tolist()
    return used


def coverage(start: Column, end: Column, kernel: Column, n_kernels: int, edges: Column) -> Column:
    """Return how many cycles the tasks of each kernel cover in each column: an array [kernel, column]."""
    n = len(edges) - 1
    first = np.clip(np.searchsorted(edges, start, side="right") - 1, 0, n - 1)
    start, end = np.clip(start, edges[0], edges[-1]), np.clip(end, edges[0], edges[-1])

    def summed(kernel: Column, column: Column, values: Column) -> Column:
        return np.bincount(kernel * (n + 1) + column, values, n_kernels * (n + 1)).reshape(n_kernels, n + 1)

    # a task covers its first column in part; the few that go on cover their last one in part, and all between them
    upper = edges[first + 1]
    parts = summed(kernel, first, np.minimum(end, upper) - start)
    on = np.flatnonzero(end > upper)
    first, end, kernel = first[on], end[on], kernel[on]
    last = np.clip(np.searchsorted(edges, end, side="left") - 1, 0, n - 1)
    parts += summed(kernel, last, end - edges[last])
    inside = (last - first > 1).astype(np.float64)
    change = summed(kernel, first + 1, inside) - summed(kernel, last, inside)
    covered: Column = (parts + np.cumsum(change, axis=1) * np.append(np.diff(edges), 0))[:, :n]
    return covered
