"""Directives that contradict one another, and those that mean nothing without another.

A pair that contradicts is refused where the second one is said. What is missing is refused by compile(), as the order of calls is free.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two directives, each the beginning of names as `Schedule.directives` has them, that cannot both act, and why."""

    first: str
    second: str
    reason: str


@dataclass(frozen=True, slots=True)
class Need:
    """A directive that needs one of others, and why."""

    directive: str
    others: tuple[str, ...]
    reason: str


_ORDER = "a calendar says in which order each executor runs its tasks"
CONFLICTS = (
    Conflict("calendar", "dispatch", "a calendar says on which executor each task runs"),
    Conflict("calendar", "streams", _ORDER),
    Conflict("calendar", "stream_by", _ORDER),
    Conflict("calendar", "timing.interleaved", _ORDER),
    Conflict("calendar", "task_graph.ready.work_steal", "nobody may take a task that a calendar gives to another executor"),
    Conflict("calendar", "task_graph.ready.priority", _ORDER),
    Conflict("calendar", "task_graph.pools.by_exec_unit", "a calendar's worker is one executor, and an AICPU would have one for each core"),
    Conflict("calendar", "task_graph.pools.custom", "a calendar's worker is one executor, and an AICPU would have one for each pool"),
)
NEEDS = (
    Need("timing.interleaved", ("streams", "stream_by"), "tasks of streams take turns, and no task is in one"),
)


def conflict_of(names: Collection[str]) -> Conflict | None:
    """Return the first pair of directives among `names` that contradict each other."""
    return next((pair for pair in CONFLICTS if any(names_of(pair.first, names)) and any(names_of(pair.second, names))), None)


def needs_of(names: Collection[str]) -> Iterator[Need]:
    """Yield what is missing for directives among `names`."""
    for need in NEEDS:
        if any(names_of(need.directive, names)) and not any(name for other in need.others for name in names_of(other, names)):
            yield need


def names_of(prefix: str, names: Collection[str]) -> Iterator[str]:
    """Yield those of `names` that are `prefix`, or begin with it: `timing` of `timing.batched`."""
    return (name for name in names if name == prefix or name.startswith(f"{prefix}."))
