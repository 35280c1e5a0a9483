"""Write the schedule into a plan: rules for all tasks into `TaskPlan.rules`, keys of each task into its `Submit`.

The module covers streams (lanes), the window, release and start of tasks, pools of executors, and homes (the AICPU of each task, from
dispatch, streams or the workload's processes). Without a dispatch, the main program and every replica of a process have an executor of
their own. `place_tasks` is the pass; `order_tasks` is its counterpart for targets with executors and rules of their own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from pto_wsp.arch.control import TaskCycles, aicpus_of, core_share, cycles_between, shared_bandwidth, task_cycles
from pto_wsp.arch.model import Arch
from pto_wsp.errors import ArchError, InternalError, ScheduleConflictError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.execution_rules import ExecutionRules, FullWindow, Release, TaskField, WindowRule, WindowUnit
from pto_wsp.ir.flow import Do, Pipeline, children, rewrite, rewrite_leaves, walk
from pto_wsp.ir.kernel import Kernel
from pto_wsp.ir.plan import Check, CheckKind, Item, PlanProcess, Submit, TaskPlan
from pto_wsp.ir.plan_walk import map_submits, submits
from pto_wsp.ir.scalar import Op, print_scalar
from pto_wsp.ops.entry import Unit
from pto_wsp.passes.context import Context
from pto_wsp.passes.kernel.context import unit_of
from pto_wsp.passes.ranks import Ranks, on_rank, ranks_of, refuse_across_ranks
from pto_wsp.passes.schedule_keys import LARGEST, Keys, TaskKeys, calendar_workers, most_executors, refuse_reads, slot_of
from pto_wsp.schedule.directives import (
    Affinity,
    Dispatch,
    DispatchBy,
    DispatchSteal,
    Hash,
    Pools,
    ReadyPolicy,
    RoundRobin,
    SpatialMap,
    StartPolicy,
    TaskGraph,
    TaskWindow,
    Timing,
    WindowMode,
)
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.source import here


# -- streams -----------------------------------------------------------------------------------------------------------
def has_lanes(schedule: Schedule) -> bool:
    """Tell whether a schedule assigns tasks to streams."""
    return schedule.streams is not None or schedule.stream_by is not None


def lane_of(schedule: Schedule, keys: TaskKeys) -> s.Scalar:
    """Return the lane of one task: 1 + stream key or submission index (mod the number of streams, if given); 0 without streams."""
    if not has_lanes(schedule):
        return s.Const(0)
    key = s.TaskIndex() if schedule.stream_by is None else keys.natural(schedule.stream_by, "stream_by", LARGEST - 1)
    stream = key if schedule.streams is None else s.binary(Op.MOD, key, s.Const(schedule.streams))
    return s.add(stream, s.Const(1))


# -- window, release, start --------------------------------------------------------------------------------------------
_UNITS = {"tasks": WindowUnit.TASKS, "bytes": WindowUnit.BYTES, "entries": WindowUnit.ENTRIES, "edges": WindowUnit.EDGES,
          "ready": WindowUnit.READY}
_MODES = {WindowMode.STALL: FullWindow.STALL, WindowMode.ABORT: FullWindow.ABORT, WindowMode.BENCHMARK: FullWindow.BENCHMARK}


def window_of(window: TaskWindow) -> WindowRule:
    """Return a window in numbers: its size, the unit in which it counts, and the behaviour when the window is full."""
    return WindowRule(window.size, _UNITS[window.unit], _MODES[window.mode])


def window_checks(window: TaskWindow, plan: TaskPlan, task: Submit) -> tuple[Check, ...]:
    """Return the check that one task alone fits a window of bytes or entries; none for benchmark windows.

    A task takes 1 of a window of tasks or ready tasks, and how many edges it has is known once it is submitted.
    """
    if window.mode is WindowMode.BENCHMARK or window.unit not in ("bytes", "entries"):
        return ()
    need: s.Scalar = s.Const(len(task.places))
    if window.unit == "bytes":
        need = s.Const(0)
        for place in task.places:
            slot = plan.tensors[place.slot]
            if slot.kept and place.role.writes:
                need = s.add(need, s.mul(s.mul(*place.extent), s.Const(slot.ref.dtype.nbytes)))
    if isinstance(need, s.Const) and need.value <= window.size:
        return ()
    name = plan.kernels[task.kernel].kernel.name
    return (Check(CheckKind.ROOM, need, s.Const(0), s.Const(window.size), f"{name} under {window!r}", span=task.span),)


def release_of(timing: Timing | None, arch: Arch) -> tuple[Release, int, tuple[int, int]]:
    """Return how tasks are released: the policy, the batch size or number of lanes, and the cycles between two releases as a fraction.

    Raises: C110 for a rate on an arch without a clock.
    """
    if timing is None or timing.kind == "immediate":
        return Release.IMMEDIATE, 0, (0, 1)
    if timing.tasks_per_ms is None:
        return (Release.BATCHED if timing.kind == "batched" else Release.INTERLEAVED), timing.n or 1, (0, 1)
    return Release.RATE, 0, cycles_between(arch, timing.tasks_per_ms).as_integer_ratio()


def start_of(start: StartPolicy | None) -> int | None:
    """Return the number of tasks to submit before the first one runs; None for all tasks."""
    if start is None or start.kind == "immediate":
        return 0
    return None if start.kind == "after_orchestration" else start.n


# -- pools -------------------------------------------------------------------------------------------------------------
MAX_POOLS = 1 << 12     # PTO_MAX_POOLS
_MAX_EXECUTORS = 1 << 20     # of all pools: a key may name any pool up to the last
POOL_OF_UNIT = {Unit.CUBE: 0, Unit.VECTOR: 1}     # in the order of `core_share`


def pool_sizes(pools: Pools, arch: Arch, n_workers: int, units: frozenset[Unit]) -> tuple[int, ...] | None:
    """Return the number of executors of each pool of an AICPU; None for custom pools, which have one each.

    `units`: units that kernels need.

    Raises: C110 if no core of a needed unit is assigned to an AICPU.
    """
    match pools.kind:
        case "single":
            return (1,)
        case "by_exec_unit":
            return core_share(arch, n_workers, [unit.value for unit in units])
        case "custom":
            return None


def pool_of(pools: Pools, keys: TaskKeys, kernel: Kernel, n_workers: int) -> s.Scalar:
    """Return the pool of one task. `n_workers`: the number of AICPUs."""
    if pools.key is not None:
        return keys.natural(pools.key, "Pools.custom", min(MAX_POOLS, _MAX_EXECUTORS // max(1, n_workers)) - 1)
    return s.Const(POOL_OF_UNIT[unit_of(kernel)] if pools.kind == "by_exec_unit" else 0)


def with_own_executors(plan: TaskPlan, most: int | None = None) -> tuple[TaskPlan, int]:
    """Return the plan with the `worker` of every task set, and the number of executors; streams without tasks have none.

    `most`: a bound on the number of executors, which processes then share; None for no bound.
    """
    first: dict[int, int] = {}     # first executor of each process with tasks, by its stream
    count = int(_has_tasks(plan.body, into_pipelines=False))
    for item in walk(plan.body):
        if isinstance(item, Pipeline):
            for process in item.processes:
                if _has_tasks(process.body):
                    first[process.stream] = count
                    count += process.replicas

    def placed(item: Item) -> Item:
        if not isinstance(item, Pipeline):
            return item
        return replace(item, processes=tuple(_assign_executor(process, first.get(process.stream, 0), folded) for process in item.processes))

    folded = most if most is not None and most < count else None
    return replace(plan, body=rewrite(plan.body, placed)), max(1, folded or count)


def _assign_executor(process: PlanProcess, executor: int, folded: int | None) -> PlanProcess:
    """Let the tasks of a process run on an executor, those of its other replicas on the ones behind it."""
    worker: s.Scalar = s.Const(executor) if process.replicas == 1 else s.add(s.Const(executor), s.ReplicaIndex())
    if folded is not None:
        worker = s.binary(s.Op.MOD, worker, s.Const(folded))

    return replace(process, body=rewrite_leaves(process.body, lambda task: replace(task, worker=worker)))


def _has_tasks(item: Item, *, into_pipelines: bool = True) -> bool:
    if isinstance(item, Pipeline) and not into_pipelines:
        return False
    return isinstance(item, Do) or any(_has_tasks(inner, into_pipelines=into_pipelines) for inner in children(item))


# -- homes -------------------------------------------------------------------------------------------------------------
def n_homes(schedule: Schedule, arch: Arch) -> int | None:
    """Return the number of AICPUs that the schedule names; None if it names none; 0 if only the run knows.

    Raises: C110 if the arch has fewer.
    """
    match schedule.dispatch:
        case None if schedule.spatial_map is not None:
            return cores_of(schedule.spatial_map, arch)
        case None if schedule.calendar is not None:
            return calendar_workers(schedule.calendar, arch)
        case None:
            return None if schedule.streams is None else aicpus_of(arch, schedule.streams)
        case dispatch:
            return aicpus_of(arch, dispatch.num_aicpus)


def cores_of(where: SpatialMap, arch: Arch) -> int:
    """Return the number of cores of a grid.

    Raises: C110 if the arch has fewer, or does not say what a step between two of them costs.
    """
    most = most_executors(arch)
    if where.n_cores > most:
        raise ArchError(f"the grid has more cores than arch `{arch.name}`", here(), expected=f"at most {most}", found=f"{where.n_cores}")
    if arch.hop_cycles is None and where.n_cores > 1:
        raise ArchError(f"arch `{arch.name}` does not say how far its cores are apart", here(), expected="hop_cycles", found="None",
                        help="give what you know: arch.with_hops(cycles)")
    return where.n_cores


def keeps_together(dispatch: Dispatch | None) -> bool:
    """Tell whether a dispatch puts related tasks on one AICPU; other dispatches only spread tasks evenly."""
    return isinstance(dispatch, Affinity | DispatchBy | Hash)


def home_of(schedule: Schedule, keys: TaskKeys, task: Submit, lane: s.Scalar, n_workers: int) -> s.Scalar:
    """Return the home AICPU of one task. `lane`: its stream, from 1; without dispatch, stream k is on AICPU k."""
    dispatch, n, where = schedule.dispatch, s.Const(n_workers), schedule.spatial_map
    if where is not None and where.row is not None and where.column is not None:
        row, column = (keys.natural(key, f"spatial_map {what}", extent - 1)
                       for key, what, extent in zip((where.row, where.column), ("row", "column"), where.grid, strict=True))
        return s.add(s.mul(row, s.Const(where.grid[1])), column)
    if where is not None:
        return s.binary(Op.MOD, s.TaskIndex(), n)
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


# -- the passes --------------------------------------------------------------------------------------------------------
def place_tasks(plan: TaskPlan, context: Context) -> TaskPlan:
    """Set the plan's rules and edge kinds, and for every task its home, lane, pool, priority and calendar position.

    Raises: S103 for a key with a loop or bracket index that a task does not have; C110 if the arch lacks a resource or a figure.
    """
    schedule, graph = context.acting, context.acting.task_graph or TaskGraph()
    pools, ready = graph.pools or Pools(), graph.ready or ReadyPolicy()
    _check_names(plan, context.schedule)
    plan = replace(plan, tensors=tuple(replace(slot, kept=slot.is_between_tasks(context.intermediates)) for slot in plan.tensors))
    ranks = ranks_of(plan, context.arch)
    if ranks is not None:
        refuse_across_ranks(schedule)
    n_workers = n_homes(schedule, context.arch)
    if n_workers is None:
        plan, n_workers = with_own_executors(plan, context.arch.aicpu.count)
    n_pools = 1
    if ranks is not None:
        if schedule.dispatch is not None and schedule.dispatch.kind == "work_steal":
            n_workers = 1
        n_pools = len(_pools_of_rank(plan, schedule, context.arch, n_workers))
    table = () if schedule.calendar is None else schedule.calendar.table
    if schedule.calendar is not None:
        refuse_reads(plan)
    keys, total = Keys(plan), n_workers

    def place(task: Submit) -> Submit:
        own = keys.of(task)
        lane = lane_of(schedule, own)
        home = home_of(schedule, own, task, lane, total)
        worker, position = (home, s.Const(0)) if schedule.calendar is None else slot_of(schedule.calendar, own, task, context.arch)
        pool = pool_of(pools, own, plan.kernels[task.kernel].kernel, total)
        priority = s.Const(0) if ready.key is None else own.value(ready.key)
        rooms = tuple(check for window in schedule.windows for check in window_checks(window, plan, task))
        if ranks is not None and task.on is not None:
            worker, pool = on_rank(replace(task, worker=worker, pool=pool), ranks, total, n_pools)
            if has_lanes(schedule):     # streams of a rank are its own
                lane = s.add(s.mul(s.sub(lane, s.Const(1)), s.Const(ranks.n)), s.add(task.on.rank, s.Const(1)))
        return replace(task, lane=lane, worker=worker, pool=pool, priority=priority, position=position,
                       note=replace(task.note, checks=(*task.note.checks, *rooms, *own.checks)))

    placed = map_submits(plan, place)
    keys.raise_errors()
    kind = schedule.deps.kind
    return replace(placed, rules=_rules(plan, schedule, context, n_workers, ranks), infer=kind != "explicit",
                   structure=kind in ("explicit", "hybrid"), symbols=tuple(keys.symbols), calendar=table)


def _pools_of_rank(plan: TaskPlan, schedule: Schedule, arch: Arch, n_workers: int) -> tuple[int, ...]:
    """Return the executors of each pool of a worker, for every rank its own machine. A queue that all workers share is one worker's.

    Raises: S105 for pools of a key; C110 if no core of a needed unit is assigned to an AICPU.
    """
    pools = (schedule.task_graph or TaskGraph()).pools or Pools()
    dispatch = schedule.dispatch
    n_shared = aicpus_of(arch, dispatch.num_aicpus) if dispatch is not None and dispatch.kind == "work_steal" else 1
    sizes = pool_sizes(pools, arch, max(n_workers, n_shared), _units(plan))
    if sizes is None:
        raise ScheduleConflictError("Pools.custom and a mesh", here(), notes=("the links of a rank are pools of their own",),
                                    help="leave one of them out")
    return tuple(size * n_shared for size in sizes)


def _units(plan: TaskPlan) -> frozenset[Unit]:
    return frozenset(unit_of(plan.kernels[task.kernel].kernel) for task in submits(plan))


def _rules(plan: TaskPlan, schedule: Schedule, context: Context, n_workers: int, ranks: Ranks | None) -> ExecutionRules:
    arch, graph = context.arch, schedule.task_graph or TaskGraph()
    pools, ready = graph.pools or Pools(), graph.ready or ReadyPolicy()
    cycles = task_cycles(arch) if context.overheads else TaskCycles(0, 0, 0)
    bandwidth = shared_bandwidth(arch)
    window, *more = map(window_of, schedule.windows)
    where = schedule.spatial_map
    release, release_n, every = release_of(schedule.timing, arch)
    shared = schedule.dispatch is not None and schedule.dispatch.kind == "work_steal"
    if ranks is None:
        sizes = pool_sizes(pools, arch, n_workers, _units(plan))
    else:
        sizes = (*_pools_of_rank(plan, schedule, arch, n_workers), *(1 for _ in ranks.names))
        shared, n_workers = False, n_workers * ranks.n
    is_present = {TaskField.LANE: has_lanes(schedule), TaskField.POOL: pools.kind != "single" or ranks is not None,
                  TaskField.PRIORITY: ready.key is not None,
                  TaskField.POSITION: schedule.calendar is not None, TaskField.BYTES: bool(bandwidth),
                  TaskField.RANKS: ranks is not None}
    return ExecutionRules(
        n_workers=n_workers, pool_size=sizes, n_ranks=0 if ranks is None else ranks.n, links=() if ranks is None else ranks.names,
        shared=shared, steals=ready.kind == "work_steal",
        calendar=schedule.calendar is not None, starts=() if schedule.calendar is None else schedule.calendar.starts,
        at_home=keeps_together(schedule.dispatch) and n_workers > 1, bytes_per_cycle=bandwidth,
        release=release, release_n=release_n, release_every=every, window=window.size, window_unit=window.unit, full_window=window.full,
        more=tuple(more), hop_cycles=0 if where is None or where.n_cores == 1 else arch.hop_cycles or 0,
        grid_columns=0 if where is None else where.grid[1], routes=None if ranks is None else ranks.routes,
        start_after=start_of(graph.start), submit_cycles=cycles.submit, dispatch_cycles=cycles.dispatch, retire_cycles=cycles.retire,
        columns=frozenset(column for column, on in is_present.items() if on))


def _check_names(plan: TaskPlan, schedule: Schedule) -> None:
    """Check the names in all keys, including keys of directives that are only recorded.

    Raises: S103 for a name that a task does not have.
    """
    keys = Keys(plan)
    for task in submits(plan):
        for key in schedule.all_keys():
            keys.of(task).value(key)
    keys.raise_errors()


def verify_after_place_tasks(plan: TaskPlan) -> None:
    """Every key is resolved: no name is left in what the schedule says of a task."""
    for task in submits(plan):
        for said in (task.worker, task.lane, task.pool, task.priority, task.position):
            if any(isinstance(leaf, s.AxisName | s.BracketIndex | s.KernelIs) for leaf in s.leaves(said)):
                raise InternalError("a key was not resolved", print_scalar(said))


def order_tasks(plan: TaskPlan, context: Context) -> TaskPlan:
    """Set the plan's edge kinds, for a target with executors and rules of its own.

    Raises: S103 for a key with a loop or bracket index that a task does not have.
    """
    _check_names(plan, context.schedule)
    kind = context.acting.deps.kind
    return replace(plan, infer=kind != "explicit", structure=kind in ("explicit", "hybrid"))
