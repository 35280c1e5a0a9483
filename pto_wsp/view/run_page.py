"""The data of a page that answers to clicks: the tasks of one run as compressed columns, which `templates/view/page/` decodes and draws.

A column is whole numbers: the first value and differences, or the values above the least one, whichever is narrower, then little-endian
bytes, all low bytes first, deflate, base64. Nothing here loops over tasks: columns are made by NumPy.

>>> encoded(np.array([7, 7, 7]))
{'n': 3, 'base': 7}
"""

from __future__ import annotations

import base64
import json
import linecache
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pto_wsp.ir.plan import Submit, TaskPlan
from pto_wsp.ir.plan_walk import submits
from pto_wsp.ir.view import print_view
from pto_wsp.passes.kernel.context import unit_of
from pto_wsp.run.bound import Bindings
from pto_wsp.run.failures import RecordNames, index_name
from pto_wsp.run.simulator import LastWait, RegionColumns
from pto_wsp.source import Span
from pto_wsp.timing.edges import Edge
from pto_wsp.timing.graph import RunGraph
from pto_wsp.timing.stats import Stats, channel_levels
from pto_wsp.timing.timed_run import TimedRun
from pto_wsp.timing.trace import Trace
from pto_wsp.view.colours import legend_of
from pto_wsp.view.run_cards import CAUSES
from pto_wsp.view.timeline import used_executors
from pto_wsp.wording import shortened

Column = np.ndarray[Any, Any]
Json = dict[str, Any]

_LEVEL = 1                     # of deflate: higher ones take several times as long for a tenth of the size
_MOST_EDGES = 6                # edges a task on the page, beside _FREE_EDGES
_FREE_EDGES = 1 << 17
_MOST_MARKED = 1 << 13         # tasks of a pipeline up to which its edges are resolved: one by one, in Python
_BYTES_A_TASK, _FREE_BYTES = 36, 4_000_000     # of all columns, as text
_MOST_IR_LINES, _MOST_SOURCE_LINES, _MOST_LINE = 400, 400, 240
_MOST_CHAINED = 4096           # tasks up to which the exact chain of causes is found in time
_LONGEST_NAME = 400


# -- columns -----------------------------------------------------------------------------------------------------------
def encoded(values: Column) -> Json:
    """Return a column of whole numbers as JSON: `n`, `base`, and unless all are equal `type`, `delta` and `data`."""
    given = np.asarray(values).astype(np.int64)
    if not len(given) or (given == given[0]).all():
        return {"n": len(given), "base": int(given[0]) if len(given) else 0}
    change = np.diff(given)
    change = np.append(change[:1], change)        # of the first there is none: `delta` stands for it
    plain, steps = int(np.ptp(given)), int(np.ptp(change))
    is_delta = steps < plain
    chosen, span = (change, steps) if is_delta else (given, plain)
    if span >= 1 << 32:       # rare: times of days
        return {"n": len(given), "base": 0, "type": "f8", "data": _text_of(given.astype("<f8"), 1)}
    low = int(chosen.min())
    width = 1 if span < 1 << 8 else 2 if span < 1 << 16 else 4
    column: Json = {"n": len(given), "base": low, "type": f"u{width}", "data": _text_of((chosen - low).astype(f"<u{width}"), width)}
    return column | ({"delta": int(given[0])} if is_delta else {})


def _text_of(values: Column, width: int) -> str:
    """Return bytes, those of lowest value of all numbers first, as deflated text."""
    planes = values.view(np.uint8).reshape(len(values), -1).T if width > 1 else values
    return base64.b64encode(zlib.compress(planes.tobytes(), _LEVEL)).decode("ascii")


def _size(column: Json) -> int:
    return len(column.get("data", "")) + 60


