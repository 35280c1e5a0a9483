"""What auto_schedule returns: the schedule, the workload with it, and the table of what was tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from pto_wsp.api.workloads.workload import Workload
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.values import dataclass

_SHOWN = 10
_WIDTH = 110      # of a schedule in the table


@dataclass(frozen=True, slots=True)
class Trial:
    """One schedule that was tried: its cycles in simulated time, or (None) why it was refused.

    `lower_bound`: no schedule on as many executors takes less.
    """

    schedule: Schedule
    tunables: Mapping[str, object]
    cycles: int | None
    lower_bound: int
    refused: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class AutoSchedule:
    """The best that was found. `workload` is ready to compile: the tunables' values and `schedule` are in it.

    `trials` has everything that was tried, in order; the first is what was there before: the schedule as given, usual values.
    """

    workload: Workload
    schedule: Schedule
    tunables: Mapping[str, object]
    cycles: int
    default_cycles: int
    lower_bound: int
    trials: tuple[Trial, ...] = field(repr=False)
    seed: int = 0

    @property
    def speedup(self) -> float:
        """How many times as fast as before, in simulated time."""
        return self.default_cycles / self.cycles if self.cycles else 1.0

    @property
    def gap(self) -> float:
        """How far cycles is above the lower bound on as many executors: 0.0 is as good as it gets."""
        return self.cycles / self.lower_bound - 1 if self.lower_bound else 0.0

    def __str__(self) -> str:
        """Return the schedule, what it gains, and the table of the best that were tried."""
        refused = sum(trial.cycles is None for trial in self.trials)
        values = "".join(f", {name}={value!r}" for name, value in self.tunables.items())
        lines = [f"{self.schedule!r}{values}",
                 f"{self.cycles} cycles, {self.default_cycles} before ({self.speedup:.2f} times as fast); "
                 f"{self.gap:.1%} above the lower bound of {self.lower_bound}",
                 f"{len(self.trials)} tried, seed {self.seed}" + (f", {refused} of them refused" if refused else "")]
        ranked = sorted((trial for trial in self.trials if trial.cycles is not None), key=lambda trial: trial.cycles or 0)
        lines.append(f"{'cycles':>12} {'above bound':>12}  schedule")
        for trial in ranked[:_SHOWN]:
            gap = f"{(trial.cycles or 0) / trial.lower_bound - 1:.1%}" if trial.lower_bound else "-"
            values = "".join(f", {name}={value!r}" for name, value in trial.tunables.items())
            lines.append(f"{trial.cycles:>12} {gap:>12}  {_short(f'{trial.schedule!r}{values}')}")
        if len(ranked) > _SHOWN:
            lines.append(f"{'…':>12} {'':>12}  {len(ranked) - _SHOWN} more, in trials")
        return "\n".join(lines)


def _short(text: str) -> str:
    return text if len(text) <= _WIDTH else text[:_WIDTH - 1] + "…"
