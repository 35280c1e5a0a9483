"""Search for the plan of a function on tensors: `auto_schedule(f, *arrays)` simulates neighbours of the default plan.

    plan = auto_schedule(f, x, w, arch="ascend_910b", budget=20)      # never slower than f.plan(x, w, arch="ascend_910b")
    f(x, w, plan=plan)

From the best plan so far, each tile, each step of a sum and each batch of tiles is halved and doubled. Values between kernels lie in
scratch of a task or of the whole tensor, and products take their tiles in steps of m and n with either operand staying. Each Tunable
parameter takes its other values, each collective its other algorithms. A plan that does not fit is left out. Those whose kernels should
cost least are tried first, some at a time, on copies of the arrays: the tasks of a call are simulated, or with `wall_time=True` calls are
timed on this machine, on as many threads as `arch` has cores. Of a function over a mesh, `f.using(mesh=mesh)`, the arrays are Tensors with
layouts, and `arch` says how ranks are linked.
"""

from __future__ import annotations

import inspect
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, product
from typing import Any, get_args

import numpy as np

from pto_wsp.api.jit import JitFunction
from pto_wsp.api.program import Program
from pto_wsp.api.tensors.options import arch_of
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.arch.model import Arch
from pto_wsp.calls import bind
from pto_wsp.errors import AutoScheduleError, PtoError
from pto_wsp.ir.exchange import array_of, is_array
from pto_wsp.ir.tensor import Tensor
from pto_wsp.ir.tensor_type import TensorType
from pto_wsp.ops.spec import Matmul
from pto_wsp.ops.table import TABLE
from pto_wsp.schedule.tiling import TilePlan
from pto_wsp.schedule.tunable import Tunable
from pto_wsp.source import here
from pto_wsp.timing.stats import Stats
from pto_wsp.trace.kernel.annotations import ScalarAnnotation
from pto_wsp.trace.tensor.leaves import leaves_of, with_leaves
from pto_wsp.trace.workload.collectives import Algorithm

_CUTS = ("tiles", "inner", "batch")      # keys whose entries are halved and doubled
_HOST = "host_cpu"
_CLEARLY = 0.97     # of the best time: less is no noise
_RUNS, _SECONDS = 5, 0.2      # plans are timed in so many runs each at least, and for so long where runs are short
_AT_ONCE = 4        # plans that are compared with the best one
_FEW_VALUES = 16    # of all Tunable parameters together
_FEW_TASKS = 2000   # of a call: Python makes them in less time than the C compiler takes


def find_plan(function: JitFunction[Any], arrays: tuple[object, ...], arch: object, budget: int, *, overheads: bool,
              wall_time: bool = False) -> TilePlan:
    """Return the plan with the fewest simulated cycles, or the least wall time, of at most `budget` plans; the default plan is the first.

    Raises: T101 for arguments that are left out, S111 for a call without arrays, and for the wall time of another machine or of ranks; C110
    for an arch that does not say how ranks are linked; the errors of planning and running the function.
    """
    leaves = [leaf for value in arrays for _, leaf in leaves_of(value, "")]
    wrong = [leaf for leaf in leaves if isinstance(leaf, TensorType | ScalarAnnotation) or (isinstance(leaf, Tensor) and leaf.data is None)]
    if wrong or not any(isinstance(leaf, Tensor) or is_array(leaf) for leaf in leaves):
        raise AutoScheduleError("auto_schedule of a function on tensors takes the arrays of a call", here(),
                                expected=f"auto_schedule({function.__name__}, *arguments), by position, as a call takes them",
                                found=repr(wrong[0] if wrong else arrays)[:80])
    bind(function.__name__, inspect.signature(function), arrays, {})
    machine = None if arch is None else arch_of(arch)
    is_over_ranks = any(isinstance(leaf, Tensor) and leaf.layout is not None for leaf in leaves)
    if wall_time and ((machine is not None and machine.name != _HOST) or is_over_ranks):
        raise AutoScheduleError("wall time is that of this machine", here(), expected=f'arch="{_HOST}", or none, without a mesh',
                                found="ranks" if is_over_ranks or machine is None else machine.name,
                                help="without wall_time=True plans are simulated, on any arch")
    runs_on = machine if machine is not None else builtin_arch("unit") if is_over_ranks else None     # a host says no links

    best: TilePlan = function.plan(*arrays, arch=machine)
    default, costs_of = best, _clock(function, arrays, machine) if wall_time else _simulator(function, arrays, runs_on, overheads=overheads)
    tried, seen, improved = 1, {best.digest}, True
    costs_of([best])      # raises what a call raises
    while improved and tried < budget:
        improved = False
        near = sorted((plan for plan in _neighbours(best, function.tunables) if plan.digest not in seen), key=_planned_cycles)
        for at in range(0, min(len(near), budget - tried), _AT_ONCE):
            some = near[at:at + min(_AT_ONCE, budget - tried)]
            tried += len(some)
            seen.update(plan.digest for plan in some)
            least, *costs = costs_of([best, *some])
            if min(costs) < least * (_CLEARLY if wall_time else 1):
                best, improved = some[costs.index(min(costs))], True
                break
    if wall_time and best is not default:
        first, found = costs_of([default, best])
        return default if found >= first else best        # the first time was noise
    return best


