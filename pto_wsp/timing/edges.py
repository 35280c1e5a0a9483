"""List the edges between the tasks of a record, as columns: joins and marks are resolved to the tasks they stand for.

A join of a thousand tasks with a thousand successors stands for a million edges. Where all edges are listed or counted, such a join stays
as a barrier: an edge from each predecessor to the barrier and one from the barrier to each successor. The edges of one task are always
resolved.

>>> Edges(columns).into([3])
EdgeTable(source=array([1, 2]), target=array([3, 3]), bits=array([1, 9]), arg=array([65536, -1]))
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any, TypeAlias, overload

import numpy as np

from pto_wsp.errors import TaskNameError
from pto_wsp.run.failures import RecordNames
from pto_wsp.run.record import EdgeReason, NodeKind, RecordColumns
from pto_wsp.source import here
from pto_wsp.timing.marked_edges import MarkedEdges
from pto_wsp.values import dataclass

# -- naming a task -----------------------------------------------------------------------------------------------------
TaskLike: TypeAlias = "int | str | tuple[str, Sequence[int] | int]"

_MOST_NAMES = 4


def find_task(names: RecordNames, wanted: TaskLike) -> int:
    """Return the number of a task: 3, -1 (the last), "attn[b=1, t=0]", ("attn", (1, 0)), or "attn" if that kernel has a single task.

    A label names a task, too, if no other one has it.

    Raises: R112 for what names no task, or more than one.
    """
    match wanted:
        case bool():
            pass
        case int() | np.integer():
            if -len(names) <= wanted < len(names):
                return int(wanted) % len(names)
            raise TaskNameError(f"there is no task {int(wanted)}", here(), expected=f"0 .. {len(names) - 1}, or from the end -1 .. "
                                f"{-len(names)}" if len(names) else "a run with tasks")
        case str():
            kernel = wanted.partition("[")[0].partition(" ")[0]
            named = [task for task in names.of_kernel(kernel) if wanted in (kernel, names[task], names.plain(task))]
            return _only(names, wanted, named or names.of_label(wanted))
        case (str(kernel), int() | np.integer() | tuple() | list() as given):
            numbers = given if isinstance(given, tuple | list) else (given,)
            if all(isinstance(value, int | np.integer) and not isinstance(value, bool) for value in numbers):
                index = tuple(int(value) for value in numbers)
                return _only(names, wanted, [task for task in names.of_kernel(kernel) if names.index_of(task) == index])
    raise TaskNameError("this names no task", here(), expected="its number, its name, or (kernel, indices)", found=repr(wanted))


def _only(names: RecordNames, wanted: object, found: Sequence[int]) -> int:
    if len(found) == 1:
        return found[0]
    if not found:
        some = ", ".join(names[task] for task in range(min(len(names), _MOST_NAMES)))
        more = ", …" * (len(names) > _MOST_NAMES)
        raise TaskNameError(f"there is no task {wanted!r}", here(), expected=f"a task of the run: {some}{more}" if some else
                            "a run with tasks")
    raise TaskNameError(f"{len(found)} tasks are {wanted!r}", here(), expected="the number of one: " +
                        ", ".join(map(str, found[:_MOST_NAMES])) + ", …" * (len(found) > _MOST_NAMES))


# -- edges -------------------------------------------------------------------------------------------------------------
Array: TypeAlias = np.ndarray[Any, Any]

_ROWS_AT_A_TIME = 1 << 20
MOST_RESOLVED = 1024       # edges that a join may stand for in a full listing

# names of the PTO_EDGE_ bits
_WORDS = {reason: reason.name if reason in EdgeReason.RAW | EdgeReason.WAR | EdgeReason.WAW else str(reason.name).lower()
          for reason in EdgeReason}
_WORDS[EdgeReason.LANE] = "stream"
DATA_REASONS = frozenset({"RAW", "WAR", "WAW"})


@dataclass(frozen=True, slots=True, repr=False)
class Edge:
    """Task `target` waits for task `source`; `bits` has the reasons, `reasons` their names.

    A negative number is a barrier: -1 is the first of the graph's `barriers`, -2 the second, and so on.
    `arg`: for an edge between regions, the source's argument in the upper 16 bits and the target's in the lower; otherwise -1.
    """

    source: int
    target: int
    bits: int
    arg: int = field(default=-1, compare=False)

    @property
    def reasons(self) -> tuple[str, ...]:
        """RAW, WAR, WAW: regions overlap; order: the workload's structure; after: an after=.

        channel, event: a token or a recorded event; read: control flow reads what the source writes; stream: a stream of the schedule.
        """
        return tuple(str(word) for bit, word in _WORDS.items() if self.bits & bit)

    def __repr__(self) -> str:
        return f"Edge({self.source} → {self.target}: {', '.join(self.reasons)})"


@dataclass(frozen=True, slots=True, eq=False)
class TaskJoin:
    """A join with many predecessors and successors: it completes when all in `before` have, and all in `after` wait for it.

    `number`: its negative number in edges. Both arrays have task numbers, and negative numbers of other barriers.
    """

    number: int
    before: Array
    after: Array

    def __str__(self) -> str:
        return f"barrier {-self.number}: {len(self.before)} before, {len(self.after)} after"


@dataclass(frozen=True, slots=True, eq=False)
class EdgeTable:
    """Edges as columns, sorted by target, then by source."""

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
    """All edges between the tasks and barriers of a record, sorted by target; computed on demand."""

    def __init__(self, columns: RecordColumns) -> None:
        self.columns = self._columns = columns
        self._marked = MarkedEdges(columns, MOST_RESOLVED) if len(columns.mark_node) else None

    def into(self, tasks: Sequence[int] | Array) -> EdgeTable:
        """Return the edges into the given tasks (ascending); sources are tasks, never barriers."""
        if self._marked is None:
            nodes = self._columns.task_node[np.asarray(tasks, np.int64)] - self._columns.first_node
            return self._from_columns(nodes, np.zeros(len(self._columns.node_kind), np.bool_))
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
        """Yield all edges in tables of bounded size."""
        nodes = self._listed
        ends = np.cumsum(self._weights[0][nodes])
        first = 0
        while first < len(ends):
            done = int(ends[first - 1]) if first else 0
            last = max(first + 1, int(np.searchsorted(ends, done + _ROWS_AT_A_TIME, side="right")))
            yield self._listed_into(nodes[first:last])
            first = last

    @property
    def n_barriers(self) -> int:
        """The number of joins that stay as barriers."""
        return int(np.count_nonzero(self._is_barrier))

    @cached_property
    def barriers(self) -> tuple[TaskJoin, ...]:
        """The joins that stay as barriers, in the order of the record."""
        before: list[list[Array]] = [[] for _ in range(self.n_barriers)]
        after: list[list[Array]] = [[] for _ in range(self.n_barriers)]
        for table in self.tables() if before else ():
            for numbers, others, edges in ((table.target, table.source, before), (table.source, table.target, after)):
                mine = np.flatnonzero(numbers < 0)
                mine = mine[np.argsort(-numbers[mine], kind="stable")]
                names, starts = np.unique(-numbers[mine], return_index=True)
                for name, part in zip(names.tolist(), np.split(others[mine], starts[1:]), strict=False):
                    edges[name - 1].append(part)
        none = np.zeros(0, np.int64)
        return tuple(TaskJoin(-1 - k, np.concatenate([none, *before[k]]), np.concatenate([none, *after[k]])) for k in range(len(before)))

    @property
    def at_most(self) -> int:
        """An upper bound on the number of edges, computed without resolving any."""
        return int(self._weights[0][self._listed].sum())

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
        place = int(np.searchsorted(self._counts, at, side="right"))
        before = int(self._counts[place - 1]) if place else 0
        return list(self._listed_into(self._listed[place:place + 1]))[at - before]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Edges | tuple | list) and len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Edges({len(self)})" if len(self) > 8 else repr(tuple(self))

    # -- columns -------------------------------------------------------------------------------------------------------

    @cached_property
    def _counts(self) -> Array:
        """How many edges there are into the first task or barrier, the first two, and so on."""
        place = np.zeros(self._columns.n_tasks + self.n_barriers, np.int64)      # by number, barriers behind the tasks from the last on
        place[self.numbers[self._listed]] = np.arange(len(self._listed))
        counts = np.zeros(max(1, len(place)), np.int64)
        for table in self.tables():
            np.add.at(counts, place[table.target], 1)
        return np.cumsum(counts)

    @cached_property
    def _listed(self) -> Array:
        """The nodes whose edges are listed: tasks and barriers."""
        return np.flatnonzero((self._columns.node_kind == NodeKind.TASK) | self._is_barrier)

    @cached_property
    def numbers(self) -> Array:
        """By node, the number of its task, or what stands for its barrier."""
        return np.where(self._is_barrier, -np.cumsum(self._is_barrier), self._columns.node_task)

    @property
    def _is_barrier(self) -> Array:
        return self._weights[1]

    @cached_property
    def _weights(self) -> tuple[Array, Array]:
        """By node: an upper bound on its resolved predecessors, and whether it stays as a barrier."""
        columns = self._columns
        n_nodes = len(columns.node_kind)
        if self._marked is not None:
            is_barrier = self._marked.is_barrier
            return self._marked.n_into, is_barrier
        is_barrier = np.zeros(n_nodes, np.bool_)
        size = np.ones(n_nodes, np.int64)
        sources = columns.edge_src - columns.first_node
        n_users = np.bincount(sources[sources >= 0], minlength=n_nodes)
        for node in np.flatnonzero(columns.node_kind).tolist():
            mine = sources[columns.pred_begin[node]:columns.pred_begin[node + 1]]
            size[node] = min(int(size[mine[mine >= 0]].sum()), columns.n_tasks)
            if size[node] * n_users[node] > MOST_RESOLVED:
                is_barrier[node], size[node] = True, 1
        ends = np.concatenate(([0], np.cumsum(np.where(sources < 0, 0, size[np.maximum(sources, 0)]))))
        return ends[columns.pred_begin[1:]] - ends[columns.pred_begin[:-1]], is_barrier

    def _listed_into(self, nodes: Array) -> EdgeTable:
        """Return the edges into tasks and barriers, given by their nodes."""
        if self._marked is None:
            return self._from_columns(nodes, self._is_barrier)
        rows = [(source, int(number), bits) for node, number in zip(nodes.tolist(), self.numbers[nodes].tolist(), strict=True)
                for source, bits in self._marked.listed_into(node).items()]
        source, target, bits = np.array(rows, np.int64).reshape(-1, 3).T
        return EdgeTable(source, target, bits, self._direct_args(source, target))

    def _from_columns(self, nodes: Array, keeps: Array) -> EdgeTable:
        """Return the edges into some nodes, with the joins that `keeps` names as barriers and no others."""
        columns = self._columns
        target = nodes
        at, row = _predecessors(columns, nodes)
        target, source, bits, arg = target[row], columns.edge_src[at] - columns.first_node, columns.edge_why[at], columns.edge_arg[at]
        found = []
        while True:
            known = source >= 0
            is_join = known & (columns.node_kind[np.maximum(source, 0)] == NodeKind.JOIN) & ~keeps[np.maximum(source, 0)]
            plain = known & ~is_join
            found.append((target[plain], source[plain], bits[plain], arg[plain]))
            if not is_join.any():
                break
            # of what is joined twice one is enough: joins of joins would double at each step
            target, joins, bits, _ = _merged(target[is_join], source[is_join], bits[is_join], np.full(is_join.sum(), -1))
            at, row = _predecessors(columns, joins)
            target, source, bits, arg = target[row], columns.edge_src[at] - columns.first_node, bits[row], np.full(len(at), -1)
        target, source, bits, arg = _merged(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
        numbers = self.numbers if keeps.any() else columns.node_task
        return EdgeTable(numbers[source], numbers[target], bits, arg)

    def _direct_args(self, source: Array, target: Array) -> Array:
        """Return the arguments of edges without a join or mark in between; -1 for all others."""
        columns = self._columns
        args = np.full(len(source), -1, np.int64)
        between = (source >= 0) & (target >= 0)     # tasks
        nodes = np.where(between, columns.task_node[target], 0)
        for k, (node, from_node) in enumerate(zip((nodes - columns.first_node).tolist(), columns.task_node[source].tolist(), strict=True)):
            if not between[k]:
                continue
            begin, end = int(columns.pred_begin[node]), int(columns.pred_begin[node + 1])
            at = begin + int(np.searchsorted(columns.edge_src[begin:end], from_node))
            if at < end and columns.edge_src[at] == from_node:
                args[k] = columns.edge_arg[at]
        return args

    def _targets(self, node: int) -> Array:
        """Return, ascending, the tasks that a node reaches through joins and marks alone."""
        begin, targets = self._successors
        tasks: list[int] = []
        seen, left = {node}, [node]
        while left:
            current = left.pop()
            for after in targets[begin[current]:begin[current + 1]].tolist():
                if after not in seen:
                    seen.add(after)
                    (left if self._columns.node_kind[after] else tasks).append(after)
        return np.sort(self._columns.node_task[np.array(tasks, np.int64)])

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
    """Return the positions of the edges into some nodes, and for each edge the index of its node in `nodes`."""
    begin = columns.pred_begin[nodes] if len(nodes) else np.zeros(0, np.int64)
    count = columns.pred_begin[nodes + 1] - begin if len(nodes) else begin
    row = np.repeat(np.arange(len(nodes)), count)
    return begin[row] + np.arange(len(row)) - (np.cumsum(count) - count)[row], row


def _merged(target: Array, source: Array, bits: Array, arg: Array) -> tuple[Array, Array, Array, Array]:
    """Return edges sorted by target and source, with duplicates merged: their reasons are united."""
    order = np.lexsort((source, target))
    target, source, bits, arg = target[order], source[order], bits[order], arg[order]
    if not len(order):
        return target, source, bits, arg
    first = np.flatnonzero(np.concatenate(([True], (target[1:] != target[:-1]) | (source[1:] != source[:-1]))))
    return target[first], source[first], np.bitwise_or.reduceat(bits, first), np.maximum.reduceat(arg, first)
