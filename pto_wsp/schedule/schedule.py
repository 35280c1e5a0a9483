"""Define schedules, and check that the directives of a schedule fit together.

A schedule holds what the combinators set; for each directive, the last call wins. Contradicting directives are refused at the
second call. A missing directive is refused by compile(), because combinators can be called in any order.

A workload with a schedule can be passed wherever a Schedule is expected.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import UnionType
from typing import get_args

import numpy as np

from pto_wsp.calls import user_calls
from pto_wsp.doors import Displayed
from pto_wsp.errors import PolicyValueError, ScheduleConflictError
from pto_wsp.ir import workload as wl
from pto_wsp.schedule.calendar import Calendar
from pto_wsp.schedule.directives import (
    Deps,
    Dispatch,
    Pools,
    ReadyPolicy,
    SpatialMap,
    StartPolicy,
    TaskGraph,
    TaskWindow,
    Timing,
    TracePolicy,
    WindowMode,
    by_unit,
)
from pto_wsp.schedule.policy import Executors, Key, KeyExpr, Policy, code_of, shown_value
from pto_wsp.source import here
from pto_wsp.values import dataclass


# -- conflicts and needs -----------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Conflict:
    """Two directives that cannot both act, and the reason; each is a prefix of names that `Schedule.directives` yields."""

    first: str
    second: str
    reason: str


@dataclass(frozen=True, slots=True)
class Need:
    """A directive that requires one of `others`, and the reason."""

    directive: str
    others: tuple[str, ...]
    reason: str


_ORDER = "a calendar says in which order each executor runs its tasks"
_PLACE = "a spatial map says on which core each task runs"
_ONE_CORE = "a place of the grid is one core"
CONFLICTS = (
    Conflict("calendar", "dispatch", "a calendar says on which executor each task runs"),
    Conflict("calendar", "streams", _ORDER),
    Conflict("calendar", "stream_by", _ORDER),
    Conflict("calendar", "timing.interleaved", _ORDER),
    Conflict("calendar", "task_graph.ready.work_steal", "nobody may take a task that a calendar gives to another executor"),
    Conflict("calendar", "task_graph.ready.priority", _ORDER),
    Conflict("calendar", "task_graph.pools.by_exec_unit", "a calendar's worker is one executor, and an AICPU would have one for each core"),
    Conflict("spatial_map", "dispatch", _PLACE),
    Conflict("spatial_map", "calendar", _PLACE),
    Conflict("spatial_map", "task_graph.ready.work_steal", "nobody may take a task that sits on another core"),
    Conflict("spatial_map", "task_graph.pools.by_exec_unit", _ONE_CORE),
    Conflict("spatial_map", "task_graph.pools.custom", _ONE_CORE),
    Conflict("calendar", "task_graph.pools.custom", "a calendar's worker is one executor, and an AICPU would have one for each pool"),
)
NEEDS = (
    Need("timing.interleaved", ("streams", "stream_by"), "tasks of streams take turns, and no task is in one"),
)


def conflict_of(names: Collection[str]) -> Conflict | None:
    """Return the first pair of contradicting directives among `names`, or None."""
    return next((pair for pair in CONFLICTS if any(names_of(pair.first, names)) and any(names_of(pair.second, names))), None)


def needs_of(names: Collection[str]) -> Iterator[Need]:
    """Yield the requirements of `names` that no other directive in `names` meets."""
    for need in NEEDS:
        if any(names_of(need.directive, names)) and not any(name for other in need.others for name in names_of(other, names)):
            yield need


def names_of(prefix: str, names: Collection[str]) -> Iterator[str]:
    """Yield those of `names` that are `prefix` or are below it: `timing.batched` is below `timing`."""
    return (name for name in names if name == prefix or name.startswith(f"{prefix}."))


# -- schedules ---------------------------------------------------------------------------------------------------------
DEFAULT_WINDOW_TASKS = 8192


# The values that each directive accepts: the type, and the words for it.
_SAID_WITH: Mapping[str, tuple[type | UnionType, str]] = {
    "dispatch": (get_args(Dispatch)[0], "a dispatch policy, such as DispatchPolicy.round_robin(4)"),
    "streams": (int | np.integer, "a number of streams"),
    "timing": (Timing, "a timing policy, such as TimingPolicy.batched(4)"),
    "deps": (Deps, "Deps.infer_bytes_overlap(), infer_tensor_map_exact(), explicit() or hybrid()"),
    "window": (TaskWindow, 'TaskWindow(8192), TaskWindow(1 << 20, "bytes", WindowMode.ABORT), or a tuple of windows, one of a unit'),
    "pools": (Pools, "Pools.single(), by_exec_unit() or custom(key)"),
    "ready": (ReadyPolicy, "ReadyPolicy.fifo(), work_steal() or priority(key)"),
    "start": (StartPolicy, "StartPolicy.after_orchestration() or threshold(n)"),
    "trace": (TracePolicy, "TracePolicy.none() or cycles(key)"),
    "name": (str, "a name"),
}


def _refuse_other(directive: str, value: object) -> None:
    """Check that a directive accepts a value.

    Raises: S102 otherwise.
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


