"""The edges of a record under another schedule: those that its kinds of dependencies keep, and those of its lanes."""

from __future__ import annotations

from typing import Any

import numpy as np

from pto_wsp.plan.model import TaskPlan
from pto_wsp.retime.recorded import RecordedTasks
from pto_wsp.runtime.marks import EdgeReason
from pto_wsp.values import dataclass

Array = np.ndarray[Any, Any]

_JOIN = 1      # PTO_NODE_JOIN
_DATA = EdgeReason.RAW | EdgeReason.WAR | EdgeReason.WAW | EdgeReason.READ


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """Predecessors of node n are source[begin[n]:begin[n + 1]], ascending; why: EdgeReason bits."""

    begin: Array
    source: Array
    why: Array
    arg: Array


def recorded_edges(tasks: RecordedTasks) -> Edges:
    """Return the edges as they were recorded."""
    return Edges(tasks.view("pred_begin", tasks.n_nodes + 1, np.int64), tasks.view("edge_src", tasks.n_edges, np.int64),
                 tasks.view("edge_why", tasks.n_edges, np.uint16), tasks.view("edge_arg", tasks.n_edges, np.int32))


def edges_under(tasks: RecordedTasks, recorded: TaskPlan, plan: TaskPlan, lane: Array | None) -> Edges:
    """Return the edges of a stream that was recorded under one plan, under another that asks for no kind that the record lacks."""
    edges = recorded_edges(tasks)
    had_lanes = bool(tasks.raw.task_lane)
    drops_data, drops_structure = recorded.infer and not plan.infer, recorded.structure and not plan.structure
    if drops_data or drops_structure or had_lanes:
        edges = _kept(tasks, edges, drops_data, drops_structure)
    if lane is not None:
        edges = _merged(edges, *_lane_edges(tasks, lane))
    return edges


def _kept(tasks: RecordedTasks, edges: Edges, drops_data: bool, drops_structure: bool) -> Edges:
    """Drop what the schedule does not ask for: lanes; conflicts; structure, with the joins that nothing else needs."""
    kind = tasks.view("node_kind", tasks.n_nodes, np.uint8)
    target = np.repeat(np.arange(tasks.n_nodes), np.diff(edges.begin))
    dropped = EdgeReason.LANE | (_DATA if drops_data else EdgeReason(0))
    into_join = kind[target] == _JOIN
    why = edges.why & np.uint16(0xFFFF & ~dropped.value)
    if drops_structure:
        why = np.where(into_join, why, why & np.uint16(0xFFFF & ~EdgeReason.ORDER.value))
        needed = np.zeros(tasks.n_nodes, np.bool_)
        keeps = (why != 0) & ~into_join
        while True:     # joins of joins
            needed[edges.source[keeps]] = True
            wider = keeps | (into_join & needed[target])
            if np.array_equal(wider, keeps):
                break
            keeps = wider
    else:
        keeps = why != 0
    begin = np.zeros(tasks.n_nodes + 1, np.int64)
    np.cumsum(np.bincount(target[keeps], minlength=tasks.n_nodes), out=begin[1:])
    return Edges(begin, edges.source[keeps], why[keeps], edges.arg[keeps])


def _lane_edges(tasks: RecordedTasks, lane: Array) -> tuple[Array, Array]:
    """Return sources and targets: each task of a lane waits for the one before."""
    node = tasks.view("task_node", tasks.n_tasks, np.int64)
    order = np.argsort(lane, kind="stable")
    same = (lane[order][1:] == lane[order][:-1]) & (lane[order][1:] != 0)
    return node[order[:-1][same]], node[order[1:][same]]


def _merged(edges: Edges, source: Array, target: Array) -> Edges:
    """Add edges of lanes; one that is there already has one more reason."""
    n_nodes = len(edges.begin) - 1
    sources = np.concatenate((edges.source, source))
    targets = np.concatenate((np.repeat(np.arange(n_nodes), np.diff(edges.begin)), target))
    why = np.concatenate((edges.why, np.full(len(source), EdgeReason.LANE.value, np.uint16)))
    arg = np.concatenate((edges.arg, np.full(len(source), -1, np.int32)))
    order = np.argsort(targets * np.int64(n_nodes) + sources, kind="stable")    # of two that are one, the lane's comes second
    sources, targets, why, arg = sources[order], targets[order], why[order], arg[order]
    first = np.ones(len(order), np.bool_)
    first[1:] = (sources[1:] != sources[:-1]) | (targets[1:] != targets[:-1])
    if len(order):
        why = np.bitwise_or.reduceat(why, np.flatnonzero(first))
    begin = np.zeros(n_nodes + 1, np.int64)
    np.cumsum(np.bincount(targets[first], minlength=n_nodes), out=begin[1:])
    return Edges(begin, sources[first], why, arg[first])
