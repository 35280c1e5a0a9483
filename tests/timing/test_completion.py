"""When joins and marks complete, on columns written by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from pto_wsp.run.record import MarkFlag, RecordColumns
from pto_wsp.timing.marked_edges import Completion, Moment

TASK, JOIN, MARK = 0, 1, 2


def columns(nodes: list[tuple[int, list[int]]], task_stream: list[int], marks: list[tuple[int, int, int]]) -> RecordColumns:
    """Nodes are (kind, what they wait for); marks, in order, (stream, flags, delay)."""
    kinds = np.array([kind for kind, _ in nodes])
    node_task = np.full(len(nodes), -1)
    node_task[kinds == TASK] = np.arange((kinds == TASK).sum())
    stream, flags, delay = np.array(marks, np.int64).reshape(-1, 3).T
    found: RecordColumns = SimpleNamespace(  # type: ignore[assignment]
        node_kind=kinds, node_task=node_task, task_node=np.flatnonzero(kinds == TASK), task_stream=np.array(task_stream),
        edge_src=np.array([source for _, sources in nodes for source in sources], np.int64),
        pred_begin=np.concatenate(([0], np.cumsum([len(sources) for _, sources in nodes]))),
        mark_node=np.flatnonzero(kinds == MARK), mark_stream=stream, mark_flags=flags, mark_delay=delay)
    return found


def test_a_join_completes_with_the_last_of_its_members_and_a_mark_after_its_delay() -> None:
    nodes = [(TASK, []), (TASK, []), (JOIN, [0, 1]), (MARK, [2]), (JOIN, [3])]
    completion = Completion(columns(nodes, [0, 0], [(1, 0, 7)]), np.array([0, 0]), np.array([30, 50]))
    assert completion.of(0) == (30, Moment(30, 0)) and completion.of(2) == (50, Moment(50, 1))
    assert completion.of(3) == completion.of(4) == (57, Moment(50, 1))


def test_a_mark_waits_for_its_stream_to_come_to_it() -> None:
    """Task 1 of stream 1 is submitted at 40, after its blocking mark; the mark behind it comes then, though what it waits for is over."""
    nodes = [(TASK, []), (MARK, [0]), (TASK, []), (MARK, [0]), (MARK, [0])]
    blocks = int(MarkFlag.BLOCKS)
    marked = columns(nodes, [0, 1], [(1, blocks, 10), (1, 0, 1), (0, 0, 1)])
    completion = Completion(marked, np.array([0, 45]), np.array([30, 60]))
    assert completion.of(1) == (40, Moment(30, 0))
    assert completion.of(3) == (46, Moment(45, 1, is_submitted=True)) and completion.of(4) == (31, Moment(30, 0))
    assert completion.before_in_stream.tolist() == [-1, -1, 1, 2, 0]
    assert completion.blocking_mark_before(1) == 1 and completion.blocking_mark_before(0) is None


def test_a_mark_that_blocks_holds_the_marks_behind_it() -> None:
    nodes = [(TASK, []), (MARK, [0]), (MARK, []), (MARK, [])]
    for flags, comes in ((int(MarkFlag.BLOCKS), 40), (0, 0)):
        completion = Completion(columns(nodes, [0], [(1, flags, 10), (1, 0, 0), (1, 0, 5)]), np.array([0]), np.array([30]))
        assert [completion.of(node)[0] for node in (1, 2, 3)] == [40, comes, comes + 5]
