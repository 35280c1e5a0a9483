"""A whole schedule: what the combinators have said, the last word on each directive winning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import UnionType

import numpy as np

from pto_wsp.errors import PolicyValueError, ScheduleConflictError
from pto_wsp.schedule.calendar import Calendar
from pto_wsp.schedule.conflicts import conflict_of, names_of
from pto_wsp.schedule.directives import (
    Affinity,
    Deps,
    Dispatch,
    DispatchBy,
    DispatchSteal,
    Hash,
    Pools,
    ReadyPolicy,
    RoundRobin,
    SpatialMap,
    StartPolicy,
    TaskGraph,
    TaskWindow,
    Timing,
    TracePolicy,
    WindowMode,
)
from pto_wsp.schedule.policy import Executors, Key, KeyExpr, Policy, shown_value
from pto_wsp.source import here

DEFAULT_WINDOW_TASKS = 8192


# what a directive is said with: its type, and in words
_SAID_WITH: Mapping[str, tuple[type | UnionType, str]] = {
    "dispatch": (RoundRobin | Affinity | Hash | DispatchBy | DispatchSteal, "a dispatch policy, such as DispatchPolicy.round_robin(4)"),
    "streams": (int | np.integer, "a number of streams"),
    "timing": (Timing, "a timing policy, such as TimingPolicy.batched(4)"),
    "deps": (Deps, "Deps.infer_bytes_overlap(), infer_tensor_map_exact(), explicit() or hybrid()"),
    "window": (TaskWindow, 'TaskWindow(8192), TaskWindow(1 << 20, "bytes", WindowMode.ABORT)'),
    "pools": (Pools, "Pools.single(), by_exec_unit() or custom(key)"),
    "ready": (ReadyPolicy, "ReadyPolicy.fifo(), work_steal() or priority(key)"),
    "start": (StartPolicy, "StartPolicy.after_orchestration() or threshold(n)"),
    "trace": (TracePolicy, "TracePolicy.none() or cycles(key)"),
    "name": (str, "a name"),
}


def _refuse_other(directive: str, value: object) -> None:
    """Refuse what a directive cannot be said with.

    Raises: S102.
    """
    kind, words = _SAID_WITH.get(directive, (object, ""))
    if isinstance(value, kind) and not isinstance(value, bool) and value != "":
        return
    called = "named" if directive == "name" else directive
    help = None
    if value is None:
        help = "leave the call out; w.under(Schedule()) takes back all that was said"
    elif callable(value) and not isinstance(value, Policy):
        help = "call it, with what it takes in brackets"
    raise PolicyValueError(f"{called} does not take this value", here(), expected=words, found=shown_value(value), help=help)


class Schedule(Policy):
    """Directives as data; None where nothing was said."""

    name: str = ""
    dispatch: Dispatch | None = None
    streams: Executors | None = None
    stream_by: Key | None = None
    timing: Timing | None = None
    task_graph: TaskGraph | None = None
    calendar: Calendar | None = None
    spatial_map: SpatialMap | None = None

    def saying(self, **said: object) -> Schedule:
        """Return the schedule with one more directive, as a user says it.

        Raises: S102 for None, which says nothing, and for what is no policy of the directive; S105 where it contradicts another.
        """
        for directive, value in said.items():
            _refuse_other(directive, value)
        return self.having(**said)

    def having(self, **fields: object) -> Schedule:
        """Return the schedule with some directives set.

        Raises: S105 when they contradict others.
        """
        changed = Schedule(**{**{name: getattr(self, name) for name in type(self).model_fields}, **fields})
        changed.refuse_conflicts()
        return changed

    def refuse_conflicts(self) -> None:
        """Refuse directives that contradict each other.

        Raises: S105.
        """
        said = dict(self.directives())
        conflict = conflict_of(said)
        if conflict is not None:
            pair = [said[name] for part in (conflict.first, conflict.second) for name in names_of(part, said)]
            raise ScheduleConflictError(f"{conflict.first} and {conflict.second} contradict each other", here(), found=" and ".join(pair),
                                        help="leave one of them out", notes=(conflict.reason,))

    def with_task_graph(self, **fields: object) -> Schedule:
        """Return the schedule with the given fields of the task graph set, the others as they were."""
        old = self.task_graph
        merged = {} if old is None else {name: getattr(old, name) for name in TaskGraph.model_fields}
        for name, value in fields.items():
            if value is not None:
                _refuse_other(name, value)
                merged[name] = value
        return self.having(task_graph=TaskGraph(**merged))

    @property
    def deps(self) -> Deps:
        """Where edges come from: hybrid until task_graph() switches to the data."""
        if self.task_graph is None:
            return Deps.hybrid()
        return self.task_graph.deps or Deps.infer_bytes_overlap()

    @property
    def window(self) -> TaskWindow:
        """The bound on tasks submitted and not retired."""
        said = None if self.task_graph is None else self.task_graph.window
        return said or TaskWindow(DEFAULT_WINDOW_TASKS, "tasks", WindowMode.STALL)

    def all_keys(self) -> Iterator[KeyExpr]:
        """Yield the keys of all directives."""
        graph = self.task_graph or TaskGraph()
        calendar = self.calendar or Calendar()
        for key in (getattr(self.dispatch, "key", None), self.stream_by, calendar.worker, calendar.position,
                    *(policy.key for policy in (graph.pools, graph.ready, graph.trace) if policy is not None)):
            if key is not None:
                yield key

    def keeping(self, names: Sequence[str]) -> Schedule:
        """Return the schedule with those of its directives alone that are named as `directives` names them."""
        if not isinstance(names, list | tuple | set | frozenset) or not all(isinstance(name, str) for name in names):
            raise PolicyValueError("keeping takes the names of directives", here(), expected='a list such as ["streams", "timing.batched"]',
                                   found=shown_value(names))
        left_out = {name for name, _ in self.directives()} - set(names)
        if not left_out:
            return self
        parts = {name.split(".")[0] for name in left_out if not name.startswith("task_graph.")}
        graph = {name.split(".")[1] for name in left_out if name.startswith("task_graph.")}
        kept = self.having(**dict.fromkeys(parts))
        if kept.task_graph is None:
            return kept
        return kept.having(task_graph=TaskGraph(**{name: None if name in graph else getattr(kept.task_graph, name)
                                                   for name in TaskGraph.model_fields}))

    def directives(self) -> Iterator[tuple[str, str]]:
        """Yield (directive, how it reads) for everything that was said: `("dispatch.round_robin", "num_aicpus=4")`."""
        if self.dispatch is not None:
            yield self.dispatch.directive, repr(self.dispatch)
        if self.streams is not None:
            yield "streams", f"streams({self.streams})"
        if self.stream_by is not None:
            yield "stream_by", f"stream_by({self.stream_by!r})"
        for policy in (self.timing, self.calendar, self.spatial_map):
            if policy is not None:
                yield policy.directive, repr(policy)
        graph = self.task_graph
        if graph is not None:
            parts = (graph.deps, graph.pools, graph.ready, graph.start, graph.trace, graph.window)
            yield from ((part.directive, repr(part)) for part in parts if part is not None)

    def __repr__(self) -> str:
        said = ", ".join(text for _, text in self.directives())
        return f"Schedule({(self.name + ': ') if self.name else ''}{said or 'default'})"
