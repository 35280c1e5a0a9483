"""Decide what bounds a run, and say so in words.

The rule, in this order:

1. A run at its lower bound is bounded by what makes the bound: the critical path, the work of a pool, the shared memory, the submission or
   the dispatch of tasks. No schedule on these executors is shorter. Where channels, events or reads of processes are most of the chain of
   causes, the critical path goes through them, and they are named.
2. Otherwise the largest share of `explain().chain().causes` decides. Where that is busy executors, the pool in which the tasks of the
   chain waited for them says whether its work is spread evenly.
3. Without a chain (more tasks than one is looked for in), the figures decide.

>>> print(program.stats.verdict.kind, "|", program.stats.verdict.text)
window | the window: the orchestrator mostly waited for a slot
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pto_wsp.run.simulator import STALL_REASONS, WAITS_FOR_ROOM
from pto_wsp.timing.explain import Chain
from pto_wsp.timing.figures import ExecutorStats, RunFigures
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class VerdictKind:
    """What can bound a run. `words`: the verdict; `helps`: what would help where no other schedule does."""

    words: str
    helps: str


_ROOM = "A larger window, or tasks that retire in the order of their submission."
# By the word that `RunVerdict.kind` has. Words in braces are figures of the run.
KINDS: Mapping[str, VerdictKind] = {
    "nothing": VerdictKind("nothing: there are no tasks", "A workload that makes tasks."),
    "critical path": VerdictKind("the critical path: one chain of dependent tasks takes {share} the time",
                                 "Fewer or faster tasks in the chain: split its tasks, or drop an order that data does not need."),
    "task": VerdictKind("one task: the last one alone takes {share} the time", "Smaller tasks: split that one over executors."),
    "cores": VerdictKind("few cores: the work is on {used} of {cores} cores; more executors would help",
                         "More executors: Pools.by_exec_unit(), and a dispatch over more AICPUs."),
    "work": VerdictKind("work{how}: {more} would help", "More cores, or faster tasks: less work, or tiles that move fewer bytes."),
    "imbalance": VerdictKind("imbalance: the busiest executor{which} has {spread:.2f} times the average work",
                             "Smaller tasks, so that the last ones differ by less."),
    "lateness": VerdictKind("lateness: tasks were ready, and those executors idle that may not take them",
                            "A dispatch that lets idle executors take ready tasks."),
    "waiting": VerdictKind("waiting: executors were idle while their tasks waited for others",
                           "More independent tasks at a time: less order, or smaller tasks."),
    "latency": VerdictKind("latency: what tasks wait for mostly took its time to reach them",
                            "Fewer edges between executors: larger tasks."),
    "memory": VerdictKind("memory: tasks took {slower:.0%} longer because all cores share it",
                          "Fewer bytes: larger tiles that are used more often, or smaller elements."),
    "window": VerdictKind("the window: the orchestrator mostly waited for a slot", _ROOM),
    "bytes": VerdictKind("the window of bytes: the orchestrator mostly waited for memory of intermediates", _ROOM),
    "entries": VerdictKind("the window of entries: the orchestrator mostly waited for arguments of tasks to retire", _ROOM),
    "edges": VerdictKind("the window of edges: the orchestrator mostly waited for dependencies to be done with", _ROOM),
    "ready": VerdictKind("the window of ready tasks: the orchestrator mostly waited for executors to take some", _ROOM),
    "empty channels": VerdictKind("empty channels: processes mostly waited for tokens",
                                  "More slots in the ring or channel, or a faster producer: split its tasks, or replicate it."),
    "full channels": VerdictKind("full channels: processes mostly waited for tokens to be received",
                                 "A deeper channel, or a faster consumer: split its tasks, or replicate it."),
    "reads": VerdictKind("reads: the orchestrator mostly waited for data that it reads", "Fewer decisions on data, or several at a time."),
    "events": VerdictKind("events: processes mostly waited for them", "Record events earlier, or wait for them later."),
    "marks": VerdictKind("marks: processes mostly waited for others", "Processes that wait for one another less often."),
    "timing": VerdictKind("timing: tasks were mostly held until it released them", "TimingPolicy.immediate, or a higher rate."),
    "start": VerdictKind("the start policy: tasks were mostly held until it let them run", "An earlier start."),
    "submission": VerdictKind("submission: the orchestrator needed the time to submit tasks", "Fewer, larger tasks."),
    "dispatch": VerdictKind("dispatch: AICPUs needed most of the time to dispatch and retire tasks",
                            "Fewer, larger tasks, or more AICPUs."),
    "calendar": VerdictKind("the calendar: tasks were mostly held until it came to them", "A calendar without starts, or another one."),
    "unknown": VerdictKind("nothing that is known: tasks started as soon as they were submitted", "Another schedule."),
}
# The kind of each cause of a chain but for two: `edge` is the critical path or waiting, `executor` work, imbalance or lateness of its pool.
KIND_OF_CAUSE: Mapping[str, str] = {
    **{held.name.lower(): held.name.lower() for held in WAITS_FOR_ROOM},
    "task": "task", "memory": "memory", "latency": "latency", "late": "lateness", "mark": "marks", "release": "timing", "start": "start",
    "submit": "submission", "dispatch": "dispatch", "calendar": "calendar", "not": "unknown", "CHANNEL_EMPTY_WAIT": "empty channels",
    "CHANNEL_FULL_WAIT": "full channels", "DATA_READ_WAIT": "reads", "EVENT_WAIT": "events",
}
_OF_PROCESSES = frozenset({"mark", *STALL_REASONS[1:]})
_ROOM_IN = {unit: held.name.lower() for held, unit in WAITS_FOR_ROOM.items()}
_BUSY = 0.95           # of the makespan: an executor busy for so long has no slack
_EVEN = 1.05           # times the average work of a pool
_MUCH_MEMORY = 0.25    # of the cycles that tasks would take alone
_A_PATH = 0.9          # of the makespan: a chain of dependent tasks so long leaves a schedule little to do


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """The bound of a run. `kind`: a word of `KINDS`; `text`: a line; `pool`: the pool of the executors concerned, or None.

    `cycles`: those of the makespan that the chain of causes puts down to it; 0 where the lower bound or the figures decide.
    """

    kind: str
    text: str
    pool: int | None = None
    cycles: int = 0

    @property
    def helps(self) -> str:
        """What would help where no other schedule does."""
        return KINDS[self.kind].helps

    def __str__(self) -> str:
        return self.text


def verdict_of(stats: RunFigures, chain: Chain | None) -> RunVerdict:
    """Return the bound of a run. `chain`: the chain of causes of the task that completed last; None if unknown."""
    if stats.total_cycles == 0:
        return _said("nothing")
    bound = _of_bound(stats, chain)
    if bound is not None:
        return bound
    if chain is None:
        return _of_figures(stats)
    causes = chain.causes
    cause, cycles = next(iter(causes.items()))
    slower = causes.get("memory", 0)
    if slower > _MUCH_MEMORY * (chain.cycles.get("task", 0) - slower):
        return _said("memory", cycles=slower, slower=slower / max(1, chain.cycles["task"] - slower))
    if cause == "executor":
        return _of_pool(stats, next(iter(chain.pools)), cycles)
    if cause == "edge":
        return _of_edges(stats, cycles)
    if cause == "task":
        return _said("task", cycles=cycles, share=_share(cycles, stats.total_cycles))
    return _said(KIND_OF_CAUSE[cause], cycles=cycles)


def _said(kind: str, *, pool: int | None = None, cycles: int = 0, **figures: object) -> RunVerdict:
    return RunVerdict(kind, KINDS[kind].words.format(**figures), pool, cycles)


def _share(cycles: int, total: int) -> str:
    return "all" if cycles >= total else f"{cycles / total:.0%} of"


def _of_bound(stats: RunFigures, chain: Chain | None) -> RunVerdict | None:
    """Return what makes the lower bound of a run that is no longer than it."""
    total, control = stats.total_cycles, stats.control
    if stats.critical_path >= total:
        cause, cycles = next(iter(chain.causes.items())) if chain is not None else ("", 0)
        return _said(KIND_OF_CAUSE[cause], cycles=cycles) if cause in _OF_PROCESSES else _path(stats, 0)
    for pool in stats.shared_pools:
        if pool.work >= total * pool.executors:
            return _of_work(stats, pool.pool, 0)
    if stats.memory_bound >= total:
        return _said("memory", slower=stats.memory_share)
    if stats.lower_bound >= total:
        return _said("submission" if control.submit * max(0, control.in_a_row - 1) >= total else "dispatch")
    return None


def _path(stats: RunFigures, cycles: int) -> RunVerdict:
    return _said("critical path", cycles=cycles, share=_share(stats.critical_path, stats.total_cycles))


def _of_edges(stats: RunFigures, cycles: int) -> RunVerdict:
    """Return what bounds a run in which tasks waited for others."""
    if stats.critical_path >= _A_PATH * stats.total_cycles or not any(executor.waiting for executor in stats.executors):
        return _path(stats, cycles)
    return _said("waiting", cycles=cycles)


def _of_pool(stats: RunFigures, pool: int, cycles: int) -> RunVerdict:
    """Return what bounds a run in which tasks waited for the executors of a pool."""
    mine = [executor for executor in stats.executors if executor.pool == pool]
    busiest = max(executor.busy for executor in mine)
    late, waiting, idle = (sum(column) for column in zip(*((e.late, e.waiting, e.idle) for e in mine), strict=True))
    if busiest * len(mine) >= _EVEN * max(1, sum(executor.busy for executor in mine)):
        return _imbalance(stats, pool, mine, cycles)
    if busiest < _BUSY * stats.total_cycles and late > max(waiting, idle):
        return _said("lateness", pool=pool, cycles=cycles)
    return _of_work(stats, pool, cycles)


def _imbalance(stats: RunFigures, pool: int, mine: Sequence[ExecutorStats], cycles: int) -> RunVerdict:
    spread = max(executor.busy for executor in mine) * len(mine) / max(1, sum(executor.busy for executor in mine))
    return _said("imbalance", pool=pool, cycles=cycles, spread=spread, which=_of(stats, pool))


def _of_work(stats: RunFigures, pool: int, cycles: int) -> RunVerdict:
    """Return that the work of a pool bounds a run: more executors would help, of which there may be some that are not used."""
    n, which = len(stats.executors), _of(stats, pool)
    if n < stats.n_cores and not which:
        return _said("cores", pool=pool, cycles=cycles, used=stats.cores_used, cores=stats.n_cores)
    if sum(executor.pool == pool for executor in stats.executors) == 1:
        more = "more of them" if which else "more executors"
        return _said("work", pool=pool, cycles=cycles, how=f" on the one executor{which}", more=more)
    return _said("work", pool=pool, cycles=cycles, how=", spread evenly", more=f"only more executors{which}")


def _of(stats: RunFigures, pool: int) -> str:
    """Return which pool is meant, where there are several."""
    return f" of pool {pool}" if any(executor.pool != pool for executor in stats.executors) else ""


def _of_figures(stats: RunFigures) -> RunVerdict:
    """Return what bounds a run whose chain of causes is not known."""
    total, n_tasks, control = stats.total_cycles, stats.task_count, stats.control
    busiest = max(stats.executors, key=lambda executor: executor.busy)
    fullest = max(stats.windows, key=lambda window: window.stall_cycles)
    longest = max(stats.stalls, key=lambda stall: stall.cycles, default=None)
    if stats.memory_share > _MUCH_MEMORY:
        return _said("memory", slower=stats.memory_share)
    if busiest.busy >= _BUSY * total:
        return _of_pool(stats, busiest.pool, 0)
    if fullest.stall_cycles > 0.5 * total:
        return _said(_ROOM_IN[fullest.unit])
    if longest is not None and longest.cycles > 0.5 * total:
        return _said(KIND_OF_CAUSE[longest.reason])
    if control.submit * n_tasks > 0.9 * total:
        return _said("submission")
    if (control.dispatch + control.retire) * n_tasks > 0.5 * total * control.aicpus:
        return _said("dispatch")
    late, waiting, idle = (sum(column) for column in zip(*((e.late, e.waiting, e.idle) for e in stats.executors), strict=True))
    if late > max(waiting, idle):
        return _said("lateness")
    if waiting:
        return _of_edges(stats, 0)
    return _path(stats, 0) if stats.critical_path > 0.5 * total else _of_pool(stats, busiest.pool, 0)
