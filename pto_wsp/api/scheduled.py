"""What has a schedule: where a Schedule is asked for, a workload under one stands for it."""

from __future__ import annotations

from abc import ABC, abstractmethod

from pto_wsp.errors import PolicyValueError
from pto_wsp.expr import workload as wl
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.source import here


class Scheduled(ABC):
    """A workload under a schedule."""

    __slots__ = ("schedule",)

    schedule: Schedule

    @property
    @abstractmethod
    def node(self) -> wl.Workload:
        """The workload, without buffers."""


def schedule_of(given: object, workload: wl.Workload) -> Schedule:
    """Return the schedule that was given for a workload, as it is or with the workload itself.

    Raises: S102 for anything else, another workload included.
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
            raise PolicyValueError("this is no schedule", here(), expected="a Schedule, or the workload under one: w.dispatch(...)",
                                   found=repr(given))
