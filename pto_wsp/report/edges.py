"""The edges between the tasks of a record, as columns: joins and marks are resolved to the tasks that they stand for.

Nothing is resolved before somebody asks for it, and then only of the tasks that are asked about: a join of a thousand tasks that a
thousand others wait for stands for a million edges.

>>> Edges(columns).into([3])
EdgeTable(source=array([1, 2]), target=array([3, 3]), bits=array([1, 9]), arg=array([65536, -1]))
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any, TypeAlias, overload

import numpy as np

from pto_wsp.report.marked_edges import MarkedEdges
from pto_wsp.runtime.record.columns import RecordColumns
from pto_wsp.runtime.record.marks import EdgeReason, NodeKind
from pto_wsp.values import dataclass

Array: TypeAlias = np.ndarray[Any, Any]

_ROWS_AT_A_TIME = 1 << 20

# by the bits of PTO_EDGE_
_WORDS = {reason: reason.name if reason in EdgeReason.RAW | EdgeReason.WAR | EdgeReason.WAW else str(reason.name).lower()
          for reason in EdgeReason}
_WORDS[EdgeReason.LANE] = "stream"
DATA_REASONS = frozenset({"RAW", "WAR", "WAW"})


@dataclass(frozen=True, slots=True)
class Edge:
    """Task `target` waits for task `source`; `bits` says why, `reasons` in words.

    `arg`: of an edge from regions, the argument of the source in the upper 16 bits, that of the target in the lower; else -1.
    """

    source: int
    target: int
    bits: int
    arg: int = field(default=-1, compare=False)

    @property
    def reasons(self) -> tuple[str, ...]:
        """RAW, WAR, WAW: regions overlap; order: the workload's structure; after: an after=.

        channel, event: a token or a recorded event; read: control flow that reads what the source writes; stream: a stream of the schedule.
        """
        return tuple(str(word) for bit, word in _WORDS.items() if self.bits & bit)


@dataclass(frozen=True, slots=True, eq=False)
class EdgeTable:
    """Edges as columns, by target and then by source."""

    source: Array
    target: Array
    bits: Array
    arg: Array

    def __iter__(self) -> Iterator[Edge]:
        for row in zip(self.source.tolist(), self.target.tolist(), self.bits.tolist(), self.arg.tolist(), strict=True):
            yield Edge(*row)

    def __len__(self) -> int:
        return len(self.source)


class Edges(Sequence[Edge]):
    """All edges between the tasks of a record, in the order of their targets, each made when it is asked for."""

    def __init__(self, columns: RecordColumns) -> None:
        self._columns = columns
        self._marked = MarkedEdges(columns) if len(columns.mark_node) else None

    def into(self, tasks: Sequence[int] | Array) -> EdgeTable:
        """Return the edges into some tasks, which are ascending."""
        if self._marked is None:
            return self._from_columns(np.asarray(tasks, np.int64))
        rows = [(source, int(task), bits) for task in tasks for source, bits in self._marked.into(int(task)).items()]
        source, target, bits = np.array(rows, np.int64).reshape(-1, 3).T
        return EdgeTable(source, target, bits, self._direct_args(source, target))

    def out_of(self, task: int) -> EdgeTable:
        """Return the edges out of a task."""
        targets = self._targets(int(self._columns.task_node[task]) - self._columns.first_node)
        tables = [self.into(targets[k:k + 256]) for k in range(0, len(targets), 256)]
        chosen = [table.source == task for table in tables]
        return EdgeTable(*(np.concatenate([getattr(table, name)[mine] for table, mine in zip(tables, chosen, strict=True)] or
                                          [np.zeros(0, np.int64)]) for name in ("source", "target", "bits", "arg")))

    def tables(self) -> Iterator[EdgeTable]:
        """Yield all edges, a bounded number at a time."""
        ends = np.cumsum(self._weights)
        first = 0
        while first < len(ends):
            done = int(ends[first - 1]) if first else 0
            last = max(first + 1, int(np.searchsorted(ends, done + _ROWS_AT_A_TIME, side="right")))
            yield self.into(np.arange(first, last))
            first = last

    @property
    def at_most(self) -> int:
        """A bound on how many there are, which needs no resolving."""
        return int(self._weights.sum())

    def __len__(self) -> int:
        return int(self._counts[-1])

    def __iter__(self) -> Iterator[Edge]:
        for table in self.tables():
            yield from table

    @overload
    def __getitem__(self, at: int) -> Edge: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[Edge, ...]: ...

    def __getitem__(self, at: int | slice) -> Edge | tuple[Edge, ...]:
        if isinstance(at, slice):
            return tuple(self[k] for k in range(*at.indices(len(self))))
        if not -len(self) <= at < len(self):
            raise IndexError(at)
        at %= len(self)
        task = int(np.searchsorted(self._counts, at, side="right"))
        before = int(self._counts[task - 1]) if task else 0
        return list(self.into([task]))[at - before]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Edges | tuple | list) and len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Edges({len(self)})" if len(self) > 8 else repr(tuple(self))

    # ---- columns ----

    @cached_property
    def _counts(self) -> Array:
        """How many edges there are into the first task, the first two, and so on."""
        counts = np.zeros(max(1, self._columns.n_tasks), np.int64)
        for table in self.tables():
            np.add.at(counts, table.target, 1)
        return np.cumsum(counts)

    @cached_property
    def _weights(self) -> Array:
        """By task, as how many edges its predecessors count at most."""
        columns = self._columns
        size = np.ones(len(columns.node_kind), np.int64)
        sources = columns.edge_src - columns.first_node
        for node in np.flatnonzero(columns.node_kind).tolist():
            mine = sources[columns.pred_begin[node]:columns.pred_begin[node + 1]]
            size[node] = min(int(size[mine[mine >= 0]].sum()), columns.n_tasks)
        ends = np.concatenate(([0], np.cumsum(np.where(sources < 0, 0, size[np.maximum(sources, 0)]))))
        nodes = columns.task_node - columns.first_node
        found: Array = ends[columns.pred_begin[nodes + 1]] - ends[columns.pred_begin[nodes]] if len(nodes) else np.zeros(0, np.int64)
        return found

    def _from_columns(self, tasks: Array) -> EdgeTable:
        columns = self._columns
        target = tasks
        nodes = columns.task_node[tasks] - columns.first_node
        at, row = _predecessors(columns, nodes)
        target, source, bits, arg = target[row], columns.edge_src[at] - columns.first_node, columns.edge_why[at], columns.edge_arg[at]
        found = []
        while True:
            known = source >= 0
            is_join = known & (columns.node_kind[np.maximum(source, 0)] == NodeKind.JOIN)
            plain = known & ~is_join
            found.append((target[plain], columns.node_task[source[plain]], bits[plain], arg[plain]))
            if not is_join.any():
                break
            # of what is joined twice one is enough: joins of joins would double at each step
            target, joins, bits, _ = _merged(target[is_join], source[is_join], bits[is_join], np.full(is_join.sum(), -1))
            at, row = _predecessors(columns, joins)
            target, source, bits, arg = target[row], columns.edge_src[at] - columns.first_node, bits[row], np.full(len(at), -1)
        target, source, bits, arg = _merged(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
        return EdgeTable(source, target, bits, arg)

    def _direct_args(self, source: Array, target: Array) -> Array:
        """Return the arguments of edges that no join or mark stands between."""
        columns = self._columns
        found = np.full(len(source), -1, np.int64)
        nodes = columns.task_node[target]
        for k, (node, wanted) in enumerate(zip((nodes - columns.first_node).tolist(), columns.task_node[source].tolist(), strict=True)):
            begin, end = int(columns.pred_begin[node]), int(columns.pred_begin[node + 1])
            at = begin + int(np.searchsorted(columns.edge_src[begin:end], wanted))
            if at < end and columns.edge_src[at] == wanted:
                found[k] = columns.edge_arg[at]
        return found

    def _targets(self, node: int) -> Array:
        """Return the tasks that a node reaches with nothing but joins and marks on the way, ascending."""
        begin, targets = self._successors
        found: list[int] = []
        seen, left = {node}, [node]
        while left:
            at = left.pop()
            for after in targets[begin[at]:begin[at + 1]].tolist():
                if after not in seen:
                    seen.add(after)
                    (left if self._columns.node_kind[after] else found).append(after)
        return np.sort(self._columns.node_task[np.array(found, np.int64)])

    @cached_property
    def _successors(self) -> tuple[Array, Array]:
        columns = self._columns
        n_nodes = len(columns.node_kind)
        target = np.repeat(np.arange(n_nodes), np.diff(columns.pred_begin))
        source = columns.edge_src - columns.first_node
        target, source = target[source >= 0], source[source >= 0]
        order = np.argsort(source, kind="stable")
        return np.concatenate(([0], np.cumsum(np.bincount(source, minlength=n_nodes)))), target[order]


def _predecessors(columns: RecordColumns, nodes: Array) -> tuple[Array, Array]:
    """Return where the edges into some nodes stand, and for each of them which of the nodes it goes to."""
    begin = columns.pred_begin[nodes] if len(nodes) else np.zeros(0, np.int64)
    count = columns.pred_begin[nodes + 1] - begin if len(nodes) else begin
    row = np.repeat(np.arange(len(nodes)), count)
    return begin[row] + np.arange(len(row)) - (np.cumsum(count) - count)[row], row


def _merged(target: Array, source: Array, bits: Array, arg: Array) -> tuple[Array, Array, Array, Array]:
    """Return edges by target and source; of those between the same two one, with the reasons of all."""
    order = np.lexsort((source, target))
    target, source, bits, arg = target[order], source[order], bits[order], arg[order]
    if not len(order):
        return target, source, bits, arg
    first = np.flatnonzero(np.concatenate(([True], (target[1:] != target[:-1]) | (source[1:] != source[:-1]))))
    return target[first], source[first], np.bitwise_or.reduceat(bits, first), np.maximum.reduceat(arg, first)
