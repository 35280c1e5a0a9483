"""Search for a schedule: simulate many on the recorded tasks of one run, and return the one of least cycles with all that was tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pto_wsp.api.workloads.workload import Workload

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from pto_wsp.auto.result import AutoSchedule


def auto_schedule(what: Workload | Callable[..., Workload], *, arch: object = None, budget: int = 100, seed: int = 0,
                  executor: Executor | None = None, bindings: Mapping[str, object] | None = None, overheads: bool = False,
                  progress: bool | None = None) -> AutoSchedule:
    """Return the schedule of least simulated cycles that is found, never worse than the one that is there.

    what: a workload, or a function without other parameters than Tunables that returns one. What its schedule says already stays;
    what it leaves open is searched: dispatch, streams, the order of ready tasks, pools, window, and edges from data instead of structure.
    arch: an Arch or its name, as for compile(). budget: how many schedules are simulated, at most. seed: the same one gives the same
    result, whatever the executor. executor: any of concurrent.futures, for simulating side by side; one of processes gets a pickled copy
    of workload and arrays. bindings: as for run(). overheads: count what the control processors cost. progress: show a bar on the
    terminal; None: where there is one.
    The workload runs once (once for each tried combination of Tunables, and worker process), as it stands: its outputs are written.
    Raises: S111 for what cannot be searched, and what compiling and running the workload raises.

    >>> print(auto_schedule(w, arch="ascend_910b", budget=50))  # doctest: +SKIP
    """
    return _search()(what, arch, budget, seed, executor, {} if bindings is None else bindings, overheads=overheads, progress=progress)


def _search() -> Callable[..., AutoSchedule]:
    from pto_wsp.auto.find import find_schedule  # brings concurrent.futures and logging along, which few programs need

    return find_schedule