# -- the run -----------------------------------------------------------------------------------------------------------
def run_data(timed: TimedRun, trace: Trace, stats: Stats, graph: RunGraph, bindings: Bindings, regions: RegionColumns | None) -> Json:
    """Return all that a page shows of a run, ready for JSON. `regions`: None if the record holds another run by now.

    Edges and regions are left out, with a word why, where the page would be larger than 5 MB and 40 bytes a task.
    """
    plan = timed.plan
    names = RecordNames(plan, timed.columns)
    columns = _task_columns(timed, trace)
    index = {name: encoded(np.nan_to_num(column)) for name, column in names.index_columns().items() if name != "label"}
    left = _FREE_BYTES + _BYTES_A_TASK * len(trace) - sum(map(_size, (*columns.values(), *index.values())))
    edges = _edges(graph, timed, left)
    left -= sum(_size(column) for column in edges.values() if isinstance(column, dict))
    made = dict(_regions(names, timed, bindings, regions)) if regions is not None else {}
    has_room = sum(_size(column) for arg in made.values() for column in arg.values() if isinstance(column, dict)) <= left
    return {
        "title": shortened(plan.name), "unit": trace.unit, "place": trace.place, "n": len(trace), "total": trace.total_cycles,
        "bound": stats.lower_bound, "dispatch": plan.rules.dispatch_cycles, "kernels": _kernels(plan, trace),
        "sites": [_site(plan, task, made if has_room else {}) for task in submits(plan)], "tensors": _tensors(plan, bindings),
        "streams": plan.n_streams, "pools": _pool_names(plan, trace), "names": _rank_names(trace), "hops": _hops(trace),
        "homes": {field: encoded(_homes(trace, field)) for field in ("pool", "aicpu")},
        "windows": [{"size": window.size, "unit": window.unit.name.lower(), "stalls": window.stalls, "cycles": window.stall_cycles,
                     "most": window.high_water} for window in stats.windows],
        "held": [held.name.lower() for held in LastWait], "tones": dict(CAUSES), "columns": columns,
        "index": index, "edges": edges, "chain": _chain(timed), "channels": list(_channels(timed)), "sources": _sources(submits(plan)),
        "regions": regions is not None and has_room,
    }


