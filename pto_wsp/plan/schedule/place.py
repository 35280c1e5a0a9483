"""Pass: write what the schedule says, of all tasks into the plan's rules, of each one into its `Submit`."""

from __future__ import annotations

from dataclasses import replace

from pto_wsp.arch.control import TaskCycles, shared_bandwidth, task_cycles
from pto_wsp.errors import InternalError
from pto_wsp.plan.kernel.unit import unit_of
from pto_wsp.plan.model import Context, Submit, TaskPlan
from pto_wsp.plan.rules import Column, ExecutionRules
from pto_wsp.plan.schedule.calendar import refuse_reads, slot_of
from pto_wsp.plan.schedule.homes import home_of, keeps_together, n_homes
from pto_wsp.plan.schedule.keys import Keys
from pto_wsp.plan.schedule.lanes import has_lanes, lane_of
from pto_wsp.plan.schedule.limits import release_of, room_checks, start_of, window_of
from pto_wsp.plan.schedule.own_executors import with_own_executors
from pto_wsp.plan.schedule.pools import pool_of, pool_sizes
from pto_wsp.plan.walk import map_submits, submits
from pto_wsp.schedule.directives import Pools, ReadyPolicy, TaskGraph
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.types import scalar as s
from pto_wsp.types.scalar_text import print_scalar


def place_tasks(plan: TaskPlan, context: Context) -> TaskPlan:
    """Set the plan's rules and kinds of edges, and of every task its home, lane, pool, priority and position.

    Raises: S103 for a key that names a loop or bracket index which a task does not have; C110 for what the arch does not have or say.
    """
    schedule, graph = context.acting, context.acting.task_graph or TaskGraph()
    pools, ready = graph.pools or Pools(), graph.ready or ReadyPolicy()
    _check_names(plan, context.schedule)
    plan = replace(plan, tensors=tuple(replace(slot, kept=slot.is_between_tasks(context.intermediates)) for slot in plan.tensors))
    n_workers = n_homes(schedule, context.arch)
    if n_workers is None:
        plan, n_workers = with_own_executors(plan, context.arch.aicpu.count)
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
        return replace(task, lane=lane, worker=worker, pool=pool, priority=priority, position=position,
                       checks=(*task.checks, *room_checks(schedule.window, plan, task), *own.checks))

    placed = map_submits(plan, place)
    keys.raise_errors()
    kind = schedule.deps.kind
    return replace(placed, rules=_rules(plan, schedule, context, n_workers), infer=kind != "explicit",
                   structure=kind in ("explicit", "hybrid"), symbols=tuple(keys.symbols), calendar=table)


def _rules(plan: TaskPlan, schedule: Schedule, context: Context, n_workers: int) -> ExecutionRules:
    arch, graph = context.arch, schedule.task_graph or TaskGraph()
    pools, ready = graph.pools or Pools(), graph.ready or ReadyPolicy()
    cycles = task_cycles(arch) if context.overheads else TaskCycles(0, 0, 0)
    bandwidth = shared_bandwidth(arch)
    window, unit, full = window_of(schedule.window)
    release, release_n, every = release_of(schedule.timing, arch)
    said = {Column.LANE: has_lanes(schedule), Column.POOL: pools.kind != "single", Column.PRIORITY: ready.key is not None,
            Column.POSITION: schedule.calendar is not None, Column.BYTES: bool(bandwidth)}
    return ExecutionRules(
        n_workers=n_workers,
        pool_size=pool_sizes(pools, arch, n_workers, frozenset(unit_of(plan.kernels[task.kernel].kernel) for task in submits(plan))),
        shared=schedule.dispatch is not None and schedule.dispatch.kind == "work_steal", steals=ready.kind == "work_steal",
        calendar=schedule.calendar is not None, starts=() if schedule.calendar is None else schedule.calendar.starts,
        at_home=keeps_together(schedule.dispatch) and n_workers > 1, bytes_per_cycle=bandwidth,
        release=release, release_n=release_n, release_every=every, window=window, window_unit=unit, full_window=full,
        start_after=start_of(graph.start), submit_cycles=cycles.submit, dispatch_cycles=cycles.dispatch, retire_cycles=cycles.retire,
        columns=frozenset(column for column, on in said.items() if on))


def _check_names(plan: TaskPlan, schedule: Schedule) -> None:
    """Refuse names that tasks do not have in keys, those of directives that are only recorded included.

    Raises: S103.
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
    """Set the plan's kinds of edges, for a target that finds executors and rules of its own.

    Raises: S103 for a key that names a loop or bracket index which a task does not have.
    """
    _check_names(plan, context.schedule)
    kind = context.acting.deps.kind
    return replace(plan, infer=kind != "explicit", structure=kind in ("explicit", "hybrid"))
