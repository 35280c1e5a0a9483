"""The edges between the tasks of a record that has marks, joins and marks resolved to the tasks that they stand for.

What a mark stands for grows from one to the next: a send waits for a receive, that for an older send, and so on. So what a mark inherits
from another is left out where another task that it stands for waits for it anyway, as far as that can be seen: a clock a node says how many
of the first tasks of each stream it waits for, which tells everything where the tasks of a stream are ordered.

A join or mark that would stand for too many edges is a barrier: whatever waits for it waits for one thing, and it for what it stands for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from pto_wsp.runtime.record.columns import RecordColumns
from pto_wsp.runtime.record.marks import EdgeReason, NodeKind

Clock: TypeAlias = "dict[int, int]"     # by stream


class MarkedEdges:
    """Resolves the nodes of a record in order, as far as somebody asks for them."""

    def __init__(self, columns: RecordColumns, most_resolved: int) -> None:
        """`most_resolved`: edges that a join or mark may stand for."""
        self._columns, self._most = columns, most_resolved
        sources = columns.edge_src - columns.first_node
        self._n_users = np.bincount(sources[sources >= 0], minlength=len(columns.node_kind)).tolist()
        self._members: dict[int, dict[int, int]] = {}    # of a join or mark: tasks, and why; 0: whatever waits for the join says it
        self._barriers: list[int] = []                   # their nodes; -1 stands for the first among tasks, and so on
        self._clocks = _Clocks(columns, self._barriers)
        self._found: list[dict[int, int]] = []           # of every node: what it waits for

    def into(self, task: int) -> dict[int, int]:
        """Return the tasks that a task waits for, and why; structure is named where it is the only reason."""
        found: dict[int, int] = {}
        left = list(self.listed_into(int(self._columns.task_node[task]) - self._columns.first_node).items())
        seen: set[tuple[int, int]] = set()
        while left:
            source, why = left.pop()
            if source >= 0:
                found[source] = found.get(source, 0) | why
            elif (source, why) not in seen:
                seen.add((source, why))
                left += [(inner, _through(reason, why)) for inner, reason in self._found[self._barriers[-1 - source]].items()]
        return dict(sorted(found.items()))

    def listed_into(self, node: int) -> dict[int, int]:
        """Return the tasks and barriers that a task or a barrier waits for, and why."""
        while len(self._found) <= node:
            self._resolve(len(self._found))
        found = self._found[node]
        return found if not self._columns.node_kind[node] else {source: why or EdgeReason.ORDER.value for source, why in found.items()}

    @property
    def is_barrier(self) -> np.ndarray[Any, Any]:
        """By node, whether it is a barrier."""
        self._resolve_all()
        found = np.zeros(len(self._columns.node_kind), np.bool_)
        found[self._barriers] = True
        return found

    @property
    def n_into(self) -> np.ndarray[Any, Any]:
        """By node, how many tasks and barriers it waits for."""
        self._resolve_all()
        return np.array([len(found) for found in self._found], np.int64)

    def _resolve_all(self) -> None:
        if self._columns.node_kind.size:
            self.listed_into(len(self._columns.node_kind) - 1)

    def _resolve(self, node: int) -> None:
        columns, members = self._columns, self._members
        kind = int(columns.node_kind[node])
        found: dict[int, int] = {}
        inherited: set[int] = set()
        begin, end = int(columns.pred_begin[node]), int(columns.pred_begin[node + 1])
        sources = [(int(columns.edge_src[k]) - columns.first_node, int(columns.edge_why[k])) for k in range(begin, end)]
        for source, why in sources:
            if source < 0:
                continue
            for task, reason in members.get(source, {int(columns.node_task[source]): 0}).items():
                found[task] = found.get(task, 0) | (reason if kind == NodeKind.JOIN else _through(reason, why))
            if source in members:
                inherited |= members[source].keys()
        self._clocks.add(node, [source for source, _ in sources if source >= 0])
        if kind == NodeKind.MARK:
            direct = {int(columns.node_task[source]) for source, _ in sources if source >= 0 and source not in members}
            for task in inherited - direct:
                if any(self._clocks.waits(other, task) for other in found if other != task):
                    del found[task]
        found = dict(sorted(found.items()))
        self._found.append(found)
        if kind and len(found) * self._n_users[node] > self._most:
            self._barriers.append(node)
            members[node] = {-len(self._barriers): 0}
        elif kind:
            members[node] = found


def _through(reason: int, why: int) -> int:
    """Return why something waits for a task through a mark: structure says nothing where there is another reason on the way."""
    return (reason | why) & ~EdgeReason.ORDER or EdgeReason.ORDER.value if reason else why


class _Clocks:
    """How many tasks of each stream, from its first on, every node waits for."""

    def __init__(self, columns: RecordColumns, barriers: Sequence[int]) -> None:
        """`barriers`: their nodes, as far as they are known."""
        self._columns, self._barriers = columns, barriers
        self._of_node: list[Clock] = []
        self._place: list[tuple[int, int]] = []     # by task: stream, position in it
        self._n: Clock = {}                         # tasks of each stream so far

    def add(self, node: int, sources: list[int]) -> None:
        """Take the next node."""
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
            if clock.get(stream, 0) == place:       # it waits for all before it: they and it are the first
                clock[stream] = place + 1
        self._of_node.append(clock)

    def waits(self, task: int, other: int) -> bool:
        """Tell whether a task or barrier waits for another one, as far as clocks show."""
        if other < 0:
            return False
        stream, place = self._place[other]
        node = self._barriers[-1 - task] if task < 0 else int(self._columns.task_node[task]) - self._columns.first_node
        return self._of_node[node].get(stream, 0) > place
