"""The critical path: the longest chain of tasks that wait for one another, whatever the executors.

>>> print(program.critical_path)
critical path: 520 cycles, 2 tasks
     200  0 load[b=0]
     320  1 attn[b=0]  RAW on q[0, 0:16, 0:64]
"""

from __future__ import annotations

from collections.abc import Sequence

from pto_wsp.report.graph import TaskGraph
from pto_wsp.runtime.marks import MarkFlag
from pto_wsp.runtime.record import RecordColumns
from pto_wsp.values import dataclass

_JOIN, _MARK = 1, 2    # PTO_NODE_JOIN and PTO_NODE_MARK in pto_abi.h
_SHOWN = 40


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
        lines = [f"critical path: {self.cycles} cycles, {n} task{'s' * (n != 1)}"]
        shown = range(n) if n <= _SHOWN else [*range(_SHOWN // 2), *range(n - _SHOWN // 2, n)]
        last = -1
        for at in shown:
            if at != last + 1:
                lines.append(f"{'…':>8}  {at - last - 1} more tasks")
            step = self._step(at)
            lines.append(f"{step.cycles:>8}  {step.task} {step.name}  {step.reason}".rstrip())
            last = at
        return "\n".join(lines)

    __repr__ = __str__


def critical_path(columns: RecordColumns, graph: TaskGraph) -> CriticalPath:
    """Return the longest chain of a whole record, in time linear in its nodes and edges."""
    kinds, begins, sources = columns.node_kind.tolist(), columns.pred_begin.tolist(), columns.edge_src.tolist()
    node_task, costs, streams = columns.node_task.tolist(), columns.task_cost.tolist(), columns.task_stream.tolist()
    length, before = [0] * len(kinds), [-1] * len(kinds)
    passed: dict[int, int] = {}      # by stream: the mark on the longest chain that it has stood at
    longest, mark = -1, 0
    for node, kind in enumerate(kinds):
        best, last = 0, -1
        if kind == _MARK:
            stream, cost = int(columns.mark_stream[mark]), int(columns.mark_delay[mark])
        elif kind != _JOIN:
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
        if kind == _MARK:
            if columns.mark_flags[mark] & MarkFlag.BLOCKS and (stream not in passed or length[node] > length[passed[stream]]):
                passed[stream] = node
            mark += 1
        elif kind != _JOIN and (longest < 0 or length[node] > length[longest]):
            longest = node
    tasks = []
    at = longest
    while at >= 0:
        if kinds[at] not in (_JOIN, _MARK):
            tasks.append(node_task[at])
        at = before[at]
    tasks.reverse()
    return CriticalPath(graph, tasks, [costs[task] for task in tasks], length[longest] if longest >= 0 else 0)
