"""Present the task graph of a run: tasks by name, edges with their reasons and elements, and the critical path.

>>> print(program.graph.edges_into("add[b=1]"))
2 mul[b=1] → 3 add[b=1]  RAW on Y[1, 0:4, 0:8]  (model.py:14 → model.py:15)

`Regions` names the elements on which two tasks conflict. The critical path is the longest chain of dependent tasks, whatever the executors.

>>> print(program.critical_path)
critical path: 520 cycles, 2 tasks
     200  0 load[b=0]
     320  1 attn[b=0]  RAW on q[0, 0:16, 0:64]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from pto_wsp.calls import user_calls
from pto_wsp.doors import Displayed
from pto_wsp.errors import TaskNameError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.kernel import MemoryParam
from pto_wsp.ir.plan import Place, Submit, TaskPlan
from pto_wsp.ir.plan_walk import submits
from pto_wsp.pickling import InOneProcess
from pto_wsp.run.bound import Bindings
from pto_wsp.run.failures import RecordNames
from pto_wsp.run.record import MarkFlag, NodeKind, RecordColumns, RecordedArg
from pto_wsp.run.sanitize import MemoryBox, element_text, shape_and_strides, shared_addresses
from pto_wsp.run.simulator import Recorder
from pto_wsp.run.task_list import TaskRegion, block_of
from pto_wsp.source import here
from pto_wsp.timing.arguments import flag
from pto_wsp.timing.edges import DATA_REASONS, Edge, Edges, TaskJoin, TaskLike, find_task
from pto_wsp.timing.graph_export import MOST_UNFOLDED, dot_of_calls, dot_of_tasks, networkx_of_calls, networkx_of_tasks, write_dot
from pto_wsp.timing.graph_fold import FoldedGraph, fold
from pto_wsp.values import dataclass
from pto_wsp.wording import both_ends, counted


@dataclass(frozen=True, slots=True)
# -- conflicts ---------------------------------------------------------------------------------------------------------
class ElementConflict:
    """The elements on which two tasks conflict, and the parameters through which each uses them."""

    reasons: tuple[str, ...]
    elements: str
    source: str
    target: str
    size_bytes: int = 0        # of the elements, as the target has them


class Regions:
    """The regions of a record's tasks, read from the record's memory; once the record holds another run, only tensors are named."""

    def __init__(self, plan: TaskPlan, columns: RecordColumns, recorder: Recorder | None = None,
                 bindings: Bindings | None = None) -> None:
        self._plan, self._columns, self._recorder, self._bindings = plan, columns, recorder, bindings
        self._generation = 0 if recorder is None else recorder.generation

    def conflicts(self, source: int, target: int) -> tuple[ElementConflict, ...]:
        """Return the conflicts of two tasks, one for each pair of parameters."""
        return tuple(self._conflicts(source, target))

    def tensor(self, edge: Edge) -> str:
        """Return the name of the tensor of an edge's arguments; "" for an edge without arguments."""
        return "" if edge.arg < 0 else self._plan.tensors[self._task(edge.target).places[edge.arg & 0xFFFF].slot].ref.shown

    def regions_of(self, task: int) -> tuple[TaskRegion, ...]:
        """Return the regions of tensors that a task uses, in the order of its memory parameters; empty once the record holds another run.

        Tensors that bodies make are left out if the region does not follow from the task's indices.
        """
        if self._recorder is None or self._bindings is None or self._recorder.generation != self._generation:
            return ()
        submit = self._task(task)
        params = self._plan.kernels[submit.kernel].kernel.memory_params
        found = (self._region_of(task, submit, param, place, raw)
                 for param, place, raw in zip(params, submit.places, self._recorder.args_of(task), strict=True))
        return tuple(region for region in found if region is not None)

    def rows_written(self, tasks: Sequence[int]) -> tuple[int, ...]:
        """Return the rows of the first output (or first argument) of tasks of one call; nothing once the record holds another run."""
        if not tasks or self._recorder is None or self._recorder.generation != self._generation:
            return ()
        places = self._task(tasks[0]).places
        if not places:
            return ()
        first = next((k for k, place in enumerate(places) if place.role.writes), 0)
        raw = self._recorder.raw_columns()
        return tuple(raw.args[raw.arg_begin[task] + first].extent[0] for task in tasks)

    def _region_of(self, task: int, submit: Submit, param: MemoryParam, place: Place, raw: RecordedArg) -> TaskRegion | None:
        assert self._bindings is not None
        slot = self._plan.tensors[place.slot]
        shape, strides = shape_and_strides(self._plan, self._bindings, place.slot)
        offset = self._offset(task, submit, place)
        if not slot.fresh:
            array = self._bindings.arrays[place.slot]
            offset = (raw.address - int(array.__array_interface__["data"][0])) // raw.elem_bytes
        if offset is None:
            return None
        block = block_of(shape, strides, offset, raw.extent, raw.stride)
        return TaskRegion(param.name, param.role, slot.ref.shown, str(slot.ref.dtype), tuple(shape), block, raw.extent)

    def _conflicts(self, source: int, target: int) -> Iterator[ElementConflict]:
        if self._recorder is None or self._recorder.generation != self._generation:
            return
        first, second = self._task(source), self._task(target)
        params = [[param.name for param in self._plan.kernels[task.kernel].kernel.memory_params] for task in (first, second)]
        target_args = self._recorder.args_of(target)
        for i, mine in enumerate(self._recorder.args_of(source)):
            for k, its in enumerate(target_args):
                reasons = _reasons(first.places[i], second.places[k])
                if mine.buffer != its.buffer or not reasons:
                    continue
                shared = shared_addresses(_region(mine), _region(its))
                if shared.size:
                    yield ElementConflict(reasons, self._shown(target, second, k, its, shared), params[0][i], params[1][k],
                                          shared.size * its.elem_bytes)

    def _shown(self, task: int, submit: Submit, arg: int, raw: RecordedArg, shared: np.ndarray[Any, Any]) -> str:
        place = submit.places[arg]
        slot = self._plan.tensors[place.slot]
        if self._bindings is None:
            return slot.ref.shown
        if not slot.fresh:
            array = self._bindings.arrays[place.slot]
            base = int(array.__array_interface__["data"][0])
            lowest = sum(min(0, stride) * (extent - 1) for stride, extent in zip(array.strides, array.shape, strict=True))
            return element_text(self._plan, self._bindings, place.slot, shared, base + lowest)
        offset = self._offset(task, submit, place)
        if offset is None:
            return slot.ref.shown
        return element_text(self._plan, self._bindings, place.slot, shared, raw.address - offset * raw.elem_bytes)

    def _offset(self, task: int, submit: Submit, place: Place) -> int | None:
        """Return the offset of a place in its tensor, if it follows from the task's recorded indices; None otherwise."""
        index = dict(zip(submit.index, self._columns.index_of(task), strict=False))
        leaves = tuple(s.leaves(place.offset))
        if any(not isinstance(leaf, s.Const) and leaf not in index for leaf in leaves):
            return None
        return int(s.evaluate(place.offset, lambda leaf: leaf.value if isinstance(leaf, s.Const) else index[leaf]))

    def _task(self, task: int) -> Submit:
        return self._sites[int(self._columns.task_site[task])]

    @cached_property
    def _sites(self) -> tuple[Submit, ...]:
        return submits(self._plan)


