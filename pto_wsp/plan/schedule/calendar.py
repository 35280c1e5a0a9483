"""Calendars: for each task its executor and its place among the tasks of that executor, from keys or from a table of the plan."""

from __future__ import annotations

from pto_wsp.arch.model import Arch
from pto_wsp.errors import ArchError, CalendarError
from pto_wsp.plan.model import Check, CheckKind, Submit, TaskPlan
from pto_wsp.plan.schedule.keys import TaskKeys
from pto_wsp.plan.waits.elements import has_waits
from pto_wsp.schedule.calendar import MAX_EXECUTORS, Calendar
from pto_wsp.source import here
from pto_wsp.types import scalar as s


def calendar_workers(calendar: Calendar, arch: Arch) -> int:
    """Return the number of executors of a calendar; 0 for one by a function: as many as its tasks name, which a run tells.

    Raises: C110 when the arch has fewer.
    """
    named, most = calendar.n_executors or 0, most_executors(arch)
    if named > most:
        raise ArchError(f"the calendar names more executors than arch `{arch.name}` has", here(), expected=f"at most {most}",
                        found=f"{named}")
    return named


def most_executors(arch: Arch) -> int:
    """Return how many executors a calendar may name: the AICPUs, or the cores where these are more; an executor of a pool is a core."""
    if arch.aicpu.count is None:
        return MAX_EXECUTORS
    return min(MAX_EXECUTORS, max(arch.aicpu.count, (arch.cores.cube or 0) + (arch.cores.vector or 0)))


def refuse_reads(plan: TaskPlan) -> None:
    """Refuse a calendar for tasks that are known only while others run.

    Raises: S106.
    """
    if has_waits(plan):
        raise CalendarError(f"which tasks `{plan.name}` has depends on what its tasks compute", here(),
                            expected="tasks that are all known before the first one runs",
                            help="use dispatch or streams, which place tasks as they are made")


def slot_of(calendar: Calendar, keys: TaskKeys, task: Submit, arch: Arch) -> tuple[s.Scalar, s.Scalar]:
    """Return the executor of one task, and its position there."""
    if calendar.worker is None or calendar.position is None:
        keys.checks.append(Check(CheckKind.CALENDAR, s.TaskIndex(), s.Const(0), s.Const(len(calendar.table) - 1), "calendar",
                                 span=task.span))
        return (s.CalendarEntry(0), s.CalendarEntry(1)) if calendar.table else (s.Const(0), s.Const(0))
    return keys.natural(calendar.worker, "calendar worker", most_executors(arch) - 1), keys.value(calendar.position)
