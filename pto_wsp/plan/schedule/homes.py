"""Homes: which AICPU each task is home on, from dispatch, from streams, or from the processes of the workload."""

from __future__ import annotations

from typing import assert_never

from pto_wsp.arch.model import Arch
from pto_wsp.errors import CompileOptionError
from pto_wsp.plan.model import Submit
from pto_wsp.plan.schedule.keys import TaskKeys
from pto_wsp.schedule.directives import Affinity, DispatchBy, DispatchSteal, Hash, RoundRobin
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.types import scalar as s
from pto_wsp.types.scalar import Op

MAX_WORKERS = 1 << 16


def n_homes(schedule: Schedule, arch: Arch) -> int | None:
    """Return the number of AICPUs that the schedule names; None where it names none, so that each process has its own.

    Raises: C104 when the arch has fewer.
    """
    dispatch = schedule.dispatch
    match dispatch:
        case None:
            return schedule.streams if schedule.streams is None else checked_count(schedule.streams, f"streams({schedule.streams})", arch)
        case DispatchSteal(num_aicpus=None):
            return arch.aicpu.count or arch.aicpu.default_count
        case _:
            return checked_count(dispatch.num_aicpus or 1, repr(dispatch), arch)


def checked_count(count: int, said: str, arch: Arch) -> int:
    """Return a number of AICPUs that the arch has.

    Raises: C104 when it has fewer.
    """
    if arch.aicpu.count is not None and count > arch.aicpu.count:
        raise CompileOptionError(f"arch `{arch.name}` has fewer AICPUs than the schedule names", None,
                                 expected=f"at most {arch.aicpu.count}: aicpu.count", found=said)
    return count


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