def _planned_cycles(plan: TilePlan) -> int:
    return sum(cost.cycles or 0 for cost in plan.costs)


def _clock(function: JitFunction[Any], arrays: tuple[object, ...], machine: Arch | None) -> Callable[[Sequence[TilePlan]], Sequence[float]]:
    return lambda plans: wall_seconds(function, arrays, plans, None if machine is None else machine.cores.cube)


def _simulator(function: JitFunction[Any], arrays: tuple[object, ...], arch: Arch | None, *, overheads: bool,
               ) -> Callable[[Sequence[TilePlan]], Sequence[float]]:
    """Return what gives the cycles of plans, infinite for a plan that is refused; each is simulated once, the first after a real run."""
    known: dict[str, float] = {}
    n_tasks = 0

    def costs_of(plans: Sequence[TilePlan]) -> Sequence[float]:
        nonlocal n_tasks
        for plan in plans:
            if plan.digest not in known:
                try:
                    stats = simulated(function, arrays, plan, arch, overheads=overheads, runs=not 0 < n_tasks <= _FEW_TASKS)
                except PtoError:
                    if not known:
                        raise
                    known[plan.digest] = math.inf      # what a plan by hand would be refused for
                    continue
                known[plan.digest], n_tasks = stats.total_cycles, stats.task_count
        return [known[plan.digest] for plan in plans]

    return costs_of


def wall_seconds(function: JitFunction[Any], arrays: tuple[object, ...], plans: Sequence[TilePlan], threads: int | None = None,
                 ) -> Sequence[float]:
    """Return the least seconds of a run with each plan on this machine, on copies of the arrays, in turns; infinite for a refused plan.

    `threads`: None for all cores. The time of one thread is its processor's.
    Raises: what the first plan is refused for.
    """
    copies = _copies(function, arrays)

    def made(plan: TilePlan) -> Program:
        program: Program = function.lower(plan, **copies).compile(threads=threads)
        return program.run()

    def made_if_possible(plan: TilePlan) -> Program | None:
        try:
            return made(plan)
        except PtoError:
            return None      # what a plan by hand would be refused for

    programs: list[Program | None] = [made(plans[0])]
    with ThreadPoolExecutor(os.cpu_count()) as builders:
        programs += builders.map(made_if_possible, plans[1:])
    clock = time.process_time if threads == 1 else time.perf_counter
    least, began, runs = [math.inf] * len(plans), time.perf_counter(), 0
    while runs < _RUNS or time.perf_counter() - began < _SECONDS * len(plans):
        for k, program in enumerate(programs):
            if program is not None:
                start = clock()
                program.run()
                least[k] = min(least[k], clock() - start)
        runs += 1
    return least


def simulated_cycles(function: JitFunction[Any], arrays: tuple[object, ...], plan: TilePlan, arch: Arch | None = None, *,
                     overheads: bool = False) -> int:
    """Return the cycles of a call with a plan, on copies of the arrays. `arch`: None for the arch of the plan."""
    return int(simulated(function, arrays, plan, arch, overheads=overheads).total_cycles)