def _reasons(first: Place, second: Place) -> tuple[str, ...]:
    """Return the kinds of conflict between two places on the same elements."""
    first_role, second_role = first.role, second.role
    hazards = (("RAW", first_role.writes and second_role.reads), ("WAR", first_role.reads and second_role.writes),
               ("WAW", first_role.writes and second_role.writes))
    return tuple(reason for reason, holds in hazards if holds)


def _region(arg: RecordedArg) -> MemoryBox:
    return MemoryBox(arg.address, arg.extent, arg.stride, arg.elem_bytes)


# -- the graph ---------------------------------------------------------------------------------------------------------
__all__ = ["Edge", "EdgeList", "RunGraph", "TaskJoin"]

_SHOWN = 1000      # edges in a printed graph
_COUNTED = 1 << 22


class EdgeList(Sequence[Edge], Displayed):
    """Edges of a graph; prints one per line."""

    def __init__(self, graph: RunGraph, edges: Sequence[Edge]) -> None:
        self._graph, self._edges = graph, tuple(edges)

    def __len__(self) -> int:
        return len(self._edges)

    def __getitem__(self, at: int | slice) -> Edge | EdgeList:  # type: ignore[override]
        return EdgeList(self._graph, self._edges[at]) if isinstance(at, slice) else self._edges[at]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EdgeList | tuple | list) and self._edges == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    @property
    def rows(self) -> tuple[tuple[str, str, str, str], ...]:
        """The edges as text: source, target, reasons, the user's lines."""
        return tuple(self._graph.described(edge) for edge in self._edges)

    def __str__(self) -> str:
        return "\n".join(self._graph.describe(edge) for edge in self._edges) or "no edges"

    __repr__ = __str__


