"""Search for the plan of a function on tensors: `auto_schedule(f, *arrays)` simulates neighbours of the default plan.

    plan = auto_schedule(f, x, w, arch="ascend_910b", budget=20)      # never slower than f.plan(x, w, arch="ascend_910b")
    f(x, w, plan=plan)

From the best plan so far, each tile and each step of a sum is halved and doubled, and each Tunable parameter takes its other values. A
plan that does not fit is left out. Each candidate runs once, on copies of the arrays, and its tasks are simulated; with `wall_time=True` it
runs several times on this machine, and the clock decides.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from pto_wsp.api.jit import JitFunction
from pto_wsp.api.tensors.options import arch_of
from pto_wsp.errors import AutoScheduleError, PtoError
from pto_wsp.schedule.tiling import TilePlan
from pto_wsp.schedule.tunable import Tunable
from pto_wsp.source import here

_CUTS = ("tiles", "inner")      # keys whose entries are halved and doubled
_HOST = "host_cpu"
_CLEARLY = 0.97     # of the best time so far: less is no noise
_RUNS, _SECONDS = 5, 0.2      # a plan is timed in so many runs at least, and for so long where runs are short


def find_plan(function: JitFunction[Any], arrays: tuple[object, ...], arch: object, budget: int, *, overheads: bool,
              wall_time: bool = False) -> TilePlan:
    """Return the plan with the fewest simulated cycles, or the least wall time, of at most `budget` plans; the default plan is the first.

    Raises: S111 for arguments other than arrays, and for the wall time of another machine; the errors of planning and running the function.
    """
    for array in arrays:
        if not isinstance(array, np.ndarray):
            raise AutoScheduleError("auto_schedule of a function on tensors takes the arrays of a call", here(),
                                    expected=f"auto_schedule({function.__name__}, *arrays), NumPy arrays by position",
                                    found=repr(array)[:80])
    machine = None if arch is None else arch_of(arch)
    if wall_time and machine is not None and machine.name != _HOST:
        raise AutoScheduleError("wall time is that of this machine", here(), expected=f'arch="{_HOST}", or none', found=machine.name,
                                help="without wall_time=True plans are simulated, on any arch")

    def cost_of(plan: TilePlan) -> float:
        return wall_seconds(function, arrays, plan) if wall_time else simulated_cycles(function, arrays, plan, overheads=overheads)

    default: TilePlan = function.plan(*arrays, arch=machine)
    best = default
    least = cost_of(best)
    tried, seen = 1, {best.digest}
    improved = True
    while improved:
        improved = False
        for plan in _neighbours(best, function.tunables):
            if tried >= budget:
                improved = False
                break
            if plan.digest in seen:
                continue
            seen.add(plan.digest)
            tried += 1
            try:
                cost = cost_of(plan)
            except PtoError:
                continue      # what a plan by hand would be refused for
            if cost < least * (_CLEARLY if wall_time else 1):
                best, least, improved = plan, cost, True
                break
    if wall_time and best is not default and cost_of(best) >= cost_of(default):
        return default        # the first time was noise
    return best


def wall_seconds(function: JitFunction[Any], arrays: tuple[object, ...], plan: TilePlan) -> float:
    """Return the least seconds of a run with a plan on this machine, on copies of the arrays and all its cores."""
    names = function.parameter_names
    copies: dict[str, Any] = {name: np.array(array) for name, array in zip(names, arrays, strict=False)}
    program = function.lower(plan, **copies).compile()
    program.run()
    least, began, runs = float("inf"), time.perf_counter(), 0
    while runs < _RUNS or time.perf_counter() - began < _SECONDS:
        start = time.perf_counter()
        program.run()
        least, runs = min(least, time.perf_counter() - start), runs + 1
    return least


def simulated_cycles(function: JitFunction[Any], arrays: tuple[object, ...], plan: TilePlan, *, overheads: bool = False) -> int:
    """Return the cycles of a call with a plan, on copies of the arrays and the arch of the plan."""
    names = function.parameter_names
    copies: dict[str, Any] = {name: np.array(array) for name, array in zip(names, arrays, strict=False)}
    program = function.lower(plan, **copies).compile(arch=arch_of(plan.arch), threads=1).run()
    return int(program.simulate(overheads=overheads).stats.total_cycles)


def _neighbours(plan: TilePlan, tunables: Mapping[str, Tunable]) -> Iterator[TilePlan]:
    """Yield the plans that differ from a plan by one entry and fit."""
    changes: list[dict[str, dict[str, object]]] = []
    for entry in plan.entries:
        if entry.key in _CUTS and isinstance(entry.value, int):
            sizes = [size for size in (entry.value * 2, entry.value // 2) if size]
            changes += [{entry.key: {entry.name: {entry.axis: size}}} for size in sizes]
    changes += [{"tunables": {name: value}} for name, tunable in tunables.items() for value in tunable.values]
    for change in changes:
        try:
            yield plan.but(**change)
        except PtoError:
            continue
