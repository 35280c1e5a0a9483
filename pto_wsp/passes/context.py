"""What the passes of a plan are given beside the plan: the schedule, the machine, and what the target does."""

from __future__ import annotations

from pto_wsp.arch.model import Arch
from pto_wsp.schedule.directives import DispatchPolicy, Pools
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Context:
    """The inputs of plan passes besides the plan. `cache_bytes`: the size of the CPU's caches, None if it is unknown.

    `enforced`: the part of the schedule that the target enforces, None for all of it; `overheads`: count the cycles in which an AICPU
    submits, dispatches and retires tasks; `intermediates`: the ids of tensors that hold results between tasks.
    """

    schedule: Schedule
    arch: Arch
    cache_bytes: int | None = None
    enforced: Schedule | None = None
    overheads: bool = False
    intermediates: frozenset[int] = frozenset()

    @property
    def acting(self) -> Schedule:
        """The part of the schedule that the plan does, on all cores of the arch where the schedule places no task."""
        return on_all_cores(self.schedule if self.enforced is None else self.enforced, self.arch)


def on_all_cores(schedule: Schedule, arch: Arch) -> Schedule:
    """Return a schedule that uses every core of the arch: its AICPUs share one queue, with a pool for each execution unit.

    Unchanged: a schedule with a dispatch, a calendar or a number of streams, and any schedule on an arch without a number of cores.
    """
    cores = arch.cores
    placed = (schedule.dispatch, schedule.calendar, schedule.spatial_map, schedule.streams)
    if arch.neutral or not cores.total or any(one is not None for one in placed):
        return schedule
    graph = schedule.task_graph
    if cores.shared:
        return schedule.having(dispatch=DispatchPolicy.work_steal(cores.total))
    if graph is None or graph.pools is None:
        schedule = schedule.with_task_graph(deps=schedule.deps, pools=Pools.by_exec_unit())
    fewest = min(count for count in (cores.cube, cores.vector) if count)
    return schedule.having(dispatch=DispatchPolicy.work_steal(min(arch.aicpu.count or 1, fewest)))
