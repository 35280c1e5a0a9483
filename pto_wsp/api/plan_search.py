"""Search for the plan of a function on tensors: `auto_schedule(f, *arrays)` simulates neighbours of the default plan.

    plan = auto_schedule(f, x, w, arch="ascend_910b", budget=20)      # never slower than f.plan(x, w, arch="ascend_910b")
    f(x, w, plan=plan)

From the best plan so far, each tile, each step of a sum and each batch of tiles is halved and doubled. Values between kernels lie in
scratch of a task or of the whole tensor, and products take their tiles in steps of m and n with either operand staying. Each Tunable
parameter takes its other values, each collective its other algorithms. A plan that does not fit is left out. Each candidate runs once, on
copies of the arrays, and its tasks are simulated; with `wall_time=True` it runs several times on this machine, and the clock decides. Of a
function over a mesh, `f.using(mesh=mesh)`, the arrays are Tensors with layouts, and `arch` says how ranks are linked.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, get_args

import numpy as np

from pto_wsp.api.jit import JitFunction
from pto_wsp.api.tensors.options import arch_of
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.arch.model import Arch
from pto_wsp.errors import AutoScheduleError, PtoError
from pto_wsp.ir.tensor import Tensor
from pto_wsp.ops.spec import Matmul
from pto_wsp.ops.table import TABLE
from pto_wsp.schedule.tiling import TilePlan
from pto_wsp.schedule.tunable import Tunable
from pto_wsp.source import here
from pto_wsp.trace.workload.collectives import Algorithm

_CUTS = ("tiles", "inner", "batch")      # keys whose entries are halved and doubled
_HOST = "host_cpu"
_CLEARLY = 0.97     # of the best time so far: less is no noise
_RUNS, _SECONDS = 5, 0.2      # a plan is timed in so many runs at least, and for so long where runs are short


def find_plan(function: JitFunction[Any], arrays: tuple[object, ...], arch: object, budget: int, *, overheads: bool,
              wall_time: bool = False) -> TilePlan:
    """Return the plan with the fewest simulated cycles, or the least wall time, of at most `budget` plans; the default plan is the first.

    Raises: S111 for arguments other than arrays, and for the wall time of another machine or of ranks; C110 for an arch that does not say
    how ranks are linked; the errors of planning and running the function.
    """
    for array in arrays:
        if not isinstance(array, np.ndarray) and not (isinstance(array, Tensor) and array.layout is not None):
            raise AutoScheduleError("auto_schedule of a function on tensors takes the arrays of a call", here(),
                                    expected=f"auto_schedule({function.__name__}, *arrays), by position: NumPy arrays, over a mesh also "
                                    "Tensors with a layout", found=repr(array)[:80])
    machine = None if arch is None else arch_of(arch)
    is_over_ranks = any(isinstance(array, Tensor) for array in arrays)
    if wall_time and ((machine is not None and machine.name != _HOST) or is_over_ranks):
        raise AutoScheduleError("wall time is that of this machine", here(), expected=f'arch="{_HOST}", or none, without a mesh',
                                found="ranks" if is_over_ranks or machine is None else machine.name,
                                help="without wall_time=True plans are simulated, on any arch")
    runs_on = machine if machine is not None else builtin_arch("unit") if is_over_ranks else None     # a host says no links

    def cost_of(plan: TilePlan) -> float:
        return wall_seconds(function, arrays, plan) if wall_time else simulated_cycles(function, arrays, plan, runs_on, overheads=overheads)

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


def simulated_cycles(function: JitFunction[Any], arrays: tuple[object, ...], plan: TilePlan, arch: Arch | None = None, *,
                     overheads: bool = False) -> int:
    """Return the cycles of a call with a plan, on copies of the arrays. `arch`: None for the arch of the plan."""
    names = function.parameter_names
    copies: dict[str, Any] = {name: _copied(array) for name, array in zip(names, arrays, strict=False)}
    program = function.lower(plan, **copies).compile(arch=arch or arch_of(plan.arch), threads=1).run()
    return int(program.simulate(overheads=overheads).stats.total_cycles)


def _copied(array: object) -> object:
    held = np.array(np.asarray(array))
    return Tensor(held, layout=array.layout) if isinstance(array, Tensor) else held


def _product_steps(plan: TilePlan) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the groups of products that take whole tiles, with the steps to try: halves of a tile's rows, its columns and both."""
    for cost in plan.costs:
        tiles = [entry.value for entry in plan.entries if entry.key == "tiles" and entry.name == cost.name]
        stepped = any(entry.key == "inner" and entry.name == cost.name and entry.axis in ("m", "n") for entry in plan.entries)
        if any(isinstance(TABLE.get(op), Matmul) for op in cost.ops) and not stepped and len(tiles) >= 2:
            m, n = (tile // 2 if isinstance(tile, int) else 0 for tile in tiles[-2:])
            tried: tuple[dict[str, object], ...] = ({"m": m}, {"n": n}, {"m": m, "n": n}, {"m": m, "n": n, "stay": "right"})
            yield from ((cost.name, steps) for steps in tried if all(steps.values()))


def _neighbours(plan: TilePlan, tunables: Mapping[str, Tunable]) -> Iterator[TilePlan]:
    """Yield the plans that differ from a plan by one entry and fit."""
    changes: list[dict[str, dict[str, object]]] = [
        {entry.key: {entry.name: algorithm}} for entry in plan.entries if entry.key == "collectives"
        for algorithm in get_args(Algorithm) if algorithm != entry.value]
    for entry in plan.entries:
        if entry.key in _CUTS and isinstance(entry.value, int):
            sizes = [size for size in (entry.value * 2, entry.value // 2) if size]
            changes += [{entry.key: {entry.name: {entry.axis: size} if entry.axis else size}} for size in sizes]
    changes += [{"keep": {entry.name: "whole" if entry.value == "task" else "task"}} for entry in plan.entries
                if entry.key == "keep" and entry.value in ("task", "whole")]
    changes += [{"inner": {name: steps}} for name, steps in _product_steps(plan)]
    changes += [{"tunables": {name: value}} for name, tunable in tunables.items() for value in tunable.values]
    batches: dict[str, object] = {entry.name: entry.value for entry in plan.entries if entry.key == "batch"}
    for change in changes:
        try:
            yield plan.but(**{"batch": batches, **change} if batches else change)
        except PtoError:
            continue
