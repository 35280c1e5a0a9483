"""Limits: how many tasks may be under way, when they are released, and when the first one runs."""

from __future__ import annotations

from pto_wsp.arch.control import cycles_between
from pto_wsp.arch.model import Arch
from pto_wsp.plan.model import Check, CheckKind, Submit, TaskPlan
from pto_wsp.plan.rules import FullWindow, Release, WindowUnit
from pto_wsp.schedule.directives import StartPolicy, TaskWindow, Timing, WindowMode
from pto_wsp.types import scalar as s

_UNITS = {"tasks": WindowUnit.TASKS, "bytes": WindowUnit.BYTES, "entries": WindowUnit.ENTRIES}
_MODES = {WindowMode.STALL: FullWindow.STALL, WindowMode.ABORT: FullWindow.ABORT, WindowMode.BENCHMARK: FullWindow.BENCHMARK}


def window_of(window: TaskWindow) -> tuple[int, WindowUnit, FullWindow]:
    """Return the size of a window, what a task takes of it, and what happens when it is full."""
    return window.size, _UNITS[window.unit], _MODES[window.mode]


def room_checks(window: TaskWindow, plan: TaskPlan, task: Submit) -> tuple[Check, ...]:
    """Return the check that a task alone does not need more than there is of a window that waits or ends the run."""
    if window.mode is WindowMode.BENCHMARK or window.unit == "tasks":
        return ()
    need: s.Scalar = s.Const(len(task.places))
    if window.unit == "bytes":
        need = s.Const(0)
        for place in task.places:
            slot = plan.tensors[place.slot]
            if slot.kept and place.role.writes:
                need = s.add(need, s.mul(s.mul(*place.extent), s.Const(slot.ref.dtype.nbytes)))
    if isinstance(need, s.Const) and need.value <= window.size:
        return ()
    name = plan.kernels[task.kernel].kernel.name
    return (Check(CheckKind.ROOM, need, s.Const(0), s.Const(window.size), f"{name} under {window!r}", span=task.span),)


def release_of(timing: Timing | None, arch: Arch) -> tuple[Release, int, tuple[int, int]]:
    """Return how tasks are released: the way, the size of a batch or the number of lanes in turn, the cycles between two.

    Raises: C110 for a rate on an arch without a clock.
    """
    if timing is None or timing.kind == "immediate":
        return Release.IMMEDIATE, 0, (0, 1)
    if timing.tasks_per_ms is None:
        return (Release.BATCHED if timing.kind == "batched" else Release.INTERLEAVED), timing.n or 1, (0, 1)
    return Release.RATE, 0, cycles_between(arch, timing.tasks_per_ms).as_integer_ratio()


def start_of(start: StartPolicy | None) -> int | None:
    """Return how many tasks must be submitted before the first one runs, None for all."""
    if start is None or start.kind == "immediate":
        return 0
    return None if start.kind == "after_orchestration" else start.n