def _check_edge(edge: object) -> None:
    if not isinstance(edge, Edge):
        raise TaskNameError("this is no edge", here(), expected="one of graph.edges, or of edges_into(task)", found=repr(edge)[:200])


@user_calls(leave_out=("__init__",))
class RunGraph(InOneProcess, Displayed):
    """The tasks in submission order and the edges between them; edges are computed on demand.

    `tasks`: names. `edges`: all edges, sorted by target. A join of many tasks with many successors is a barrier with a negative number in
    `edges` and in `barriers`. Edges of one task (edges_into, edges_out_of, why) are between tasks only.
    """

    _instead = "send its `tasks` and list(edges)"

    def __init__(self, tasks: RecordNames, edges: Edges, regions: Regions, distance: Callable[[int, int], int] | None = None) -> None:
        """Create the graph. `distance`: the steps between the cores of two tasks on a grid; None without one."""
        self._distance = distance
        self.tasks: Sequence[str] = tasks
        self.edges = edges
        self._names, self._regions = tasks, regions

    @property
    def barriers(self) -> tuple[TaskJoin, ...]:
        """The joins of many tasks with many successors."""
        return self.edges.barriers

    @property
    def kernels(self) -> Sequence[str]:
        """The kernel's name of each task."""
        return self._names.kernels()

    def columns(self) -> Mapping[str, np.ndarray[Any, Any]]:
        """Return the edges as columns, sorted by target: `pandas.DataFrame(graph.columns())`.

        `source`, `target`: task numbers, negative for barriers. `reasons`: words with commas between, as in `Edge.reasons`.
        """
        tables = tuple(self.edges.tables())
        source, target, bits = (np.concatenate([np.zeros(0, np.int64), *(getattr(table, name) for table in tables)])
                                for name in ("source", "target", "bits"))
        kinds, at = np.unique(bits, return_inverse=True)
        words = np.array([", ".join(Edge(0, 0, int(kind)).reasons) for kind in kinds], object)
        return {"source": source, "target": target, "reasons": words[at]}

    def folded(self) -> FoldedGraph:
        """Return the graph folded at the workload's calls: a node a call with its tasks, an edge a kind of dependency with its count.

        Of more than 2^18 edges those of the record are counted: a join counts once for each task before and behind it.
        """
        return fold(self._names, self.edges.columns, self.edges)

    def to_dot(self, path: str | Path | None = None, *, folded: bool | None = None) -> str | Path:
        """Return the graph as DOT for Graphviz, or write it to a file and return its path.

        folded: a node a call in place of a node a task; None: from 200 tasks on.

        Raises: C108 if the file cannot be written, T205 for other values.
        """
        folds = len(self.tasks) >= MOST_UNFOLDED if folded is None else flag("to_dot", "folded", folded)
        text = dot_of_calls(self.folded()) if folds else dot_of_tasks(self.tasks, self.edges)
        return text if path is None else write_dot(text, path)

    def to_networkx(self, *, folded: bool = False) -> Any:
        """Return the graph for networkx: a DiGraph of tasks by number with `name` and `kernel`, edges with `reasons`.

        A barrier is a negative number. folded: a MultiDiGraph of calls with `tasks`, edges with `reasons` and `count`.

        Raises: C120 where networkx is not installed, T205 for another value of `folded`.
        """
        if flag("to_networkx", "folded", folded):
            return networkx_of_calls(self.folded())
        return networkx_of_tasks(self.tasks, self.kernels, self.edges)

    def edges_into(self, task: TaskLike) -> EdgeList:
        """Return the edges into a task. `task`: its number, its name, or (kernel, indices).

        Raises: R112 for a task that there is not.
        """
        return EdgeList(self, tuple(self.edges.into([find_task(self._names, task)])))

    def edges_out_of(self, task: TaskLike) -> EdgeList:
        """Return the edges out of a task.

        Raises: R112 for a task that there is not.
        """
        return EdgeList(self, tuple(self.edges.out_of(find_task(self._names, task))))

    def why(self, first: TaskLike, second: TaskLike) -> EdgeList:
        """Return why `second` comes after `first`: the edge between them, or a shortest chain of edges; empty if the tasks are unordered.

        Raises: R112 for an unknown task.
        """
        start, goal = find_task(self._names, first), find_task(self._names, second)
        after: dict[int, Edge] = {}        # task -> its first edge on a shortest path to the goal
        left = np.array([goal], np.int64)
        while start not in after and len(left):
            edges = [edge for edge in self.edges.into(left) if edge.source >= start and edge.source not in after]
            after |= {edge.source: edge for edge in reversed(edges)}
            left = np.unique(np.array([edge.source for edge in edges], np.int64))
        chain: list[Edge] = []
        while start != goal and start in after:
            chain.append(after[start])
            start = after[start].target
        return EdgeList(self, chain)

    def conflicts(self, edge: Edge) -> tuple[ElementConflict, ...]:
        """Return the elements on which the tasks of an edge conflict; empty for an edge without RAW, WAR or WAW."""
        _check_edge(edge)
        return self._regions.conflicts(edge.source, edge.target) if DATA_REASONS & set(edge.reasons) else ()

    def describe(self, edge: Edge) -> str:
        """Return an edge as a line of text: both tasks, the reasons with elements, and the source lines."""
        source, target, reason, lines = self.described(edge)
        return f"{source} → {target}  {reason}" + f"  ({lines})" * bool(lines)

    def described(self, edge: Edge) -> tuple[str, str, str, str]:
        """Return an edge as text: source, target, the reasons with elements, and the source lines."""
        _check_edge(edge)
        lines = " → ".join(dict.fromkeys(self._names.span_of(task).short for task in (edge.source, edge.target) if task >= 0))
        return self._end(edge.source), self._end(edge.target), self.reason(edge), lines

    def _end(self, number: int) -> str:
        return f"barrier {-number}" if number < 0 else f"{number} {self.tasks[number]}"

    def reason(self, edge: Edge) -> str:
        """Return the reasons of an edge as text: `RAW on X[0, 0:4, 0:8], order`; between cores of a grid with its bytes and steps."""
        _check_edge(edge)
        data = [word for word in edge.reasons if word in DATA_REASONS]
        others = [word for word in edge.reasons if word not in DATA_REASONS]
        if data:
            elements = ", ".join(dict.fromkeys(conflict.elements for conflict in self.conflicts(edge))) or self._regions.tensor(edge)
            data[-1] += f" on {elements}" if elements else ""
        return ", ".join(data + others) + self._way(edge)

    def steps(self, edge: Edge) -> int:
        """Return the steps between the cores of an edge's tasks under `spatial_map`; 0 on one core, and from or to a barrier."""
        _check_edge(edge)
        return 0 if self._distance is None or edge.source < 0 or edge.target < 0 else self._distance(edge.source, edge.target)

    def size_bytes(self, edge: Edge) -> int:
        """Return the bytes that the target of an edge reads of what its source wrote; 0 once the record holds another run."""
        return sum(conflict.size_bytes for conflict in self.conflicts(edge) if "RAW" in conflict.reasons)

    def _way(self, edge: Edge) -> str:
        steps = self.steps(edge)
        if not steps:
            return ""
        size = self.size_bytes(edge)
        moved = f"{counted(size, 'byte')} over " if size else ""
        return f" ({moved}{counted(steps, 'step')})"

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


