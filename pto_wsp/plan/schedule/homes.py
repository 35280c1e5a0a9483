"""Homes: which AICPU each task is home on, from dispatch, from streams, or from the processes of the workload."""

from __future__ import annotations

from typing import assert_never

from pto_wsp.arch.control import aicpus_of
from pto_wsp.arch.model import Arch
from pto_wsp.plan.model import Submit
from pto_wsp.plan.schedule.calendar import calendar_workers
from pto_wsp.plan.schedule.keys import TaskKeys
from pto_wsp.schedule.directives import Affinity, Dispatch, DispatchBy, DispatchSteal, Hash, RoundRobin
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.types import scalar as s
from pto_wsp.types.scalar import Op


def n_homes(schedule: Schedule, arch: Arch) -> int | None:
    """Return the number of AICPUs that the schedule names; None where it names none, so that each process has its own; 0 where a run tells.

    Raises: C110 when the arch has fewer.
    """
    match schedule.dispatch:
        case None if schedule.calendar is not None:
            return calendar_workers(schedule.calendar, arch)
        case None:
            return None if schedule.streams is None else aicpus_of(arch, schedule.streams)
        case dispatch:
            return aicpus_of(arch, dispatch.num_aicpus)


def keeps_together(dispatch: Dispatch | None) -> bool:
    """Tell whether a dispatch puts tasks with something in common on one AICPU; the others only spread tasks evenly."""
    return isinstance(dispatch, Affinity | DispatchBy | Hash)


def home_of(schedule: Schedule, keys: TaskKeys, task: Submit, lane: s.Scalar, n_workers: int) -> s.Scalar:
    """Return the home of one task. Without dispatch, stream k is on AICPU k; `lane`: its stream, from 1."""
    dispatch, n = schedule.dispatch, s.Const(n_workers)
    match dispatch:
        case None:
            return task.worker if schedule.streams is None else s.sub(lane, s.Const(1))
        case DispatchSteal():
            return s.Const(0)
        case RoundRobin():
            return s.binary(Op.MOD, s.TaskIndex(), n)
        case Affinity(key=key) | DispatchBy(key=key):
            return s.binary(Op.MOD, keys.value(key), n)
        case Hash(key=key):
            return s.binary(Op.HASHMOD, keys.value(key), n)
        case _:
            assert_never(dispatch)
