"""What a schedule says of each task of a record, as columns: worker, cost, lane, pool, priority, position, traffic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pto_wsp.errors import ProgramStateError
from pto_wsp.plan.model import Check, Send, Submit, TaskPlan
from pto_wsp.plan.numbering import NumberedCheck
from pto_wsp.plan.rules import Column as Kept
from pto_wsp.plan.walk import items_of, submits
from pto_wsp.retime.evaluate import UnknownColumn, evaluate_columns
from pto_wsp.retime.recorded import RecordedTasks, SiteColumns
from pto_wsp.runtime.failures.errors import describe_check
from pto_wsp.runtime.record.marks import MarkFlag
from pto_wsp.source import here
from pto_wsp.types import scalar as s
from pto_wsp.types.scalar_text import print_scalar
from pto_wsp.values import dataclass

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class TaskFields:
    """Columns of int64 with a number a task; None where the schedule says nothing."""

    worker: Array
    cost: Array
    lane: Array | None = None
    pool: Array | None = None
    priority: Array | None = None
    position: Array | None = None
    traffic: Array | None = None


_KEPT: dict[Kept, tuple[str, Callable[[Submit], s.Scalar]]] = {
    Kept.LANE: ("lane", lambda task: task.lane), Kept.POOL: ("pool", lambda task: task.pool),
    Kept.PRIORITY: ("priority", lambda task: task.priority), Kept.POSITION: ("position", lambda task: task.position),
    Kept.BYTES: ("traffic", lambda task: task.traffic),
}


def task_fields(tasks: RecordedTasks, plan: TaskPlan) -> TaskFields:
    """Return what `plan`, the plan of the record under some schedule and arch, says of the tasks.

    Raises: R103 where a number depends on what tasks compute and the record does not have it.
    """
    said = {task.site: task for task in submits(plan)}
    _check_keys(tasks, said)
    kept = {name: _column(tasks, said, of, name) for column, (name, of) in _KEPT.items()
            if column in plan.rules.columns and not (plan.calendar and column is Kept.POSITION)}
    if plan.calendar:       # the checks have found a row for each task; there may be more
        worker, position = np.array(plan.calendar, np.int64)[:tasks.n_tasks].T
        kept["position"] = np.ascontiguousarray(position)
        return TaskFields(np.ascontiguousarray(worker), _column(tasks, said, lambda task: task.cost, "cost"), **kept)
    worker = _column(tasks, said, lambda task: task.worker, "worker")
    return TaskFields(worker, _column(tasks, said, lambda task: task.cost, "cost"), **kept)


def _check_keys(tasks: RecordedTasks, said: dict[int, Submit]) -> None:
    """Do the checks of keys for all tasks, as a run does them for each.

    Raises: what the first task raises in a run.
    """
    first: tuple[int, Check, SiteColumns, int, int, int] | None = None
    for task, at, columns in tasks.leaves():
        for check in said[task.site].checks:
            value, lower, upper = (np.broadcast_to(_evaluated(tasks, task, part, "key", columns), tasks.numbers(at).shape)
                                   for part in (check.value, check.lower, check.upper))
            wrong = np.flatnonzero((value < lower) | (value > upper))
            if len(wrong) and (first is None or tasks.numbers(at)[wrong[0]] < first[0]):
                k = wrong[0]
                first = int(tasks.numbers(at)[k]), check, columns, int(value[k]), int(lower[k]), int(upper[k])
    if first is not None:
        number, check, columns, found, lower_bound, upper_bound = first
        loops = columns.loops_of(number)
        raise describe_check(NumberedCheck(0, check, tuple(loops)), found, lower_bound, upper_bound, tuple(loops.values()), 0)


def _column(tasks: RecordedTasks, said: dict[int, Submit], of: Callable[[Submit], s.Scalar], name: str) -> Array:
    out = np.empty(tasks.n_tasks, np.int64)
    for task, at, columns in tasks.leaves():
        out[at] = _evaluated(tasks, task, of(said[task.site]), name, columns)
    return out


def _evaluated(tasks: RecordedTasks, task: Submit, node: s.Scalar, name: str, columns: SiteColumns) -> Array:
    try:
        return evaluate_columns(node, columns)
    except UnknownColumn as unknown:
        kernel = tasks.plan.kernels[task.kernel].kernel.name
        is_symbol = isinstance(unknown.node, s.SymbolRef)
        raise ProgramStateError(f"the {name} of `{kernel}` cannot be found again: it depends on `{unknown}`", here(),
                                expected="a symbol that the run had a value for" if is_symbol else
                                "what the recorded stream knows: loop variables, extents, scalars and symbols",
                                found=print_scalar(node), help="compile it under that schedule and run it") from None


def mark_delays(tasks: RecordedTasks, plan: TaskPlan) -> Array | None:
    """Return the delay of each mark under `plan`; None where no mark has any."""
    n = int(tasks.raw.n_marks)
    latency = {item.site: plan.channels[item.channel] for item in items_of(plan) if isinstance(item, Send)}
    delays = tasks.view("mark_delay", n, np.int64)
    if not any(channel.latency for channel in latency.values()) and not delays.any():
        return None
    sites, flags = tasks.view("mark_site", n, np.int32), tasks.view("mark_flags", n, np.uint8)
    new = delays.copy()
    for site, channel in latency.items():   # at depth 0 the mark that holds the sender is the token
        holds = (flags & MarkFlag.BLOCKS.value) != 0
        new[(sites == site) & (holds if channel.depth == 0 else ~holds)] = channel.latency
    return new