# -- the critical path -------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class PathStep:
    """A task of a path: its cycles, and why it waits for the task before ("" for the first)."""

    task: int
    name: str
    cycles: int
    reason: str


class CriticalPath(Sequence[PathStep], Displayed):
    """The tasks of the longest chain. `cycles`: its length, including the delays of marks."""

    def __init__(self, graph: RunGraph, tasks: Sequence[int], costs: Sequence[int], cycles: int) -> None:
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


def critical_path(columns: RecordColumns, graph: RunGraph, hop_cycles: int = 0) -> CriticalPath:
    """Return the longest chain of a complete record, in time linear in its nodes and edges; each step of an edge takes `hop_cycles`.

    Invariant: nodes are in topological order; length[n] is the longest chain that ends with node n.
    """
    is_join, is_mark = NodeKind.JOIN.value, NodeKind.MARK.value      # plain ints: compared once per node
    kinds, begins, sources = columns.node_kind.tolist(), columns.pred_begin.tolist(), columns.edge_src.tolist()
    node_task, costs, streams = columns.node_task.tolist(), columns.task_cost.tolist(), columns.task_stream.tolist()
    length, before = [0] * len(kinds), [-1] * len(kinds)
    passed: dict[int, int] = {}      # stream -> the blocking mark with the longest chain
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
            until = length[source] + (hop_cycles * graph.steps(Edge(node_task[source], node_task[node], 0))
                                      if hop_cycles and node_task[source] >= 0 and node_task[node] >= 0 else 0)
            if until > best or last < 0:
                best, last = until, source
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