def simulated(function: JitFunction[Any], arrays: tuple[object, ...], plan: TilePlan, arch: Arch | None = None, *, overheads: bool = False,
              runs: bool = True) -> Stats:
    """Return the figures of a call with a plan, on copies of the arrays.

    `arch`: None for the arch of the plan. `runs`: False where tasks that decide about no others need not run; nothing is compiled then.
    """
    copies = _copies(function, arrays)
    workload, on = function.lower(plan, **copies), arch or arch_of(plan.arch)
    program = workload.compile(arch=on, threads=1) if runs else workload.compile("interp", arch=on).for_its_times()
    stats: Stats = program.run().simulate(overheads=overheads).stats
    return stats


def _copies(function: JitFunction[Any], arguments: tuple[object, ...]) -> dict[str, Any]:
    """Return the arguments of a call by name, with copies of their arrays."""
    return {name: with_leaves(value, (_copied(leaf) for _, leaf in leaves_of(value, name)))
            for name, value in zip(function.parameter_names, arguments, strict=False)}


def _copied(leaf: object) -> object:
    if isinstance(leaf, Tensor):
        return Tensor(np.array(leaf.data), layout=leaf.layout)
    return np.array(array_of(leaf)) if is_array(leaf) else leaf


def _product_steps(plan: TilePlan) -> Iterator[TilePlan]:
    """Yield the plans in which a product takes its tile in steps: halves of the tile's rows, its columns and both; or all at once.

    An operand stays where a task has the whole sum, over the largest halves or smaller parts that then fit. Tiles keep their extents.
    """
    named = None if plan.planner is None or plan.planner.planned_names is None else plan.planner.planned_names()
    for cost, kernel in ((cost, kernel) for cost in plan.costs for kernel in (() if named is None else named.kernels)
                         if kernel.name == cost.name and any(isinstance(TABLE.get(op), Matmul) for op in cost.ops)):
        extents = dict(zip(kernel.axes, kernel.extents, strict=True))
        tiles = {entry.axis: entry.value for entry in plan.entries if entry.key == "tiles" and entry.name == cost.name}
        said = [entry for entry in plan.entries if entry.key == "inner" and entry.name == cost.name]
        inner = {entry.axis: extents.get(entry.axis) for entry in said if entry.axis not in ("m", "n")}
        m, n = (tile if isinstance(tile, int) else 0 for tile in (0, 0, *tiles.values())[-2:])
        if any(entry.by_hand and entry.axis in ("m", "n") for entry in said) or min(m, n) < 2:
            continue
        chosen = {entry.axis: {"m": m, "n": n}[entry.axis] for entry in said if entry.axis in ("m", "n")}
        for steps in (*([chosen] if chosen else []), {"m": m // 2}, {"n": n // 2}, {"m": m // 2, "n": n // 2}):
            yield from _changed(plan, {"inner": {cost.name: steps}, "tiles": {cost.name: tiles}})
        staying = ({**inner, "m": m // part, "n": n // part, "stay": "right"} for part in (2, 4, 8, 16) if min(m, n) >= part)
        fitting = (one for steps in staying for one in _changed(plan, {"inner": {cost.name: steps}, "tiles": {cost.name: tiles}}))
        yield from islice(fitting, 1)


def _changed(plan: TilePlan, change: Mapping[str, Mapping[str, object]]) -> Iterator[TilePlan]:
    """Yield the plan with entries by hand, if it fits."""
    batches = {"batch": {entry.name: entry.value for entry in plan.entries if entry.key == "batch"}}
    try:
        yield plan.but(**{**(batches if batches["batch"] else {}), **change})
    except PtoError:
        return


def _other_values(plan: TilePlan, tunables: Mapping[str, Tunable]) -> Iterator[dict[str, object]]:
    """Yield other values of the Tunable parameters: all combinations if there are few, else one changed value at a time."""
    has = {name: tunable.default for name, tunable in tunables.items()} | {
        entry.name: entry.first for entry in plan.entries if entry.key == "tunables"}
    is_small = math.prod(len(tunable.values) for tunable in tunables.values()) <= _FEW_VALUES
    for values in product(*(tunable.values for tunable in tunables.values())) if is_small else ():
        if values != tuple(has[name] for name in tunables):
            yield dict(zip(tunables, values, strict=True))
    for name, tunable in () if is_small else tunables.items():
        yield from ({**has, name: value} for value in tunable.values if value != has[name])


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
    changes += [{"tunables": values} for values in _other_values(plan, tunables)]
    for change in changes:
        yield from _changed(plan, change)
    yield from _product_steps(plan)
