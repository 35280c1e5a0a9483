"""What the passes of a plan are given beside the plan: the schedule, the machine, and what the target does."""

from __future__ import annotations

from pto_wsp.arch.model import Arch
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Context:
    """What passes are given beside the plan. `cache_bytes`: of the caches that the code will run with, None where nobody knows.

    `enforced`: the part of the schedule that the target enforces, None for all of it; `overheads`: what submitting, dispatching and
    retiring a task costs an AICPU is counted; `intermediates`: the ids of tensors that hold results between tasks.
    """

    schedule: Schedule
    arch: Arch
    cache_bytes: int | None = None
    enforced: Schedule | None = None
    overheads: bool = False
    intermediates: frozenset[int] = frozenset()

    @property
    def acting(self) -> Schedule:
        """The part of the schedule that the plan does."""
        return self.schedule if self.enforced is None else self.enforced
