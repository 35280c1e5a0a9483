"""Calendars: for each task its executor and its place among the tasks of that executor."""

from __future__ import annotations

from pto_wsp.arch.model import Arch
from pto_wsp.plan.schedule.keys import TaskKeys
from pto_wsp.schedule.directives import Calendar
from pto_wsp.types import scalar as s

MAX_WORKERS = 1 << 16


def calendar_workers(calendar: Calendar) -> int:
    """Return the number of executors of a calendar; 0 for one by a function: as many as its tasks name, which a run tells."""
    return 1 + max((worker for worker, _ in calendar.table), default=0) if calendar.table else 0


def slot_of(calendar: Calendar, keys: TaskKeys, arch: Arch) -> tuple[s.Scalar, s.Scalar]:
    """Return the executor of one task, and its position there."""
    if calendar.worker is None or calendar.position is None:
        return s.Const(0), s.Const(0)
    most = min(MAX_WORKERS, arch.aicpu.count or MAX_WORKERS)
    return keys.natural(calendar.worker, "calendar worker", most - 1), keys.value(calendar.position)
