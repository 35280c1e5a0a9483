"""A trace as Chrome JSON, the format that ui.perfetto.dev and chrome://tracing open.

A process is an AICPU, a thread one of its executors, a slice a task; an arrow comes from the task whose end another one waited for
last. Counters show how many tasks were submitted and had not ended, and how many were ready and did not run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pto_wsp.errors import CommandError
from pto_wsp.source import here

if TYPE_CHECKING:
    from pto_wsp.report.trace import Trace

Row: TypeAlias = "dict[str, object]"

_COUNTERS = 1 << 20        # as process id: behind all AICPUs


def write_perfetto(trace: Trace, path: Path) -> Path:
    """Write the file and return where it is.

    Raises: C108 for a file that cannot be written.
    """
    try:
        with path.open("w", encoding="utf-8") as file:
            head = json.dumps(trace.about())
            file.write(f'{{"displayTimeUnit":"ns","otherData":{head},"traceEvents":[\n')
            for number, row in enumerate(perfetto_rows(trace)):
                file.write(",\n" * (number > 0) + json.dumps(row, separators=(",", ":"), ensure_ascii=False))
            file.write("\n]}\n")
    except OSError as problem:
        raise CommandError("the trace cannot be written there", here(), found=str(problem)) from None
    return path


def perfetto_rows(trace: Trace) -> Iterator[Row]:
    """Yield the events of a trace: names of processes and threads, tasks, arrows, counters."""
    on_arch = trace.place == "executor"
    us = 1.0 if not trace.clock_ghz else 1e-3 / trace.clock_ghz
    homes = [trace.home_of(executor) for executor in range(trace.n_executors)]
    for aicpu in sorted({home.aicpu for home in homes}):
        yield {"ph": "M", "name": "process_name", "pid": aicpu, "tid": 0, "args": {"name": f"AICPU {aicpu}" if on_arch else "host"}}
    several = len({home.pool for home in homes}) > 1
    for executor, home in enumerate(homes):
        name = f"{trace.place} {executor}" + f" (pool {home.pool})" * several
        yield {"ph": "M", "name": "thread_name", "pid": home.aicpu, "tid": executor, "args": {"name": name}}
    causes = trace.causes
    start, end, executors = trace.start.tolist(), trace.end.tolist(), trace.executor.tolist()
    for task in range(len(trace)):
        said: Row = {"task": task, trace.unit: end[task] - start[task]} | ({"ready": int(trace.ready[task])} if on_arch else {})
        if causes is not None:
            said |= {"submitted": int(causes.submit[task]), "delayed by": causes.held[task]}
        yield {"ph": "X", "name": trace.names[task], "cat": trace.kernels[int(trace.kernel[task])], "pid": homes[executors[task]].aicpu,
               "tid": executors[task], "ts": start[task] * us, "dur": (end[task] - start[task]) * us, "args": said}
    if causes is None:
        return
    for task in np.flatnonzero(causes.task >= 0).tolist():
        source = int(causes.task[task])
        last = max(start[source], end[source] - 1)      # inside the slice: an arrow from its very end belongs to none
        arrow: Row = {"name": causes.held[task], "cat": "waits", "id": task}
        yield {"ph": "s", **arrow, "pid": homes[executors[source]].aicpu, "tid": executors[source], "ts": last * us}
        yield {"ph": "f", "bp": "e", **arrow, "pid": homes[executors[task]].aicpu, "tid": executors[task], "ts": start[task] * us}
    yield {"ph": "M", "name": "process_name", "pid": _COUNTERS, "tid": 0, "args": {"name": "tasks"}}
    yield from _counter("submitted, not ended", causes.submit, trace.end, us)
    yield from _counter("ready, not running", np.maximum(trace.ready, causes.submit), trace.start, us)


def _counter(name: str, begin: np.ndarray[Any, Any], end: np.ndarray[Any, Any], us: float) -> Iterator[Row]:
    """Yield how many intervals hold each time at which that changes."""
    times, at = np.unique(np.concatenate((begin, end)), return_inverse=True)
    change = np.bincount(at, weights=np.repeat((1, -1), len(begin)), minlength=len(times)).astype(np.int64)
    for time, count in zip(times.tolist(), np.cumsum(change).tolist(), strict=True):
        yield {"ph": "C", "name": name, "pid": _COUNTERS, "tid": 0, "ts": time * us, "args": {"tasks": count}}