def json_of(data: Json) -> str:
    """Return data as JSON that may stand in a script element of HTML: no markup, ASCII alone."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _task_columns(timed: TimedRun, trace: Trace) -> dict[str, Json]:
    times, causes = timed.sim.tasks, trace.causes
    submit = trace.ready if causes is None else causes.submit
    numbers = np.arange(len(trace))
    by = np.full(len(trace), -1) if causes is None else causes.task
    made = {"site": timed.columns.task_site, "executor": trace.executor, "submit": submit, "ready": trace.ready - submit,
            "start": trace.start - np.maximum(trace.ready, submit), "run": trace.end - trace.start,
            "retire": np.zeros(len(trace), np.int64) if times is None else times.complete - trace.end,
            "held": np.zeros(len(trace), np.int64) if causes is None or times is None else times.held,
            "cause": np.where(by >= 0, numbers - by, 0)}
    return {name: encoded(column) for name, column in made.items()}


def _homes(trace: Trace, field: str) -> Column:
    return np.array([getattr(trace.home_of(executor), field) for executor in range(trace.n_executors)], np.int64)


def _rank_names(trace: Trace) -> dict[int, str] | None:
    """Return, of a mesh, the names of the executors that have a lane: the cores of ranks, and the links that were used."""
    used = set(used_executors(trace))
    named = {executor: home.name for executor, home in enumerate(trace.homes) if home.name and (executor in used or not home.is_link)}
    return named or None


def _hops(trace: Trace) -> dict[str, Json] | None:
    """Return when copies that take several links were on each."""
    if trace.hops is None or not len(trace.hops):
        return None
    return {name: encoded(getattr(trace.hops, name)) for name in ("task", "executor", "start", "end")}


def _pool_names(plan: TaskPlan, trace: Trace) -> list[str]:
    """Return the names of the pools: cube and vector cores where the schedule parts them so, else numbers; all links are one."""
    n = int(_homes(trace, "pool").max(initial=0)) + 1 - len(plan.rules.links)
    links = ["link"] * bool(plan.rules.links)
    if n == 1:
        return ["rank" if links else "executor", *links]
    units: dict[int, set[str]] = {}
    for task in submits(plan):
        pool = getattr(task.pool, "value", None)
        if isinstance(pool, int):
            units.setdefault(pool, set()).add(unit_of(plan.kernels[task.kernel].kernel).name)
    words = {"CUBE": "AIC", "VECTOR": "AIV"}
    if n == 2 and all(units.get(k, {name}) == {name} for k, name in enumerate(words)):
        return [*words.values(), *links]
    return [words.get(next(iter(units[k])), f"pool {k}") if len(units.get(k, ())) == 1 else f"pool {k}" for k in range(n)] + links


def _kernels(plan: TaskPlan, trace: Trace) -> list[Json]:
    entries = legend_of(trace.kernels)
    found = []
    for entry, use in zip(entries, plan.kernels, strict=True):
        lines = str(use.kernel).splitlines()
        more = [f"… {len(lines) - _MOST_IR_LINES} more lines"] if len(lines) > _MOST_IR_LINES else []
        text = "\n".join([shortened(line, _MOST_LINE) for line in lines[:_MOST_IR_LINES]] + more)
        found.append({"name": shortened(entry.name, _LONGEST_NAME), "letter": entry.letter, "slot": entry.slot, "ir": text})
    return found


def _site(plan: TaskPlan, task: Submit, regions: Mapping[tuple[int, int], Json]) -> Json:
    params = plan.kernels[task.kernel].kernel.memory_params
    args = [{"param": shortened(param.name), "role": param.role.value.lower(), "tensor": place.slot,
             "view": shortened(print_view(place.view), _MOST_LINE)} | regions.get((task.site, k), {})
            for k, (param, place) in enumerate(zip(params, task.places, strict=True))]
    index = [[label if not label.lstrip("-").isdigit() else "", index_name(place, label)] for place, label in enumerate(task.labels)]
    return {"kernel": task.kernel, "file": task.span.file, "line": task.span.line, "at": task.span.short, "index": index,
            "label": shortened(task.label), "args": args}


def _tensors(plan: TaskPlan, bindings: Bindings) -> list[Json]:
    found = []
    for slot, array in zip(plan.tensors, bindings.arrays, strict=True):
        one: Json = {"name": shortened(slot.ref.shown), "fresh": slot.fresh, "dtype": str(slot.ref.dtype)}
        if not slot.fresh:
            one |= {"shape": list(array.shape), "strides": [stride // array.itemsize for stride in array.strides]}
        found.append(one)
    return found


def _edges(graph: RunGraph, timed: TimedRun, room: int) -> Json:
    """Return the edges: how many lead into each task and barrier, their sources as distances, and their reasons."""
    n, most = len(graph.tasks), graph.edges.at_most if len(timed.columns.mark_node) == 0 or len(graph.tasks) <= _MOST_MARKED else -1
    if most < 0 or most > _FREE_EDGES + _MOST_EDGES * n:
        return {"why": "too many edges for a page: program.graph.edges_into(task) has those of a task"}
    tables = list(graph.edges.tables())
    source, target, bits = (np.concatenate([np.zeros(0, np.int64), *(getattr(table, name) for table in tables)]).astype(np.int64)
                            for name in ("source", "target", "bits"))
    barriers = graph.edges.n_barriers
    source, target = (np.where(ends < 0, n - 1 - ends, ends) for ends in (source, target))    # barriers behind the tasks
    order = np.argsort(target, kind="stable")
    kinds, reason = np.unique(bits[order], return_inverse=True)
    made: Json = {"barriers": barriers, "reasons": [", ".join(Edge(0, 0, int(kind)).reasons) for kind in kinds],
                  "count": encoded(np.bincount(target, minlength=n + barriers)), "source": encoded(target[order] - source[order]),
                  "reason": encoded(reason)}
    if sum(_size(column) for column in made.values() if isinstance(column, dict)) > room:
        return {"why": "the edges are too many for a page: program.graph.edges_into(task) has those of a task"}
    return made


def _regions(names: RecordNames, timed: TimedRun, bindings: Bindings,
             regions: RegionColumns) -> Iterator[tuple[tuple[int, int], Json]]:
    """Yield the regions of each call's arguments in tensors that it is given: offset in elements, valid rows and columns, strides."""
    for task, at, _ in names.by_site():
        for k, place in enumerate(task.places):
            if timed.plan.tensors[place.slot].fresh:
                continue
            array = bindings.arrays[place.slot]
            row = regions.begin[at] + k
            offset = (regions.address[row] - array.__array_interface__["data"][0]) // max(1, array.itemsize)
            extent, stride = regions.extent[row], regions.stride[row]
            is_empty = (extent <= 0).any(axis=1)
            yield (task.site, k), {"offset": encoded(np.where(is_empty, 0, offset)), "rows": encoded(extent[:, 0]),
                                   "cols": encoded(extent[:, 1]), "down": encoded(stride[:, 0]), "across": encoded(stride[:, 1])}


