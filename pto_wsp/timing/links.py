"""Count what a run over a mesh sent from rank to rank, name executors of ranks and links, find copies that fill links in a circle."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from pto_wsp.errors import DeadlockError, RecordLimitError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.execution_rules import ExecutionRules
from pto_wsp.ir.mesh import SOURCE_RANK
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.run.failures import RecordNames, SimulationEnded
from pto_wsp.run.record import RecordColumns
from pto_wsp.run.simulator import Recorder, SimulationStuck, TaskTimes
from pto_wsp.source import here
from pto_wsp.timing.columns import RecordedTasks, evaluate_columns
from pto_wsp.wording import counted


def bytes_sent(tasks: RecordedTasks, plan: TaskPlan) -> np.ndarray[Any, Any]:
    """Return the bytes that copies moved, an int64 matrix by source and target rank; what stays on a rank is on the diagonal."""
    sent = np.zeros((plan.rules.n_ranks, plan.rules.n_ranks), np.int64)
    for task, at, columns in tasks.leaves():
        if task.on is None or task.on.source is None:
            continue
        count = len(tasks.numbers(at))
        of, to = (np.broadcast_to(evaluate_columns(rank, columns), (count,)) for rank in (task.on.source, task.on.rank))
        param = plan.kernels[task.kernel].kernel.memory_params[-1].name
        rows, cols = (np.broadcast_to(evaluate_columns(s.ParamExtent(param, dim), columns), (count,)) for dim in (0, 1))
        np.add.at(sent, (of, to), rows * cols * plan.tensors[task.places[-1].slot].ref.dtype.nbytes)
    return sent


def place_name(rules: ExecutionRules, pool: int, worker: int, core: int) -> str:
    """Return what an executor of a rank is called: `rank 0`, `rank 0 core 1`, `rank 0 link to rank 1`; "" without a mesh.

    `core`: the executor's number in its pool of the worker.
    """
    if not rules.n_ranks or rules.pool_size is None:
        return ""
    rank, inner = divmod(worker, rules.workers_of_rank)
    n_pools = len(rules.pool_size) - len(rules.links)
    if pool >= n_pools:
        return f"rank {rank} {rules.links[pool - n_pools]}"
    size = rules.pool_size[pool]
    before = sum(rules.pool_size[:pool])
    n_cores = rules.workers_of_rank * sum(rules.pool_size[:n_pools])
    number = inner * (n_cores // rules.workers_of_rank) + before + core % max(1, size)
    return f"rank {rank}" if n_cores == 1 else f"rank {rank} core {number}"


# -- links whose buffers are full --------------------------------------------------------------------------------------
_MOST_BUFFERS = 64      # a link, up to which a number that is enough is looked for
_SHOWN = 6              # links of a circle

_Link: TypeAlias = tuple[int, int]      # as `Routes.between` has it


def check_links(plan: TaskPlan, recorder: Recorder) -> None:
    """Simulate the recorded stream of a run before its tasks run, where links have buffers that its copies can fill.

    Raises: W111 for copies that wait for each other; R115 where the stream is longer than a record.
    """
    columns = recorder.columns()
    if columns.first_node > 0:
        raise RecordLimitError(f"the run had {columns.total_tasks} tasks, more than a record keeps", here(),
                               help="links with buffers are looked at before a run: leave `buffers` out, or run a smaller problem")
    try:
        recorder.simulate(plan.rules, keep_trace=False)
    except SimulationStuck:
        pass
    else:
        return
    try:
        recorder.simulate(plan.rules, keep_trace=True)
    except SimulationStuck as stuck:
        assert stuck.times is not None
        raise stuck_links(plan, columns, recorder.raw_columns(), stuck.times, _enough(plan, recorder)) from None


def _enough(plan: TaskPlan, recorder: Recorder) -> int | None:
    """Return a number of buffers with which the stream ends; None if it is more than is looked for."""
    routes = plan.rules.routes
    assert routes is not None
    n = routes.buffers
    while (n := n + 1) <= _MOST_BUFFERS:
        try:
            recorder.simulate(replace(plan.rules, routes=replace(routes, buffers=n)), keep_trace=False)
        except (SimulationStuck, SimulationEnded):
            continue
        return n
    return None


def stuck_links(plan: TaskPlan, columns: RecordColumns, raw: Any, times: TaskTimes, enough: int | None = None) -> DeadlockError:
    """Return the error for copies that fill the buffers of links in a circle.

    `raw`: the record as a pto_columns. `enough`: buffers of a link with which all copies arrive.
    """
    rules, names = plan.rules, RecordNames(plan, columns)
    assert rules.routes is not None
    held: dict[_Link, list[tuple[int, _Link]]] = {}        # by link, the copies at its far end, each with the link that it waits for
    for task in dict.fromkeys(times.hops.task.tolist()):
        way, done = rules.routes.between(*_ranks(raw, task)), len(times.hops.of(task))
        if done < len(way):
            held.setdefault(way[done - 1], []).append((task, way[done]))
    circle = _circle(held)
    first = held[circle[0]][0][0]

    def shown(link: _Link) -> str:
        return f"rank {link[0]} {rules.links[link[1]]}"

    def line(link: _Link) -> str:
        task, more = held[link][0][0], len(held[link]) - 1
        source, target = _ranks(raw, task)
        return (f"{shown(link)} is full: {task} {names[task]} from rank {source} to rank {target}"
                f"{f' and {more} more' if more else ''}, {names.span_of(task).short}")

    notes = [line(link) for link in circle]
    hidden = len(notes) - _SHOWN
    return DeadlockError(f"copies wait for each other: {len(circle)} links in a circle are full", names.span_of(first),
                         expected="links that drain", found=f"{counted(rules.routes.buffers, 'buffer')} at the far end of each link",
                         notes=(*notes[:_SHOWN], *((f"… and {hidden} more links",) if hidden > 0 else ()),
                                "each waits for the link of the line below, the last one for the first"),
                         help=(f"{enough} buffers are enough here: arch.with_links(buffers={enough})" if enough is not None else
                               "give the links more buffers") + "; or send to neighbours only, as the ring algorithm does")


def _ranks(raw: Any, task: int) -> tuple[int, int]:
    """Return the ranks from and to which a copy goes."""
    source, rank = divmod(int(raw.task_ranks[task]), SOURCE_RANK)
    return source - 1, rank - 1


def _circle(held: dict[_Link, list[tuple[int, _Link]]]) -> list[_Link]:
    """Return links that wait for each other, by what the first copy at the far end of each waits for."""
    at, seen = min(held), list[_Link]()
    while at in held and at not in seen:
        seen.append(at)
        at = held[at][0][1]
    circle = seen[seen.index(at):] if at in seen else seen
    start = circle.index(min(circle))
    return circle[start:] + circle[:start]
