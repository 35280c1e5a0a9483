"""Change schedules by policies, and name what differs between two in a few words.

>>> changed(Schedule(), [TaskWindow(256), ReadyPolicy.work_steal()])
Schedule(Deps.hybrid(), ReadyPolicy.work_steal(), TaskWindow(size=256, unit='tasks', mode=WindowMode.STALL))
>>> code_of(changed(Schedule(), TaskWindow(256)))
'.task_graph(deps=Deps.hybrid(), window=TaskWindow(size=256, unit=\'tasks\', mode=WindowMode.STALL))'
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from pto_wsp.errors import ComparisonError
from pto_wsp.schedule.calendar import Calendar
from pto_wsp.schedule.directives import (
    Deps,
    Dispatch,
    Pools,
    ReadyPolicy,
    SpatialMap,
    StartPolicy,
    TaskWindow,
    Timing,
    TracePolicy,
    WindowMode,
    by_unit,
)
from pto_wsp.schedule.policy import Policy, shown_value
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.source import here

_OF_SCHEDULE = {Timing: "timing", Calendar: "calendar", SpatialMap: "spatial_map"}
_OF_GRAPH = {Deps: "deps", Pools: "pools", ReadyPolicy: "ready", StartPolicy: "start", TracePolicy: "trace"}


# -- changes -----------------------------------------------------------------------------------------------------------
def changed(schedule: Schedule, change: object) -> Schedule:
    """Return the schedule with a policy in place of its own on the same subject, or with several: a list, a tuple, a schedule is whole.

    A window takes the place of that of its unit; the others stay.

    Raises: S112 for what is no policy, S105 if it contradicts the rest of the schedule.
    """
    match change:
        case Schedule():
            return change
        case TaskWindow():
            kept = [window for window in schedule.windows if window.unit != change.unit]
            return _in_graph(schedule, "window", by_unit([*kept, change]))
        case list() | tuple() if change:
            for one in change:
                schedule = changed(schedule, one)
            return schedule
        case Policy():
            if isinstance(change, get_args(get_args(Dispatch)[0])):
                return schedule.saying(dispatch=change)
            for kind, name in _OF_SCHEDULE.items():
                if isinstance(change, kind):
                    return schedule.saying(**{name: change})
            for kind, name in _OF_GRAPH.items():
                if isinstance(change, kind):
                    return _in_graph(schedule, name, change)
    raise ComparisonError("this changes no schedule", here(), found=shown_value(change),
                           expected="a Schedule, the workload under one, a policy such as TaskWindow(256), or a list of policies")


def _in_graph(schedule: Schedule, name: str, policy: object) -> Schedule:
    """Return the schedule with a field of its task graph; where it had none, edges come from where they came from without."""
    deps = schedule.deps if schedule.task_graph is None else schedule.task_graph.deps
    return schedule.with_task_graph(**({"deps": deps, name: policy}))


# -- what schedules say, by subject ------------------------------------------------------------------------------------
def settings_of(schedule: Schedule) -> Mapping[str, str]:
    """Return what a schedule says, by subject, in a few words each; for a subject that it leaves open the default."""
    graph = schedule.task_graph
    parts: dict[str, Policy | None] = {"dispatch": schedule.dispatch, "timing": schedule.timing, "calendar": schedule.calendar,
                                       "map": schedule.spatial_map}
    said = {"dispatch": "", "streams": ""} | {subject: short(policy) for subject, policy in parts.items() if policy is not None}
    if schedule.streams is not None:
        said["streams"] = f"{schedule.streams}"
    if schedule.stream_by is not None:
        said["streams"] = f"by {schedule.stream_by!r}"
    said["ready"] = short(ReadyPolicy() if graph is None or graph.ready is None else graph.ready)
    for window in schedule.windows:
        said["window" if window.unit == "tasks" else f"window of {window.unit}"] = short(window)
    said |= {"pools": short(Pools() if graph is None or graph.pools is None else graph.pools), "deps": short(schedule.deps)}
    if graph is not None:
        said |= {subject: short(policy) for subject, policy in (("start", graph.start), ("cycles", graph.trace)) if policy is not None}
    return {subject: text or "default" for subject, text in said.items()}


def short(policy: Policy) -> str:
    """Return a policy in a few words: `round_robin(4)`, `256`, `work_steal`."""
    if isinstance(policy, TaskWindow):
        return f"{policy.size:,}" + f", {policy.mode.value}" * (policy.mode is not WindowMode.STALL)
    if isinstance(policy, Calendar):
        return repr(policy)
    values = [repr(value) for name, value in policy.shown_fields() if name != "kind" and value is not None]
    return policy.directive.rpartition(".")[2] + (f"({', '.join(values)})" if values else "")


def differences(first: Mapping[str, str], second: Mapping[str, str]) -> Mapping[str, str]:
    """Return what the second says where it differs from the first, by subject; "default" where only the first says something."""
    return {subject: second.get(subject, "default") for subject in dict.fromkeys((*first, *second))
            if first.get(subject, "default") != second.get(subject, "default")}


# -- schedules as Python -----------------------------------------------------------------------------------------------
def code_of(schedule: Schedule) -> str:
    """Return Python that puts the schedule on a workload `w`: what stands behind `w` in `w.dispatch(...).task_graph(...)`.

    A schedule with a table of places is written as its JSON.
    """
    if schedule.calendar is None or schedule.calendar.worker is not None:
        return schedule.code
    return f".under(Schedule.model_validate_json({schedule.model_dump_json()!r}))"
