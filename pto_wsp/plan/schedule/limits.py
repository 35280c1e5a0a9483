"""Limits: how many tasks may be under way, when they are released, and when the first one runs."""

from __future__ import annotations

from fractions import Fraction

from pto_wsp.arch.model import Arch
from pto_wsp.errors import CompileOptionError
from pto_wsp.plan.rules import FullWindow, Release, WindowUnit
from pto_wsp.schedule.directives import StartPolicy, TaskWindow, Timing, WindowMode

_UNITS = {"tasks": WindowUnit.TASKS, "bytes": WindowUnit.BYTES, "entries": WindowUnit.ENTRIES}
_MODES = {WindowMode.STALL: FullWindow.STALL, WindowMode.ABORT: FullWindow.ABORT, WindowMode.BENCHMARK: FullWindow.BENCHMARK}
_MOST_PARTS = 1 << 20     # of a cycle, between two releases


def window_of(window: TaskWindow) -> tuple[int, WindowUnit, FullWindow]:
    """Return the size of a window, what a task takes of it, and what happens when it is full."""
    return window.size, _UNITS[window.unit], _MODES[window.mode]


def release_of(timing: Timing | None, arch: Arch) -> tuple[Release, int, tuple[int, int]]:
    """Return how tasks are released: the way, the size of a batch or the number of lanes in turn, the cycles between two.

    Raises: C104 for a rate on an arch that does not say how fast its clock is, or one of more than a task a part of a cycle.
    """
    if timing is None or timing.kind == "immediate":
        return Release.IMMEDIATE, 0, (0, 1)
    if timing.tasks_per_ms is None:
        return (Release.BATCHED if timing.kind == "batched" else Release.INTERLEAVED), timing.n or 1, (0, 1)
    if arch.clock_ghz is None:
        raise CompileOptionError(f"arch `{arch.name}` has no clock, and rate_limit counts tasks a millisecond", None,
                                 expected="clock_ghz", found="None: its sources give no number",
                                 help='give what you know: arch.model_copy(update={"clock_ghz": 1.8})')
    every = _exactly(arch.clock_ghz) * 1_000_000 / _exactly(timing.tasks_per_ms)
    return Release.RATE, 0, every.limit_denominator(_MOST_PARTS).as_integer_ratio()


def _exactly(number: float) -> Fraction:
    return Fraction(repr(float(number)))     # 2.5 as it is written, not as it is stored


def start_of(start: StartPolicy | None) -> int | None:
    """Return how many tasks must be submitted before the first one runs, None for all."""
    if start is None or start.kind == "immediate":
        return 0
    return None if start.kind == "after_orchestration" else start.n