def _chain(timed: TimedRun) -> Json | None:
    """Return the chain of causes, begin, end, task and cause of each step, and its cycles; None where the page follows causes itself."""
    if timed.columns.first_node > 0 or not 0 < timed.sim.n_tasks <= _MOST_CHAINED:
        return None
    chain = timed.explainer.last_chain()
    steps = [[step.begin, step.end, -1 if step.task is None else step.task, step.cause] for step in chain]
    return {"steps": steps, "causes": dict(chain.causes)}


def _channels(timed: TimedRun) -> Iterator[Json]:
    for declared, (times, levels) in zip(timed.plan.channels, channel_levels(timed.plan, timed.columns, timed.sim), strict=False):
        yield {"name": shortened(declared.name), "depth": declared.depth, "times": encoded(times), "levels": encoded(levels)}


# -- source ------------------------------------------------------------------------------------------------------------
def _sources(sites: Sequence[Submit]) -> list[Json]:
    """Return the lines around the calls of each file, as far as they can be read."""
    by_file: dict[str, set[int]] = {}
    spans: dict[str, Span] = {}
    for site in sites:
        if site.span.line > 0:
            by_file.setdefault(site.span.file, set()).add(site.span.line)
            spans.setdefault(site.span.file, site.span)
    found = []
    for file, numbers in by_file.items():
        text = linecache.getlines(file) if spans[file].column else []
        shown = sorted(line for line in _shown_lines(text, numbers) if line <= len(text) or line in numbers)[:_MOST_SOURCE_LINES]
        found.append({"file": file, "name": shortened(spans[file].short.rpartition(":")[0]),
                      "lines": [[line, shortened(text[line - 1].rstrip(), _MOST_LINE) if line <= len(text) else ""] for line in shown]})
    return found


def _shown_lines(text: Sequence[str], numbers: set[int]) -> set[int]:
    """Return the lines of the calls and those above that open the loops, branches and functions around them."""
    shown: set[int] = set()
    for number in numbers:
        shown.add(number)
        depth = _depth(text[number - 1]) if number <= len(text) else 0
        for line in range(min(number, len(text)) - 1, 0, -1):
            if depth == 0 or (line in shown and line not in numbers):
                break
            code = text[line - 1]
            if code.strip() and _depth(code) < depth:
                depth = _depth(code)
                shown.add(line)
            elif code.strip() and line + 1 in shown and number - line <= 3:      # what a call is given stands right above it
                shown.add(line)
    return shown


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
