"""The critical path: the longest chain of tasks that wait for one another, whatever the executors.

>>> print(program.critical_path)
critical path: 520 cycles, 2 tasks
     200  0 load[b=0]
     320  1 attn[b=0]  RAW on q[0, 0:16, 0:64]
"""

from __future__ import annotations

from collections.abc import Sequence

from pto_wsp.report.graph import TaskGraph
from pto_wsp.runtime.record.columns import RecordColumns
from pto_wsp.runtime.record.marks import MarkFlag, NodeKind
from pto_wsp.values import dataclass
from pto_wsp.wording import both_ends, counted


@dataclass(frozen=True, slots=True)
class PathStep:
    """A task of a path: its cycles, and why it waits for the one before ("" for the first)."""

    task: int
    name: str
    cycles: int
    reason: str


class CriticalPath(Sequence[PathStep]):
    """The tasks of the longest chain. `cycles`: its length, with the delays of the marks on it."""

    def __init__(self, graph: TaskGraph, tasks: Sequence[int], costs: Sequence[int], cycles: int) -> None:
        self._graph, self.tasks, self._costs, self.cycles = graph, tuple(tasks), tuple(costs), cycles

    def __len__(self) -> int:
        return len(self.tasks)

    def __getitem__(self, at: int | slice) -> PathStep | tuple[PathStep, ...]:  # type: ignore[override]
        if isinstance(at, slice):
            return tuple(self._step(k) for k in range(*at.indices(len(self))))
        if not -len(self) <= at < len(self):
            raise IndexError(at)
        return self._step(at % len(self))

    def _step(self, at: int) -> PathStep:
        task = self.tasks[at]
        edges = [edge for edge in self._graph.edges_into(task) if edge.source == self.tasks[at - 1]] if at else []
        reason = self._graph.reason(edges[0]) if edges else "its process" if at else ""
        return PathStep(task, self._graph.tasks[task], self._costs[at], reason)

    def __str__(self) -> str:
        n = len(self)
        lines = [f"critical path: {counted(self.cycles, 'cycle')}, {counted(n, 'task')}"]
        return "\n".join((*lines, *both_ends(n, self._line, lambda more: f"{'…':>8}  {more} more tasks")))

    def _line(self, at: int) -> str:
        step = self._step(at)
        return f"{step.cycles:>8}  {step.task} {step.name}  {step.reason}".rstrip()

    __repr__ = __str__


def critical_path(columns: RecordColumns, graph: TaskGraph) -> CriticalPath:
    """Return the longest chain of a whole record, in time linear in its nodes and edges."""
    is_join, is_mark = NodeKind.JOIN.value, NodeKind.MARK.value      # plain numbers: compared once a node
    kinds, begins, sources = columns.node_kind.tolist(), columns.pred_begin.tolist(), columns.edge_src.tolist()
    node_task, costs, streams = columns.node_task.tolist(), columns.task_cost.tolist(), columns.task_stream.tolist()
    length, before = [0] * len(kinds), [-1] * len(kinds)
    passed: dict[int, int] = {}      # by stream: the mark on the longest chain that it has stood at
    longest, mark = -1, 0
    for node, kind in enumerate(kinds):
        best, last = 0, -1
        if kind == is_mark:
            stream, cost = int(columns.mark_stream[mark]), int(columns.mark_delay[mark])
        elif kind != is_join:
            stream, cost = streams[node_task[node]], costs[node_task[node]]
        else:
            stream, cost = -1, 0
        if stream in passed:
            best, last = length[passed[stream]], passed[stream]
        for at in range(begins[node], begins[node + 1]):
            source = sources[at]
            if length[source] > best or last < 0:
                best, last = length[source], source
        length[node], before[node] = best + cost, last
        if kind == is_mark:
            if columns.mark_flags[mark] & MarkFlag.BLOCKS and (stream not in passed or length[node] > length[passed[stream]]):
                passed[stream] = node
            mark += 1
        elif kind != is_join and (longest < 0 or length[node] > length[longest]):
            longest = node
    tasks = []
    at = longest
    while at >= 0:
        if kinds[at] not in (is_join, is_mark):
            tasks.append(node_task[at])
        at = before[at]
    tasks.reverse()
    return CriticalPath(graph, tasks, [costs[task] for task in tasks], length[longest] if longest >= 0 else 0)
