"""Resolve joins and marks of a record: their completion times, and the tasks they stand for.

A join completes with the last of its predecessors. A mark (a send, receive, record or wait of a process) completes when its predecessors
have and its stream has reached it, plus its delay.

The set of tasks behind a mark grows from mark to mark: a send waits for a receive, that receive for an older send, and so on. A task is
therefore left out of the set if another task of the set is known to wait for it. Vector clocks decide this: for each node, how many of the
first tasks of each stream precede it, which is exact where a stream's tasks are ordered. A join or mark with too many edges becomes a
barrier.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from pto_wsp.run.record import EdgeReason, MarkFlag, NodeKind, RecordColumns, before_in_group
from pto_wsp.values import dataclass

Array = np.ndarray[Any, Any]


# -- completion --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Moment:
    """An event at `time`: `task` ends or completes, is submitted (`is_submitted`), or is taken by an executor (`is_taken`); None: the
    start of the run."""

    time: int
    task: int | None = None
    is_submitted: bool = False
    is_taken: bool = False


_BEGINNING = Moment(0)


class Completion:
    """The completion of joins and marks. `submit`, `complete`: times of the tasks of a complete record, in cycles."""

    def __init__(self, columns: RecordColumns, submit: Array, complete: Array) -> None:
        self._columns, self._submit, self._complete = columns, submit, complete
        self._known: dict[int, tuple[int, Moment]] = {}      # join or mark -> completion time, deciding event

    def of(self, node: int) -> tuple[int, Moment]:
        """Return the completion time of a node, and the last event that it waited for.

        Depth-first over unresolved predecessors, with an explicit stack: marks form chains as long as the run.
        """
        task = int(self._columns.node_task[node])
        if task >= 0:
            return int(self._complete[task]), Moment(int(self._complete[task]), task)
        stack = [node]
        while stack:
            top = stack[-1]
            if top in self._known:
                stack.pop()
                continue
            missing = [other for other in self._before(top) if self._columns.node_kind[other] != NodeKind.TASK and other not in self._known]
            if missing:
                stack += missing
            else:
                self._known[top] = self._resolved(top)      # all predecessors are resolved
        return self._known[node]

    def _before(self, node: int) -> Sequence[int]:
        """Return the predecessors of a join or mark; for a mark also the node before it in its stream."""
        columns = self._columns
        sources: list[int] = columns.edge_src[columns.pred_begin[node]:columns.pred_begin[node + 1]].tolist()
        front = int(self.before_in_stream[node])
        return [*sources, front] if columns.node_kind[node] == NodeKind.MARK and front >= 0 else sources

    def _resolved(self, node: int) -> tuple[int, Moment]:
        columns = self._columns
        latest = (0, _BEGINNING)
        for source in columns.edge_src[columns.pred_begin[node]:columns.pred_begin[node + 1]].tolist():
            latest = max(latest, self.of(source), key=lambda found: found[0])
        if columns.node_kind[node] != NodeKind.MARK:
            return latest
        latest = max(latest, self._front(int(self.before_in_stream[node])), key=lambda found: found[0])
        return latest[0] + int(columns.mark_delay[self._mark(node)]), latest[1]

    def _front(self, node: int) -> tuple[int, Moment]:
        """Return when a stream has passed one of its nodes, and the deciding event."""
        while node >= 0:
            task = int(self._columns.node_task[node])
            if task >= 0:
                time = int(self._submit[task])
                return time, Moment(time, task, is_submitted=True)
            if self._columns.mark_flags[self._mark(node)] & MarkFlag.BLOCKS:
                return self.of(node)
            node = int(self.before_in_stream[node])
        return 0, _BEGINNING

    def _mark(self, node: int) -> int:
        return int(np.searchsorted(self._columns.mark_node, node))

    def blocking_mark_before(self, task: int) -> int | None:
        """Return the last mark at which a task's stream blocked before the task; None if there is none."""
        node = self._last_blocking[int(self._columns.task_node[task])] if self._last_blocking else -1
        return None if node < 0 else node

    @cached_property
    def _last_blocking(self) -> Sequence[int]:
        """By node: the last mark before it at which its stream blocked, -1 if there is none. Empty for a record without such marks."""
        blocks = np.zeros(len(self._columns.node_kind), np.bool_)
        blocks[self._columns.mark_node[(self._columns.mark_flags & MarkFlag.BLOCKS) != 0]] = True
        if not blocks.any():
            return ()
        last: list[int] = []       # a node comes after the one before it in its stream
        for before, is_blocking in zip(self.before_in_stream.tolist(), blocks[self.before_in_stream].tolist(), strict=True):
            last.append(-1 if before < 0 else before if is_blocking else last[before])
        return last

    @cached_property
    def before_in_stream(self) -> Array:
        """By node: the previous task or mark of its stream; -1 if there is none, and for joins."""
        columns = self._columns
        stream = np.full(len(columns.node_kind), -1, np.int64)
        stream[columns.task_node] = columns.task_stream
        stream[columns.mark_node] = columns.mark_stream
        return before_in_group(stream)


# -- edges -------------------------------------------------------------------------------------------------------------
Clock: TypeAlias = "dict[int, int]"     # stream -> number of its first tasks that precede a node


