"""The edges of a record under another schedule: those that its kinds of dependencies keep, and those of its lanes."""

from __future__ import annotations

from typing import Any

import numpy as np

from pto_wsp.plan.model import TaskPlan
from pto_wsp.retime.recorded import RecordedTasks
from pto_wsp.runtime.record.groups import before_in_group
from pto_wsp.runtime.record.marks import EdgeReason, NodeKind
from pto_wsp.values import dataclass

Array = np.ndarray[Any, Any]

_DATA = EdgeReason.RAW | EdgeReason.WAR | EdgeReason.WAW | EdgeReason.READ


@dataclass(frozen=True, slots=True, eq=False)
class NodeEdges:
    """The edges between nodes. Predecessors of node n are source[begin[n]:begin[n + 1]], ascending; why: EdgeReason bits."""

    begin: Array
    source: Array
    why: Array
    arg: Array


class Lanes:
    """The last node of every lane of the pieces of a stream so far."""

    def __init__(self) -> None:
        self.last: dict[int, int] = {}


def recorded_edges(tasks: RecordedTasks) -> NodeEdges:
    """Return the edges as they were recorded."""
    return NodeEdges(tasks.view("pred_begin", tasks.n_nodes + 1, np.int64), tasks.view("edge_src", tasks.n_edges, np.int64),
                 tasks.view("edge_why", tasks.n_edges, np.uint16), tasks.view("edge_arg", tasks.n_edges, np.int32))


def edges_under(tasks: RecordedTasks, recorded: TaskPlan, plan: TaskPlan, lane: Array | None, lanes: Lanes | None = None) -> NodeEdges:
    """Return the edges of a stream that was recorded under one plan, under another that asks for no kind that the record lacks.

    `lanes`: of the pieces before, where the record is a piece of a stream; it goes on to the next.
    """
    edges = recorded_edges(tasks)
    had_lanes = bool(tasks.raw.task_lane)
    drops_data, drops_structure = recorded.infer and not plan.infer, recorded.structure and not plan.structure
    if drops_data or drops_structure or had_lanes:
        edges = _kept(tasks, edges, drops_data, drops_structure)
    if lane is not None:
        edges = _merged(edges, *_lane_edges(tasks, lane, lanes or Lanes()), int(tasks.raw.first_node))
    return edges


def _kept(tasks: RecordedTasks, edges: NodeEdges, drops_data: bool, drops_structure: bool) -> NodeEdges:
    """Drop what the schedule does not ask for: lanes, conflicts, structure."""
    kind = tasks.view("node_kind", tasks.n_nodes, np.uint8)
    target = np.repeat(np.arange(tasks.n_nodes), np.diff(edges.begin))
    dropped = EdgeReason.LANE | (_DATA if drops_data else EdgeReason(0))
    why = edges.why & np.uint16(0xFFFF & ~dropped.value)
    if drops_structure:     # a join that nothing waits for any more holds nothing up
        why = np.where(kind[target] == NodeKind.JOIN, why, why & np.uint16(0xFFFF & ~EdgeReason.ORDER.value))
    keeps = why != 0
    begin = np.zeros(tasks.n_nodes + 1, np.int64)
    np.cumsum(np.bincount(target[keeps], minlength=tasks.n_nodes), out=begin[1:])
    return NodeEdges(begin, edges.source[keeps], why[keeps], edges.arg[keeps])


def _lane_edges(tasks: RecordedTasks, lane: Array, lanes: Lanes) -> tuple[Array, Array]:
    """Return sources and targets: each task of a lane waits for the one before."""
    node = tasks.view("task_node", tasks.n_tasks, np.int64)
    before = before_in_group(lane, none=0)
    has_one = before >= 0
    begins, is_last = np.flatnonzero(~has_one & (lane != 0)), lane != 0
    is_last[before[has_one]] = False
    first = [(lanes.last[key], at) for key, at in zip(lane[begins].tolist(), node[begins].tolist(), strict=True) if key in lanes.last]
    lanes.last.update(zip(lane[is_last].tolist(), node[is_last].tolist(), strict=True))
    earlier = np.array(first, np.int64).reshape(-1, 2)
    return np.concatenate((node[before[has_one]], earlier[:, 0])), np.concatenate((node[has_one], earlier[:, 1]))


def _merged(edges: NodeEdges, source: Array, target: Array, first_node: int) -> NodeEdges:
    """Add edges of lanes between nodes; one that is there already has one more reason."""
    n_nodes = len(edges.begin) - 1
    sources = np.concatenate((edges.source, source))
    targets = np.concatenate((np.repeat(np.arange(n_nodes), np.diff(edges.begin)), target - first_node))
    why = np.concatenate((edges.why, np.full(len(source), EdgeReason.LANE.value, np.uint16)))
    arg = np.concatenate((edges.arg, np.full(len(source), -1, np.int32)))
    order = np.argsort(targets * np.int64(first_node + n_nodes) + sources, kind="stable")    # of two that are one, the lane's comes second
    sources, targets, why, arg = sources[order], targets[order], why[order], arg[order]
    first = np.ones(len(order), np.bool_)
    first[1:] = (sources[1:] != sources[:-1]) | (targets[1:] != targets[:-1])
    if len(order):
        why = np.bitwise_or.reduceat(why, np.flatnonzero(first))
    begin = np.zeros(n_nodes + 1, np.int64)
    np.cumsum(np.bincount(targets[first], minlength=n_nodes), out=begin[1:])
    return NodeEdges(begin, sources[first], why, arg[first])