def _windows(value: object) -> object:
    """Return windows given as a tuple or list in the order of their units, and any other value as it is.

    Raises: S102 for two windows of one unit, for none, and for what else is among them.
    """
    if not isinstance(value, tuple | list):
        return value
    for window in value:
        if not isinstance(window, TaskWindow):
            _refuse_other("window", window)
    units = [window.unit for window in value]
    if not value or len(set(units)) < len(units):
        raise PolicyValueError("window does not take these windows", here(), expected="at least one, and each of a unit of its own",
                               found=shown_value(value), help='units are "tasks", "bytes", "entries", "edges" and "ready"')
    return by_unit(value)


@user_calls()
class Schedule(Policy, Displayed):
    """Hold the directives as data; a directive that was not set is None."""

    name: str = ""
    dispatch: Dispatch | None = None
    streams: Executors | None = None
    stream_by: Key | None = None
    timing: Timing | None = None
    task_graph: TaskGraph | None = None
    calendar: Calendar | None = None
    spatial_map: SpatialMap | None = None

    def saying(self, **said: object) -> Schedule:
        """Return the schedule with one more directive that the user set.

        Raises: S102 for None and for a value of another type; S105 if the directive contradicts another.
        """
        for directive, value in said.items():
            _refuse_other(directive, value)
        return self.having(**said)

    def having(self, **fields: object) -> Schedule:
        """Return the schedule with the given directives set.

        Raises: S105 if they contradict others.
        """
        changed = Schedule(**{**{name: getattr(self, name) for name in type(self).model_fields}, **fields})
        changed.refuse_conflicts()
        return changed

    def refuse_conflicts(self) -> None:
        """Check that no two directives contradict each other.

        Raises: S105 otherwise.
        """
        directives = dict(self.directives())
        conflict = conflict_of(directives)
        if conflict is not None:
            pair = [directives[name] for part in (conflict.first, conflict.second) for name in names_of(part, directives)]
            raise ScheduleConflictError(f"{conflict.first} and {conflict.second} contradict each other", here(), found=" and ".join(pair),
                                        help="leave one of them out", notes=(conflict.reason,))

    def with_task_graph(self, **fields: object) -> Schedule:
        """Return the schedule with the given fields of the task graph set and the others unchanged."""
        old = self.task_graph
        merged = {} if old is None else {name: getattr(old, name) for name in TaskGraph.model_fields}
        for name, value in fields.items():
            if value is not None:
                merged[name] = _windows(value) if name == "window" else value
                if not isinstance(merged[name], tuple):
                    _refuse_other(name, merged[name])
        return self.having(task_graph=TaskGraph(**merged))

    @property
    def deps(self) -> Deps:
        """Where edges come from: hybrid, until task_graph() selects data."""
        if self.task_graph is None:
            return Deps.hybrid()
        return self.task_graph.deps or Deps.infer_bytes_overlap()

    @property
    def windows(self) -> tuple[TaskWindow, ...]:
        """The bounds on what streams have in flight, by unit: at least one."""
        windows = () if self.task_graph is None else self.task_graph.windows
        return windows or (TaskWindow(DEFAULT_WINDOW_TASKS, "tasks", WindowMode.STALL),)

    @property
    def window(self) -> TaskWindow:
        """The first of the windows: that of tasks, if there is one."""
        return self.windows[0]

    def all_keys(self) -> Iterator[KeyExpr]:
        """Yield the keys of all directives."""
        graph = self.task_graph or TaskGraph()
        calendar, where = self.calendar or Calendar(), self.spatial_map
        for key in (getattr(self.dispatch, "key", None), self.stream_by, calendar.worker, calendar.position,
                    *((where.row, where.column) if where is not None else ()),
                    *(policy.key for policy in (graph.pools, graph.ready, graph.trace) if policy is not None)):
            if key is not None:
                yield key

    def keeping(self, names: Sequence[str]) -> Schedule:
        """Return the schedule with only the directives in `names`, which are names that `directives` yields."""
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
        windows = [window for window in kept.task_graph.windows if window.directive not in left_out]
        graph -= {"window"} if windows else set()
        kept = kept.having(task_graph=TaskGraph(**{name: None if name in graph else getattr(kept.task_graph, name)
                                                   for name in TaskGraph.model_fields}))
        return kept.with_task_graph(window=by_unit(windows)) if windows else kept

    def directives(self) -> Iterator[tuple[str, str]]:
        """Yield (directive, text) for every directive that was set: `("dispatch.round_robin", "num_aicpus=4")`."""
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
            parts = (graph.deps, graph.pools, graph.ready, graph.start, graph.trace, *graph.windows)
            yield from ((part.directive, repr(part)) for part in parts if part is not None)

    @property
    def code(self) -> str:
        """The calls that make the schedule, to paste behind a workload: `.dispatch(DispatchPolicy.round_robin(4)).streams(2)`.

        A calendar that is a table stands there as `Calendar(...)`: its text is `str(schedule.calendar)`, for Calendar.from_text.
        """
        return "".join(self.calls)

    @property
    def calls(self) -> tuple[str, ...]:
        """The calls of `code`, one each."""
        calls = [f".named({self.name!r})"] if self.name else []
        calls += [f".{name}({code_of(value)})" for name, value in self.__dict__.items()
                  if name not in ("name", "task_graph", "spatial_map", "calendar") and value is not None]
        calls += [f".spatial_map({self.spatial_map.said})"] if self.spatial_map is not None else []
        calls += [f".calendar({self.calendar!r})"] if self.calendar is not None else []
        if self.task_graph is not None:
            said = ", ".join(f"{name}={value!r}" for name, value in self.task_graph.__dict__.items() if value is not None)
            calls.append(f".task_graph({said})")
        return tuple(calls)

    def diff(self, other: Schedule | Scheduled) -> ScheduleDifference:
        """Return what this schedule says otherwise than another: a line a directive.

        Raises: S102 for a value that is no schedule.
        """
        match other:
            case Schedule():
                return ScheduleDifference(self, other)
            case Scheduled():
                return ScheduleDifference(self, other.schedule)
            case _:
                raise no_schedule(other)

    def __repr__(self) -> str:
        directives = ", ".join(text for _, text in self.directives())
        return f"Schedule({(self.name + ': ') if self.name else ''}{directives or 'default'})"


