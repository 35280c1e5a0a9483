"""Fold a task graph at its calls: a node a call of the workload, an edge the reasons for which its tasks wait for those of another.

Up to 2^18 edges are counted one by one, with joins resolved as in `RunGraph.edges`. Of larger graphs the edges of the record are counted,
where a join of many tasks with many others counts once for each task before it and each after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pto_wsp.run.failures import RecordNames
from pto_wsp.run.record import NodeKind, RecordColumns
from pto_wsp.source import Span
from pto_wsp.timing.edges import Edge, Edges
from pto_wsp.values import dataclass

Array = np.ndarray[Any, Any]

MOST_COUNTED = 1 << 18
_MOST_BINS = 1 << 20
_MOST_MASKED = 62      # calls that fit the bits of a number


@dataclass(frozen=True, slots=True)
class FoldedCall:
    """A call of the workload: its kernel, a name of its own, its line, and the number of its tasks. A barrier has no kernel and line."""

    kernel: str
    name: str
    line: str
    tasks: int


@dataclass(frozen=True, slots=True)
class FoldedEdge:
    """Tasks of `target` wait for tasks of `source`, `count` times; both are places in `calls`. `reasons`: as in `Edge.reasons`."""

    source: int
    target: int
    reasons: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True, repr=False)
class FoldedGraph:
    """The calls in program order, the barriers behind them as one, and the edges, most frequent first.

    `is_counted`: every edge between two tasks counts; False: those of the record.
    """

    calls: tuple[FoldedCall, ...]
    edges: tuple[FoldedEdge, ...]
    is_counted: bool = True

    def __repr__(self) -> str:
        return f"FoldedGraph({len(self.calls)} calls, {len(self.edges)} edges)"


def fold(names: RecordNames, columns: RecordColumns, edges: Edges) -> FoldedGraph:
    """Return the graph folded at its calls."""
    by_site = np.bincount(columns.task_site, minlength=1)
    sites = np.flatnonzero(by_site)
    place = np.zeros(len(by_site), np.int64)
    place[sites] = np.arange(len(sites))
    call_of_task, counts = place[columns.task_site], by_site[sites].tolist()
    calls = list(_calls([names.sites[site].span for site in sites.tolist()], [names.kernel_of(site) for site in sites.tolist()], counts))
    is_counted = edges.at_most <= MOST_COUNTED
    source, target, bits = _edges(edges, call_of_task, len(calls)) if is_counted else _recorded(columns, call_of_task, len(calls))
    if len(source) and max(source.max(), target.max()) == len(calls):
        calls.append(FoldedCall("", "barrier", "", edges.n_barriers))
    n = len(calls) + 1
    keys, total = _counted((bits.astype(np.int64) * n + source) * n + target)
    order = np.argsort(-total, kind="stable")
    found = tuple(FoldedEdge(int(key // n % n), int(key % n), Edge(0, 0, int(key // n // n)).reasons, int(count))
                  for key, count in zip(keys[order].tolist(), total[order].tolist(), strict=True))
    return FoldedGraph(tuple(calls), found, is_counted)


def _calls(spans: list[Span], kernels: list[str], counts: list[int]) -> Iterator[FoldedCall]:
    """Yield the calls; of several of one kernel each has its line in its name."""
    for span, kernel, count in zip(spans, kernels, counts, strict=True):
        line = span.short
        yield FoldedCall(kernel, kernel if kernels.count(kernel) == 1 else f"{kernel}:{line.rpartition(':')[2]}", line, count)


def _counted(keys: Array) -> tuple[Array, Array]:
    """Return the numbers that there are, ascending, and how often each is there."""
    if len(keys) and keys.max() > _MOST_BINS:
        found = np.unique(keys, return_counts=True)
        return found[0], found[1]
    counts = np.bincount(keys)
    there = np.flatnonzero(counts)
    return there, counts[there]


def _edges(edges: Edges, call: Array, barrier: int) -> tuple[Array, Array, Array]:
    """Return the calls at both ends of every edge and its reasons; barriers are one call."""
    tables = tuple(edges.tables())
    none = np.zeros(0, np.int64)
    source, target, bits = (np.concatenate([none, *(getattr(table, name) for table in tables)]) for name in ("source", "target", "bits"))
    places = [np.where(end < 0, barrier, call[np.maximum(end, 0)]) if len(call) else end for end in (source, target)]
    return places[0], places[1], bits


def _recorded(columns: RecordColumns, call: Array, n: int) -> tuple[Array, Array, Array]:
    """Return the ends of the record's edges, with a join in the place of each call whose tasks are before it."""
    n_nodes = len(columns.node_kind)
    group = np.full(n_nodes, -1, np.int64)
    group[columns.task_node - columns.first_node] = call
    target = np.repeat(np.arange(n_nodes), np.diff(columns.pred_begin))
    source = columns.edge_src - columns.first_node
    known = source >= 0
    bits = columns.edge_why
    if not known.all():
        source, target, bits = source[known], target[known], bits[known]
    is_plain = (group[source] >= 0) & (group[target] >= 0)
    parts = [(group[source[is_plain]], group[target[is_plain]], bits[is_plain])]
    behind = (group[target] >= 0) & ~is_plain       # tasks that wait for a join or a mark
    if behind.any() and n <= _MOST_MASKED:
        masks = _calls_before(columns, group)[source[behind]]
        for place in range(n):
            has = (masks >> np.uint64(place)) & np.uint64(1) == 1
            parts.append((np.full(int(has.sum()), place, np.int64), group[target[behind][has]], bits[behind][has]))
    elif behind.any():
        parts.append((np.full(int(behind.sum()), n, np.int64), group[target[behind]], bits[behind]))
    found = [np.concatenate(part) for part in zip(*parts, strict=True)]
    return found[0], found[1], found[2]


def _calls_before(columns: RecordColumns, group: Array) -> Array:
    """Return for each join and mark the calls whose tasks it waits for, as bits; joins come after what they wait for."""
    masks = np.where(group >= 0, np.uint64(1) << np.maximum(group, 0).astype(np.uint64), np.uint64(0))
    for node in np.flatnonzero(columns.node_kind != NodeKind.TASK).tolist():
        mine = columns.edge_src[columns.pred_begin[node]:columns.pred_begin[node + 1]] - columns.first_node
        masks[node] = np.bitwise_or.reduce(masks[mine[mine >= 0]], initial=np.uint64(0))
    return masks
