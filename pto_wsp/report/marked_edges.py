"""The edges between the tasks of a record that has marks, joins and marks resolved to the tasks that they stand for.

What a mark stands for grows from one to the next: a send waits for a receive, that for an older send, and so on. So what a mark inherits
from another is left out where another task that it stands for waits for it anyway, as far as that can be seen: a clock a node says how many
of the first tasks of each stream it waits for, which tells everything where the tasks of a stream are ordered.
"""

from __future__ import annotations

from typing import TypeAlias

from pto_wsp.runtime.record.columns import RecordColumns
from pto_wsp.runtime.record.marks import EdgeReason, NodeKind

Clock: TypeAlias = "dict[int, int]"     # by stream


class MarkedEdges:
    """Resolves the nodes of a record in order, as far as somebody asks for them."""

    def __init__(self, columns: RecordColumns) -> None:
        self._columns = columns
        self._members: dict[int, dict[int, int]] = {}    # of a join or mark: tasks, and why; 0: whatever waits for the join says it
        self._clocks = _Clocks(columns)
        self._of_task: list[dict[int, int]] = []
        self._n_nodes = 0

    def into(self, task: int) -> dict[int, int]:
        """Return the tasks that a task waits for, and why; structure is named where it is the only reason."""
        while len(self._of_task) <= task:
            self._resolve(self._n_nodes)
            self._n_nodes += 1
        return self._of_task[task]

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
        if kind:
            members[node] = found
        else:
            self._of_task.append(dict(sorted(found.items())))


def _through(reason: int, why: int) -> int:
    """Return why something waits for a task through a mark: structure says nothing where there is another reason on the way."""
    return (reason | why) & ~EdgeReason.ORDER or EdgeReason.ORDER.value if reason else why


class _Clocks:
    """How many tasks of each stream, from its first on, every node waits for."""

    def __init__(self, columns: RecordColumns) -> None:
        self._columns = columns
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
        """Tell whether a task waits for another one, as far as clocks show."""
        stream, place = self._place[other]
        return self._of_node[int(self._columns.task_node[task]) - self._columns.first_node].get(stream, 0) > place