_DEFAULTS: Mapping[str, str] = {
    "dispatch": "one executor, or on an arch with cores all of them", "streams": "one stream", "stream_by": "one stream",
    "timing": "a task is released as it is submitted", "calendar": "none", "spatial_map": "none",
    "task_graph.deps": "Deps.hybrid(): edges from structure and from regions", "task_graph.pools": "Pools.single()",
    "task_graph.ready": "ReadyPolicy.fifo()", "task_graph.start": "with the first task", "task_graph.trace": "cycles of the arch model",
    "task_graph.window": f"{DEFAULT_WINDOW_TASKS:,} tasks, stall",
}


@dataclass(frozen=True, slots=True, repr=False)
class ScheduleDifference(Displayed):
    """What the schedule `mine` says otherwise than the schedule `theirs`. `rows`: (directive, mine, theirs), "" for what is not said."""

    mine: Schedule
    theirs: Schedule

    @property
    def rows(self) -> tuple[tuple[str, str, str], ...]:
        """The directives that differ, by their parts: (`dispatch`, what mine says, what theirs says)."""
        mine, theirs = (_parts(schedule) for schedule in (self.mine, self.theirs))
        return tuple((part, mine.get(part, ""), theirs.get(part, "")) for part in dict.fromkeys((*mine, *theirs))
                     if mine.get(part) != theirs.get(part))

    def __bool__(self) -> bool:
        return bool(self.rows)

    def __str__(self) -> str:
        lines = []
        for part, mine, theirs in self.rows:
            default = f"default ({default_of(part)})"
            lines.append(f"{part}: {mine or default}, was {theirs or default}")
        return "\n".join(lines) or "the schedules are the same"

    def __repr__(self) -> str:
        return f"ScheduleDifference({', '.join(part for part, _, _ in self.rows) or 'none'})"


def default_of(part: str) -> str:
    """Return what holds where a schedule does not set a part, in words."""
    name, _, unit = part.partition(" ")
    return "not bounded" if unit not in ("", "tasks") else _DEFAULTS[name]


def _parts(schedule: Schedule) -> dict[str, str]:
    """Return what a schedule says, by parts; a task graph says where its edges come from in any case."""
    parts = {part_of_directive(name): text for name, text in schedule.directives()}
    return parts if schedule.task_graph is None else {**parts, "task_graph.deps": repr(schedule.deps)}


def part_of_directive(name: str) -> str:
    """Return the part of a schedule that a directive sets: `dispatch` of `dispatch.hash`, `task_graph.window bytes` of such a window."""
    parts = name.split(".")
    if parts[:2] == ["task_graph", "window"]:
        return f"task_graph.window {parts[2]}"
    return ".".join(parts[:2 if parts[0] == "task_graph" else 1])


class Scheduled(ABC):
    """A workload with a schedule."""

    __slots__ = ("schedule",)

    schedule: Schedule

    @property
    @abstractmethod
    def node(self) -> wl.Workload:
        """The workload, without buffers."""


def schedule_of(given: object, workload: wl.Workload) -> Schedule:
    """Return the schedule that was given for a workload: a Schedule, or the workload itself with its schedule.

    Raises: S102 for any other value, including another workload.
    """
    match given:
        case Schedule():
            return given
        case Scheduled() if given.node == workload:
            return given.schedule
        case Scheduled():
            raise PolicyValueError("the schedule belongs to another workload", here(), expected=f"the workload `{workload.name}` itself",
                                   found=f"`{given.node.name}`, which has other tasks", help="pass its schedule alone: w.schedule")
        case _:
            raise no_schedule(given)


def no_schedule(given: object) -> PolicyValueError:
    """Return the error for a value that stands where a schedule is wanted."""
    return PolicyValueError("this is no schedule", here(), expected="a Schedule, or the workload under one: w.dispatch(...)",
                            found=shown_value(given))
