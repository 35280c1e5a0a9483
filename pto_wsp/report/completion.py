"""When the nodes of a record that are no tasks complete in simulated time, and which task or stream decides that.

A join completes with the last of those that it joins. A mark completes when those that it waits for have and its stream has come to it,
and after its delay.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from pto_wsp.runtime.record.columns import RecordColumns
from pto_wsp.runtime.record.groups import before_in_group
from pto_wsp.runtime.record.marks import MarkFlag, NodeKind
from pto_wsp.values import dataclass

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Moment:
    """Something happens at `time`: `task` ends or completes (or, with `is_submitted`, is submitted); None: the beginning."""

    time: int
    task: int | None = None
    is_submitted: bool = False


_BEGINNING = Moment(0)


class Completion:
    """The completion of joins and marks. `submit` and `complete`: of the tasks of a whole record, in cycles."""

    def __init__(self, columns: RecordColumns, submit: Array, complete: Array) -> None:
        self._columns, self._submit, self._complete = columns, submit, complete
        self._known: dict[int, tuple[int, Moment]] = {}      # by join or mark: when it completes, and what decided that

    def of(self, node: int) -> tuple[int, Moment]:
        """Return when a node completes, and what happened last of that for which it waits."""
        task = int(self._columns.node_task[node])
        if task >= 0:
            return int(self._complete[task]), Moment(int(self._complete[task]), task)
        left = [node]
        while left:
            at = left[-1]
            if at in self._known:
                left.pop()
                continue
            missing = [other for other in self._before(at) if self._columns.node_kind[other] != NodeKind.TASK and other not in self._known]
            if missing:
                left += missing
            else:
                self._known[at] = self._resolved(at)      # asks for nothing that is not known
        return self._known[node]

    def _before(self, node: int) -> Sequence[int]:
        """Return the nodes that a join or mark waits for, and the one that its stream has to pass first."""
        columns = self._columns
        found: list[int] = columns.edge_src[columns.pred_begin[node]:columns.pred_begin[node + 1]].tolist()
        front = int(self.before_in_stream[node])
        return [*found, front] if columns.node_kind[node] == NodeKind.MARK and front >= 0 else found

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
        """Return when a stream has passed one of its nodes."""
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
        """Return the last mark at which the stream of a task stood before it, None without one."""
        node = int(self.before_in_stream[self._columns.task_node[task]])
        while node >= 0:
            if self._columns.node_kind[node] == NodeKind.MARK and self._columns.mark_flags[self._mark(node)] & MarkFlag.BLOCKS:
                return node
            node = int(self.before_in_stream[node])
        return None

    @cached_property
    def before_in_stream(self) -> Array:
        """By node: the task or mark before it in its stream, -1 for none, and for joins."""
        columns = self._columns
        stream = np.full(len(columns.node_kind), -1, np.int64)
        stream[columns.task_node] = columns.task_stream
        stream[columns.mark_node] = columns.mark_stream
        return before_in_group(stream)
