"""Cards of what a run left: traces and figures.

Everything is aggregated here: a card has at most 2,000 marks and a few dozen rows, whatever the number of tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pto_wsp.timing.explain import CAUSE_NAMES
from pto_wsp.timing.figures import ExecutorStats
from pto_wsp.timing.stats import Stats
from pto_wsp.timing.trace import Trace
from pto_wsp.view.card import BarPart, Card, LabelledValue, LanesPart, Segment, TablePart, TaskLane, TaskMark, ValuesPart
from pto_wsp.view.colours import legend_of
from pto_wsp.view.iteration_cards import run_grids
from pto_wsp.view.timeline import coverage, used_executors

MOST_MARKS = 2000
_MOST_LANES, _MOST_NAMED = 32, 400
_MOST_RANKS = 8             # up to which there is a column for each
_SCALE = 1000       # units of a lane's width
_ROWS = 12
_FEW = 1000


# -- lanes -------------------------------------------------------------------------------------------------------------
def trace_card(trace: Trace) -> Card:
    """Return the card of a trace: its lanes, and the tasks that waited longest."""
    used = len(used_executors(trace))
    parts: list[Any] = [lanes_of(trace)] if len(trace) else []
    parts.extend(run_grids(trace))
    waits = _longest_waits(trace)
    parts += [waits] if waits is not None else []
    return Card(title="Trace", subtitle=f"{trace.n_ran:,} tasks on {used} of {trace.n_executors} {trace.place}s",
                sentence=_trace_sentence(trace), parts=tuple(parts),
                foot="trace.columns() gives the tasks as arrays, trace.to_perfetto(path) a file for ui.perfetto.dev")


def _trace_sentence(trace: Trace) -> str:
    if not len(trace):
        return "No task ran."
    stats = None if trace.stats is None else trace.stats()
    return verdict(stats) if isinstance(stats, Stats) else f"{trace.total_cycles:,} {trace.unit}"


def lanes_of(trace: Trace, end: int | None = None, most: int = MOST_MARKS) -> LanesPart:
    """Return the lanes of a trace: a mark a task, or where these are more than `most` merged marks. `end`: the time of the full width."""
    span = max(1, trace.total_cycles if end is None else end)
    groups = _groups(trace)
    shown = groups[:_MOST_LANES]
    merged = len(trace) > most
    columns = max(40, most // max(1, len(shown)))
    several = len({home.pool for home in trace.homes}) > 1 and not any(home.name for home in trace.homes)     # links are pools of a mesh
    lanes = []
    lane_of = np.full(trace.n_executors, len(shown), np.uint16)
    for number, (_, executors) in enumerate(shown):
        lane_of[executors] = number
    spans = trace.spans
    lane = lane_of[spans.executor]
    order, ends = np.argsort(lane, kind="stable"), np.cumsum(np.bincount(lane, minlength=len(shown)))
    for number, (label, executors) in enumerate(shown):
        mine = order[ends[number - 1] if number else 0:ends[number]]
        busy = int((spans.end[mine] - spans.start[mine]).sum()) / max(1, trace.total_cycles * len(executors))
        marks = _merged_marks(trace, mine, columns, span, len(executors)) if merged else _marks(trace, mine, span)
        group = f"pool {trace.home_of(executors[0]).pool}" if several else ""
        lanes.append(TaskLane(label=label, group=group, busy=f"{busy:.0%}", marks=marks))
    return LanesPart(unit=trace.unit, total=span, lanes=tuple(lanes), legend=legend_of(trace.kernels), more=len(groups) - len(shown),
                     merged=merged)


def _groups(trace: Trace) -> list[tuple[str, list[int]]]:
    """Return the lanes: one for each executor, or for each AICPU of a pool where executors are many; on a mesh, by rank."""
    if any(home.name for home in trace.homes):
        by_rank = sorted(used_executors(trace), key=lambda each: (trace.home_of(each).aicpu, trace.home_of(each).pool, each))
        return [(trace.name_of(executor), [executor]) for executor in by_rank]
    if trace.n_executors <= _MOST_LANES:
        return [(f"{trace.place} {executor}", [executor]) for executor in range(trace.n_executors)]
    by_home: dict[object, list[int]] = {}
    for executor in range(trace.n_executors):
        by_home.setdefault(trace.home_of(executor), []).append(executor)
    if len(by_home) == trace.n_executors:
        return [(f"{trace.place} {executor}", [executor]) for executor in used_executors(trace)]
    return [(f"{trace.place}s {executors[0]} to {executors[-1]}", executors) for executors in by_home.values()]


def _marks(trace: Trace, mine: np.ndarray[Any, Any], span: int) -> tuple[TaskMark, ...]:
    spans, named = trace.spans, len(trace) <= _MOST_NAMED
    x, stop = (np.rint(times[mine] * (_SCALE / span)).astype(np.int64).tolist() for times in (spans.start, spans.end))
    return tuple(TaskMark(x=begin, width=max(1, end - begin), kernel=kernel, name=_mark_name(trace, at) if named else "")
                 for begin, end, kernel, at in zip(x, stop, spans.kernel[mine].tolist(), mine.tolist(), strict=True))


def _mark_name(trace: Trace, at: int) -> str:
    spans = trace.spans
    return f"{trace.names[int(spans.task[at])]}: {spans.start[at]:,} to {spans.end[at]:,} {trace.unit}"


def _merged_marks(trace: Trace, mine: np.ndarray[Any, Any], columns: int, span: int, n: int) -> tuple[TaskMark, ...]:
    """Return marks of equal columns: each the kernel that ran longest there, neighbours of the same kind as one."""
    edges, spans = np.linspace(0, span, columns + 1), trace.spans
    busy = coverage(spans.start[mine], spans.end[mine], spans.kernel[mine], len(trace.kernels), edges)
    total, kernel = busy.sum(axis=0), busy.argmax(axis=0)
    level = np.where(total <= 0, 0, np.where(total >= 0.5 * n * np.diff(edges), 2, 1))
    key = np.where(level == 0, -1, kernel * 2 + level - 1)
    starts = np.flatnonzero(np.concatenate(([True], key[1:] != key[:-1])))
    stops = np.append(starts[1:], columns)
    x, end = (np.rint(at * (_SCALE / columns)).astype(np.int64).tolist() for at in (starts, stops))
    return tuple(TaskMark(x=begin, width=max(1, stop - begin), kernel=k // 2, full=bool(k % 2))
                 for begin, stop, k in zip(x, end, key[starts].tolist(), strict=True) if k >= 0)


def _longest_waits(trace: Trace) -> TablePart | None:
    if trace.causes is None or not len(trace):
        return None
    waits = trace.start - trace.causes.submit
    few = np.arange(len(waits)) if len(waits) <= _FEW else np.flatnonzero(waits >= np.partition(waits, -10)[-10])
    longest = [task for task in few[np.argsort(-waits[few], kind="stable")[:10]].tolist() if waits[task] > 0]
    rows = [(trace.names[task], f"{waits[task]:,}", trace.causes.held[task],
             trace.names[int(trace.causes.task[task])] if trace.causes.task[task] >= 0 else "") for task in longest]
    return TablePart(title="Longest waits", head=("task", trace.unit, "held by", "of"), rows=tuple(rows), right=(1,)) if rows else None


# -- figures -----------------------------------------------------------------------------------------------------------
_TONES: Mapping[str, tuple[str, str]] = {        # by kind of step in a chain of causes: what it is called, and its tone
    "task": ("a task runs", "work"), "edge": ("latency of edges", "bad"), "executor": ("no free executor", "bad"),
    "window": ("window full", "bad"), "mark": ("waits of processes", "bad"), "release": ("timing", "rest"),
    "start": ("start policy", "rest"),
    "submit": ("submission", "submission"), "dispatch": ("dispatch", "submission"), "retire": ("retire", "submission"),
    "calendar": ("calendar", "rest"), "not": ("unknown", "rest"),
}
_CAUSE_TONES: Mapping[str, str] = {        # tones of causes of the makespan; those of the others are bad
    "task": "work", "executor": "work", "edge": "work", "release": "rest", "start": "rest", "calendar": "rest", "not": "rest",
    "submit": "submission", "dispatch": "submission",
}
CAUSES: Mapping[str, tuple[str, str]] = {        # by cause of the makespan, as Chain.causes names it: what it is called, and its tone
    cause: (name, _CAUSE_TONES.get(cause, "bad")) for cause, name in CAUSE_NAMES.items()}
_MOST_CAUSES = 4096       # tasks up to which the chain of causes is found within the time of a view


def tone_of(kind: str) -> tuple[str, str]:
    """Return how a kind of step in a chain of causes is called, and its tone."""
    return _TONES.get(kind, (f"window of {kind} full", "bad"))


def verdict(stats: Stats) -> str:
    """Return one sentence: how far the run is above its bound, what bounds it, and the change that helps most, if advice was asked for."""
    if not stats.task_count:
        return "No task ran."
    used = f"{stats.cores_used} of {stats.n_cores} cores used. " if stats.n_cores and stats.cores_used < stats.n_cores else ""
    above = f"{stats.gap:.0%} above the lower bound" if stats.gap >= 0.005 else "at the lower bound"
    why = f"; dominated by {stats.dominated_by}" if stats.task_count <= _MOST_CAUSES or stats.chain is None else ""
    return " ".join(filter(None, (f"{used}{stats.total_cycles:,} cycles, {above}{why}.", stats.advice)))


def causes_bar(causes: Mapping[str, int], bound: int) -> BarPart:
    """Return the makespan by cause, as one bar. `causes`: cycles by cause, as `Chain.causes`; `bound`: the lower bound in cycles."""
    segments = tuple(Segment(label=CAUSES[cause][0], amount=cycles, tone=CAUSES[cause][1])  # type: ignore[arg-type]
                     for cause, cycles in causes.items())
    return BarPart(title="The makespan by cause", unit="cycles", segments=segments, bound=bound)


def stats_parts(stats: Stats) -> tuple[Any, ...]:
    """Return the parts of a run's figures: the makespan as a chain of causes, executors, stalls."""
    made_of = f"critical path {stats.critical_path:,}, work {stats.work:,}"
    values = (("tasks", f"{stats.task_count:,}", ""), ("cycles", f"{stats.total_cycles:,}", ""),
              ("lower bound", f"{stats.lower_bound:,}", made_of), ("run", f"{stats.execute_time_ms:.1f} ms", ""),
              ("compile", f"{stats.compile_time_ms:.1f} ms", ""))
    parts: list[Any] = [ValuesPart(values=tuple(LabelledValue(label=label, value=value, note=note) for label, value, note in values))]
    if stats.task_count <= _MOST_CAUSES and (causes := stats.causes()):
        parts.append(causes_bar(causes, stats.lower_bound))
    total = max(1, stats.total_cycles)
    ran = [(number, one) for number, one in enumerate(stats.executors) if one.tasks or (len(stats.executors) <= _ROWS and not one.name)]

    def cells(one: ExecutorStats) -> tuple[str, ...]:
        return tuple(f"{cycles:,} ({cycles / total:.0%})" for cycles in (one.busy, one.waiting, one.late, one.idle))

    rows = tuple((one.name or str(number), str(one.pool), *cells(one), f"{one.tasks:,}") for number, one in ran[:_ROWS])
    parts.append(TablePart(title="Executors", head=("executor", "pool", "busy", "waiting", "late", "idle", "tasks"), rows=rows,
                           right=(0, 1, 2, 3, 4, 5, 6)[any(one.name for _, one in ran):], more=len(stats.executors) - len(rows)))
    kernels = stats.kernels
    if kernels:
        head = ("kernel", "tasks", "cycles", "waiting", *(("wall ns",) if kernels.is_measured else ()))
        cells_of = [(row.kernel, f"{row.tasks:,}", f"{row.cycles:,}", f"{row.waiting:,}",
                     *([] if row.wall_ns is None else [f"{row.wall_ns:,}"])) for row in kernels[:_ROWS]]
        parts.append(TablePart(title="Kernels", head=head, rows=tuple(cells_of), right=(1, 2, 3, 4)[:len(head) - 1],
                               more=len(kernels) - len(cells_of)))
    used = [one for one in stats.resources if one.size or one.stalls]
    if used:
        parts.append(TablePart(title="Bounded resources", head=("stall", "size", "most used", "stalls", "cycles"), right=(1, 2, 3, 4),
                               rows=tuple((one.name, one.size, one.high_water, f"{one.stalls:,}", f"{one.cycles:,}") for one in used)))
    return tuple(parts)


