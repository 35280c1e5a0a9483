"""The task graph of a run: tasks by name, the edges between them, why each is there.

>>> print(program.graph.edges_into("add[b=1]"))
2 mul[b=1] → 3 add[b=1]  RAW on Y[1, 0:4, 0:8]  (model.py:14 → model.py:15)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pto_wsp.errors import ArgumentKindError
from pto_wsp.report.edges import DATA_REASONS, Barrier, Edge, Edges
from pto_wsp.report.regions import Conflict, Regions
from pto_wsp.report.tasks import TaskLike, find_task
from pto_wsp.runtime.failures.errors import TaskNames
from pto_wsp.source import here
from pto_wsp.wording import counted

__all__ = ["Barrier", "Edge", "EdgeList", "TaskGraph"]

_SHOWN = 1000      # edges of a printed graph
_COUNTED = 1 << 22


class EdgeList(Sequence[Edge]):
    """Some edges of a graph, which print a line each."""

    def __init__(self, graph: TaskGraph, edges: Sequence[Edge]) -> None:
        self._graph, self._edges = graph, tuple(edges)

    def __len__(self) -> int:
        return len(self._edges)

    def __getitem__(self, at: int | slice) -> Edge | EdgeList:  # type: ignore[override]
        return EdgeList(self._graph, self._edges[at]) if isinstance(at, slice) else self._edges[at]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EdgeList | tuple | list) and self._edges == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return "\n".join(self._graph.describe(edge) for edge in self._edges) or "no edges"

    __repr__ = __str__


def _check_edge(edge: object) -> None:
    if not isinstance(edge, Edge):
        raise ArgumentKindError("this is no edge", here(), expected="one of graph.edges, or of edges_into(task)", found=repr(edge)[:200])


class TaskGraph:
    """Tasks in submission order, and the edges between them. An edge is made when it is asked for.

    `tasks`: their names. `edges`: all of them, in the order of their targets. Where many tasks wait for many a barrier stands between them,
    which edges name by its number below 0, as `barriers` do. Edges of one task (edges_into, edges_out_of, why) are between tasks.
    """

    def __init__(self, tasks: TaskNames, edges: Edges, regions: Regions) -> None:
        self.tasks: Sequence[str] = tasks
        self.edges = edges
        self._names, self._regions = tasks, regions

    @property
    def barriers(self) -> tuple[Barrier, ...]:
        """What stands between many tasks and many that wait for all of them."""
        return self.edges.barriers

    def edges_into(self, task: TaskLike) -> EdgeList:
        """Return what a task waits for: a task by its number, its name, or (kernel, indices).

        Raises: T205 for a task that there is not.
        """
        return EdgeList(self, tuple(self.edges.into([find_task(self._names, task)])))

    def edges_out_of(self, task: TaskLike) -> EdgeList:
        """Return the edges to those that wait for a task.

        Raises: T205 for a task that there is not.
        """
        return EdgeList(self, tuple(self.edges.out_of(find_task(self._names, task))))

    def why(self, first: TaskLike, second: TaskLike) -> EdgeList:
        """Return why the second task comes after the first: the edge between them, else a shortest chain of edges; empty if it need not.

        Raises: T205 for a task that there is not.
        """
        start, goal = find_task(self._names, first), find_task(self._names, second)
        after: dict[int, Edge] = {}        # by task: the edge out of it on a shortest way to the goal
        left = np.array([goal], np.int64)
        while start not in after and len(left):
            found = [edge for edge in self.edges.into(left) if edge.source >= start and edge.source not in after]
            after |= {edge.source: edge for edge in reversed(found)}
            left = np.unique(np.array([edge.source for edge in found], np.int64))
        chain: list[Edge] = []
        while start != goal and start in after:
            chain.append(after[start])
            start = after[start].target
        return EdgeList(self, chain)

    def conflicts(self, edge: Edge) -> tuple[Conflict, ...]:
        """Return the elements on which the tasks of an edge conflict; none for an edge that is not from regions."""
        _check_edge(edge)
        return self._regions.conflicts(edge.source, edge.target) if DATA_REASONS & set(edge.reasons) else ()

    def describe(self, edge: Edge) -> str:
        """Return an edge as a line: both tasks, the reasons with the elements, where the workload makes the tasks."""
        _check_edge(edge)
        lines = " → ".join(dict.fromkeys(self._names.span_of(task).short for task in (edge.source, edge.target) if task >= 0))
        return f"{self._end(edge.source)} → {self._end(edge.target)}  {self.reason(edge)}" + f"  ({lines})" * bool(lines)

    def _end(self, number: int) -> str:
        return f"barrier {-number}" if number < 0 else f"{number} {self.tasks[number]}"

    def reason(self, edge: Edge) -> str:
        """Return why an edge is there: `RAW on X[0, 0:4, 0:8], order`."""
        _check_edge(edge)
        data = [word for word in edge.reasons if word in DATA_REASONS]
        others = [word for word in edge.reasons if word not in DATA_REASONS]
        if data:
            elements = ", ".join(dict.fromkeys(conflict.elements for conflict in self.conflicts(edge))) or self._regions.tensor(edge)
            data[-1] += f" on {elements}" if elements else ""
        return ", ".join(data + others)

    def __str__(self) -> str:
        n_tasks = len(self.tasks)
        lines = [f"{counted(n_tasks, 'task')}, {self._size}"]
        for table in self.edges.tables():
            for edge in table:
                if len(lines) > _SHOWN:
                    return "\n".join((*lines, f"… the first {_SHOWN} edges; edges_into(task), edges_out_of(task), why(a, b) show others"))
                lines.append(self.describe(edge))
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"TaskGraph({counted(len(self.tasks), 'task')}, {self._size})"

    @property
    def _size(self) -> str:
        if self.edges.at_most > _COUNTED:
            return f"at most {self.edges.at_most} edges"
        return counted(len(self.edges), "edge")