class MarkedEdges:
    """Resolves the nodes of a record in order, on demand."""

    def __init__(self, columns: RecordColumns, most_resolved: int) -> None:
        """Create the resolver. `most_resolved`: the number of edges that a join or mark may stand for."""
        self._columns, self._most = columns, most_resolved
        sources = columns.edge_src - columns.first_node
        self._n_users = np.bincount(sources[sources >= 0], minlength=len(columns.node_kind)).tolist()
        self._members: dict[int, dict[int, int]] = {}    # join or mark -> tasks with reasons; 0: the reason is the successor's
        self._barriers: list[int] = []                   # nodes of barriers; number -1 is the first
        self._clocks = _Clocks(columns, self._barriers)
        self._found: list[dict[int, int]] = []           # by node: predecessors with reasons

    def into(self, task: int) -> dict[int, int]:
        """Return the tasks that a task waits for, with reasons; structure is a reason only if there is no other."""
        reasons: dict[int, int] = {}
        pending = list(self.listed_into(int(self._columns.task_node[task]) - self._columns.first_node).items())
        seen: set[tuple[int, int]] = set()
        while pending:
            source, why = pending.pop()
            if source >= 0:
                reasons[source] = reasons.get(source, 0) | why
            elif (source, why) not in seen:
                seen.add((source, why))
                pending += [(inner, _through(reason, why)) for inner, reason in self._found[self._barriers[-1 - source]].items()]
        return dict(sorted(reasons.items()))

    def listed_into(self, node: int) -> dict[int, int]:
        """Return the tasks and barriers that a task or barrier waits for, with reasons."""
        while len(self._found) <= node:
            self._resolve(len(self._found))
        sources = self._found[node]
        return sources if not self._columns.node_kind[node] else {source: why or EdgeReason.ORDER.value for source, why in sources.items()}

    @property
    def is_barrier(self) -> np.ndarray[Any, Any]:
        """By node: whether it is a barrier."""
        self._resolve_all()
        mask = np.zeros(len(self._columns.node_kind), np.bool_)
        mask[self._barriers] = True
        return mask

    @property
    def n_into(self) -> np.ndarray[Any, Any]:
        """By node: the number of tasks and barriers it waits for."""
        self._resolve_all()
        return np.array([len(found) for found in self._found], np.int64)

    def _resolve_all(self) -> None:
        if self._columns.node_kind.size:
            self.listed_into(len(self._columns.node_kind) - 1)

    def _resolve(self, node: int) -> None:
        columns, members = self._columns, self._members
        kind = int(columns.node_kind[node])
        waits: dict[int, int] = {}
        inherited: set[int] = set()
        begin, end = int(columns.pred_begin[node]), int(columns.pred_begin[node + 1])
        sources = [(int(columns.edge_src[k]) - columns.first_node, int(columns.edge_why[k])) for k in range(begin, end)]
        for source, why in sources:
            if source < 0:
                continue
            for task, reason in members.get(source, {int(columns.node_task[source]): 0}).items():
                waits[task] = waits.get(task, 0) | (reason if kind == NodeKind.JOIN else _through(reason, why))
            if source in members:
                inherited |= members[source].keys()
        self._clocks.add(node, [source for source, _ in sources if source >= 0])
        if kind == NodeKind.MARK:
            direct = {int(columns.node_task[source]) for source, _ in sources if source >= 0 and source not in members}
            for task in inherited - direct:
                if any(self._clocks.waits(other, task) for other in waits if other != task):
                    del waits[task]
        waits = dict(sorted(waits.items()))
        self._found.append(waits)
        if kind and len(waits) * self._n_users[node] > self._most:
            self._barriers.append(node)
            members[node] = {-len(self._barriers): 0}
        elif kind:
            members[node] = waits


def _through(reason: int, why: int) -> int:
    """Return the reason of a wait through a mark: structure is dropped if another reason is on the path."""
    return (reason | why) & ~EdgeReason.ORDER or EdgeReason.ORDER.value if reason else why


class _Clocks:
    """Vector clocks: for each node, how many of the first tasks of each stream precede it."""

    def __init__(self, columns: RecordColumns, barriers: Sequence[int]) -> None:
        """Create the clocks. `barriers`: the nodes of barriers so far, extended by the caller."""
        self._columns, self._barriers = columns, barriers
        self._of_node: list[Clock] = []
        self._place: list[tuple[int, int]] = []     # by task: (stream, position in the stream)
        self._n: Clock = {}                         # tasks of each stream so far

    def add(self, node: int, sources: list[int]) -> None:
        """Add the next node, given its predecessors."""
        clock = dict(self._of_node[sources[0]]) if sources else {}
        for source in sources[1:]:
            for stream, count in self._of_node[source].items():
                if count > clock.get(stream, 0):
                    clock[stream] = count
        task = int(self._columns.node_task[node])
        if task >= 0:
            stream = int(self._columns.task_stream[task])
            place = self._n.get(stream, 0)
            self._n[stream] = place + 1
            self._place.append((stream, place))
            if clock.get(stream, 0) == place:       # it follows all earlier tasks of its stream
                clock[stream] = place + 1
        self._of_node.append(clock)

    def waits(self, task: int, other: int) -> bool:
        """Tell whether the clocks show that a task or barrier waits for another task."""
        if other < 0:
            return False
        stream, place = self._place[other]
        node = self._barriers[-1 - task] if task < 0 else int(self._columns.task_node[task]) - self._columns.first_node
        return self._of_node[node].get(stream, 0) > place