def sent_table(sent: np.ndarray[Any, Any]) -> TablePart:
    """Return the bytes that copies moved between ranks: a row a source, a column a target; of many ranks, how many each sent and got."""
    n, between = len(sent), sent - np.diag(np.diag(sent))
    out, into = between.sum(axis=1), between.sum(axis=0)
    names, title = [f"rank {rank}" for rank in range(n)], f"Bytes between ranks: {int(out.sum()):,}"
    if n > _MOST_RANKS:
        to = np.count_nonzero(between, axis=1)
        rows = [(names[rank], f"{out[rank]:,}", f"{into[rank]:,}", str(to[rank])) for rank in range(min(n, _ROWS))]
        return TablePart(title=title, head=("rank", "sent", "received", "to ranks"), rows=tuple(rows), right=(1, 2, 3), more=n - len(rows))
    table = np.vstack((np.column_stack((between, out)), (*into, 0))).tolist()
    cells = [(name, *(f"{count:,}" if count else "·" for count in row)) for name, row in zip((*names, "received"), table, strict=True)]
    return TablePart(title=title, head=("from, to", *names, "sent"), rows=tuple(cells), right=tuple(range(1, n + 2)))


def stats_card(stats: Stats) -> Card:
    """Return the card of a run's figures."""
    return Card(title="Stats", subtitle="simulated cycles of the last run", sentence=verdict(stats), parts=stats_parts(stats),
                foot="stats.columns() gives the executors as arrays, stats.kernels.columns() the kernels")
