"""Advise on a schedule: what bounds the last run, and which single or paired changes of the schedule make the run shorter.

Every change is simulated on the tasks of the run, without kernels; nothing is said that was not. The single changes come first, those that
the verdict suggests before the others; then pairs of changes, the best ones first and the rest in an order that a seed draws, until all
are tried or the time is over.
"""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, overload

import numpy as np

from pto_wsp.api.search_space import loop_names, worker_counts
from pto_wsp.arch.model import Arch
from pto_wsp.calls import user_calls
from pto_wsp.doors import Displayed, late_module
from pto_wsp.errors import AutoScheduleError, PtoError
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.schedule.directives import Deps, DispatchPolicy, Pools, ReadyPolicy, StartPolicy, TaskWindow, TimingPolicy, WindowMode, by_unit
from pto_wsp.schedule.keys import trace_key
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.source import here
from pto_wsp.timing.explain import CAUSE_NAMES
from pto_wsp.timing.retime import Simulation
from pto_wsp.timing.stats import Stats
from pto_wsp.values import dataclass
from pto_wsp.wording import counted, less

_MOST = 8       # changes that are returned
_MOST_EXPLAINED = 20_000      # tasks up to which the chain of causes of every change is looked for


# -- results -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Advice:
    """A change of a run's schedule that makes the run shorter, in simulated time.

    `change`: Python that goes behind the workload: `.dispatch(DispatchPolicy.work_steal(6))`. `cycles`: the makespan with
    it; `gain`: the fraction of the makespan that is saved. `why`: what the change does. `schedule`: the whole schedule with it.
    """

    change: str
    cycles: int
    gain: float
    why: str
    schedule: Schedule = field(repr=False)

    def __str__(self) -> str:
        return f"{self.change} → {self.cycles:,} cycles, {less(self.gain)}: {self.why}"


@user_calls(leave_out=("__init__",))
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Advices(Sequence[Advice], Displayed):
    """What `Program.advise` found, best first: the best change of each set of directives, at most eight.

    `stats`: the figures of the run, with the verdict. `n_tried`: the number of changes that were simulated; `n_changes`: of so many.
    `seconds`: how long that took.
    """

    found: tuple[Advice, ...]
    stats: Stats
    n_tried: int
    n_changes: int
    seconds: float

    @property
    def sentence(self) -> str:
        """The change with the greatest gain and its cycles, or what would help where no change has a gain."""
        if self.found:
            best = self.found[0]
            return f"Change: {best.change} → {best.cycles:,} cycles, {less(best.gain)}."
        if not self.stats.task_count:
            return ""
        tried = "No change of the schedule helps" if self.n_tried == self.n_changes else f"None of the {self.n_tried} changes tried helps"
        return f"{tried}. What would: {self.stats.verdict.helps}"

    def __len__(self) -> int:
        return len(self.found)

    @overload
    def __getitem__(self, index: int) -> Advice: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Advice, ...]: ...

    def __getitem__(self, index: int | slice) -> Advice | tuple[Advice, ...]:
        return self.found[index]

    def columns(self) -> Mapping[str, np.ndarray[Any, Any]]:
        """Return the advice as columns: `pandas.DataFrame(advice.columns())`. `change`, `cycles`, `gain` (a fraction), `why`."""
        return {"change": np.array([one.change for one in self.found], object), "cycles": np.array([one.cycles for one in self], np.int64),
                "gain": np.array([one.gain for one in self]), "why": np.array([one.why for one in self], object)}

    @property
    def card(self) -> Any:
        """All that a notebook shows, as data: the verdict, and the changes with bars."""
        rows = [(one.change, one.cycles, one.gain, one.why) for one in self.found]
        return late_module("pto_wsp.view.compare_cards").advice_card(self.stats, self.sentence, rows, self._tried)

    @property
    def _tried(self) -> str:
        rest = "" if self.n_tried == self.n_changes else f" of {self.n_changes}: a larger budget tries the rest"
        return f"{counted(self.n_tried, 'change')} tried{rest}"

    def __str__(self) -> str:
        stats = self.stats
        if not stats.task_count:
            return "No task ran: there is nothing to change."
        lines = [f"{counted(stats.total_cycles, 'cycle')}, {stats.gap:.0%} above the lower bound: {stats.dominated_by}"]
        lines += [self.sentence] if not self.found else []
        for one in self.found:
            lines += [f"{one.cycles:>12} cycles {-one.gain:>6.0%}  {one.change}", f"{'':>12}                {one.why}"]
        return "\n".join([*lines, self._tried])

    __repr__ = __str__


# -- changes -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, eq=False)
class DirectiveValue:
    """A value for one directive: its name, the code of the value, and the value. Names with a dot are fields of the task graph."""

    directive: str
    code: str
    value: object


def changes_of(base: Schedule, plan: TaskPlan, arch: Arch) -> list[DirectiveValue]:
    """Return the changes of single directives to try; a change may be in the schedule already, or contradict the schedule."""
    names, found = loop_names(plan), list[DirectiveValue]()
    for n in worker_counts(arch):
        found += [DirectiveValue("dispatch", f"DispatchPolicy.work_steal({n})", DispatchPolicy.work_steal(n)),
                  DirectiveValue("dispatch", f"DispatchPolicy.round_robin({n})", DispatchPolicy.round_robin(n))]
        for name in names:
            found += [DirectiveValue("dispatch", f"DispatchPolicy.affinity({json.dumps(name)}, {n})", DispatchPolicy.affinity(name, n)),
                      DirectiveValue("dispatch", f"DispatchPolicy.hash({json.dumps(name)}, {n})", DispatchPolicy.hash(name, n))]
    found += [DirectiveValue("stream_by", json.dumps(name), trace_key(name, "stream_by")) for name in names]
    found.append(DirectiveValue("task_graph.ready", "ReadyPolicy.work_steal()", ReadyPolicy.work_steal()))
    for name in names:
        shown = f"t.get({json.dumps(name)})"
        found += [DirectiveValue("task_graph.ready", f"ReadyPolicy.priority(lambda t: {shown})", _priority(name, down=False)),
                  DirectiveValue("task_graph.ready", f"ReadyPolicy.priority(lambda t: -{shown})", _priority(name, down=True))]
    if arch.cores.cube is not None and arch.cores.vector is not None:
        found.append(DirectiveValue("task_graph.pools", "Pools.by_exec_unit()", Pools.by_exec_unit()))
    found.append(DirectiveValue("task_graph.pools", "Pools.single()", Pools.single()))
    found += _windows(base)
    found.append(DirectiveValue("task_graph.deps", "Deps.infer_bytes_overlap()", Deps.infer_bytes_overlap()))
    if base.task_graph is not None and base.task_graph.start is not None:
        found.append(DirectiveValue("task_graph.start", "StartPolicy()", StartPolicy()))
    if base.timing is not None:
        found.append(DirectiveValue("timing", "TimingPolicy.immediate", TimingPolicy.immediate))
    return found


def _priority(name: str, *, down: bool) -> ReadyPolicy:
    return ReadyPolicy.priority(lambda t: -t.get(name)) if down else ReadyPolicy.priority(lambda t: t.get(name))


def _windows(base: Schedule) -> Iterator[DirectiveValue]:
    """Yield changes of windows: other sizes of the task window, and larger sizes of the units' windows."""
    windows = base.windows
    for window in windows:
        others = [other for other in windows if other is not window]
        sizes = (64, 256, 8192) if window.unit == "tasks" else (4 * window.size, 16 * window.size)
        for size in sizes:
            changed = by_unit([*others, TaskWindow(size, window.unit, window.mode)])
            code = ", ".join(_window_code(one) for one in (changed if isinstance(changed, tuple) else (changed,)))
            yield DirectiveValue("task_graph.window", f"({code})" if isinstance(changed, tuple) else code, changed)


def _window_code(window: TaskWindow) -> str:
    mode = f", {window.mode!r}" if window.mode is not WindowMode.STALL else ""
    return f"TaskWindow({window.size}" + (f', "{window.unit}"' if mode or window.unit != "tasks" else "") + f"{mode})"


def changed(base: Schedule, changes: Sequence[DirectiveValue]) -> Schedule:
    """Return a schedule with changes.

    Raises: S105 if they contradict it.
    """
    graph = {change.directive.partition(".")[2]: change.value for change in changes if "." in change.directive}
    found = base.having(**{change.directive: change.value for change in changes if "." not in change.directive})
    return found.with_task_graph(**_graph_fields(base, graph)) if graph else found


def _graph_fields(base: Schedule, graph: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of a task_graph; one that the schedule did not have takes the edges of the schedule unless `deps` is given."""
    return {"deps": base.deps, **graph} if base.task_graph is None else dict(graph)


def code_of(base: Schedule, changes: Sequence[DirectiveValue]) -> str:
    """Return the changes as Python that goes behind a workload under the schedule."""
    graph: dict[str, object] = {change.directive.partition(".")[2]: change.code for change in changes if "." in change.directive}
    calls = [f".{change.directive}({change.code})" for change in changes if "." not in change.directive]
    if graph:
        fields = _graph_fields(base, graph)
        fields["deps"] = _DEPS[base.deps.kind] if isinstance(fields.get("deps"), Deps) else fields.get("deps")
        calls.append(f".task_graph({', '.join(f'{name}={code}' for name, code in fields.items() if code is not None)})")
    return "".join(calls)


_DEPS = {"hybrid": "Deps.hybrid()", "overlap": "Deps.infer_bytes_overlap()", "exact": "Deps.infer_tensor_map_exact()",
         "explicit": "Deps.explicit()"}
_DISPATCH, _GRAPH = ("dispatch", "task_graph.ready", "task_graph.pools"), ("task_graph.deps", "task_graph.ready", "dispatch")
# The directives that are tried first, by the kind of the verdict.
_FIRST: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("imbalance", "lateness", "work"), ("dispatch", "task_graph.ready", "task_graph.pools")),
    "cores": ("task_graph.pools", "dispatch"), **dict.fromkeys(("waiting", "critical path", "latency", "task"), _GRAPH),
    **dict.fromkeys(("window", "bytes", "entries", "edges", "ready"), ("task_graph.window", "dispatch")),
    "timing": ("timing",), "start": ("task_graph.start",), "submission": ("stream_by", "dispatch"), "dispatch": _DISPATCH,
}


# -- trying them -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, eq=False)
class _Improvement:
    changes: tuple[DirectiveValue, ...]
    schedule: Schedule
    cycles: int
    why: str = ""       # of a long run, which is not simulated once more for it


Simulate = Callable[[Schedule], Simulation]


def advise(stats: Stats, base: Schedule, arch: Arch, plan: TaskPlan, simulate: Simulate, budget_s: object, seed: object) -> Advices:
    """Return the changes of a run's schedule that make it shorter.

    `stats`, `base`, `arch`, `plan`: of the run; `simulate`: times its tasks under another schedule.

    Raises: S111 for a budget that is no number of seconds, or a seed that is no whole number.
    """
    seconds = _seconds(budget_s)
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise AutoScheduleError("the seed is a whole number", here(), expected="an int", found=repr(seed))
    begun = time.perf_counter()
    if not stats.total_cycles:
        return Advices((), stats, 0, 0, 0.0)
    singles = _in_order(changes_of(base, plan, arch), stats.verdict.kind)
    tried: dict[Schedule, int | None] = {base: stats.total_cycles}
    good: list[_Improvement] = []
    alone: dict[DirectiveValue, int] = {}
    n_changes, n_tried = len(singles), 0

    def try_out(changes: tuple[DirectiveValue, ...]) -> None:
        try:
            schedule = changed(base, changes)
            if schedule in tried:
                return
            tried[schedule] = None
            simulated = simulate(schedule)
            cycles = tried[schedule] = simulated.total_cycles
        except PtoError:        # it contradicts the schedule, or the record does not tell
            return
        if len(changes) == 1:
            alone[changes[0]] = cycles
        if cycles < min([stats.total_cycles, *(alone.get(change, cycles + 1) for change in changes if len(changes) > 1)]):
            why = _why(stats, simulated.stats) if stats.task_count > _MOST_EXPLAINED else ""
            good.append(_Improvement(changes, schedule, cycles, why))

    def out_of_time() -> bool:
        return time.perf_counter() - begun >= seconds

    try:
        for change in singles:
            if out_of_time() and n_tried:
                break
            try_out((change,))
            n_tried += 1
        pairs = _pairs(singles, alone, random.Random(int(seed))) if n_tried == len(singles) else []
        n_changes += len(pairs) if n_tried == len(singles) else 0
        for pair in pairs:
            if out_of_time():
                break
            try_out(pair)
            n_tried += 1
    except KeyboardInterrupt:       # what was found so far
        pass
    found = tuple(Advice(code_of(base, one.changes), one.cycles, 1 - one.cycles / stats.total_cycles, one.why or
                         _why(stats, simulate(one.schedule).stats), one.schedule) for one in itertools.islice(_best(good), _MOST))
    return Advices(found, stats, n_tried, n_changes, time.perf_counter() - begun)


def _seconds(given: object) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float | np.integer | np.floating) or not given >= 0:
        raise AutoScheduleError("the budget is a time in seconds", here(), expected="a number of at least 0", found=repr(given))
    return float(given)


def _in_order(changes: Sequence[DirectiveValue], kind: str) -> list[DirectiveValue]:
    """Return the changes with those first that the verdict suggests."""
    first = _FIRST.get(kind, ())
    return sorted(changes, key=lambda change: first.index(change.directive) if change.directive in first else len(first))


def _pairs(singles: Sequence[DirectiveValue], alone: Mapping[DirectiveValue, int], draw: random.Random,
           ) -> list[tuple[DirectiveValue, DirectiveValue]]:
    """Return the pairs of changes of two directives: those of changes that are good alone first, and the others as drawn."""
    pairs = [(one, other) for one, other in itertools.combinations(singles, 2) if one.directive != other.directive]
    draw.shuffle(pairs)
    most = max(alone.values(), default=0)
    return sorted(pairs, key=lambda pair: min(alone.get(change, most) for change in pair) + sum(alone.get(c, most) for c in pair) / 1e6)


def _best(good: Sequence[_Improvement]) -> Iterator[_Improvement]:
    """Yield the best change of each set of directives, best first; of equal changes the smaller, then the earlier tried."""
    seen: set[frozenset[str]] = set()
    for one in sorted(good, key=lambda one: (one.cycles, len(one.changes))):
        directives = frozenset(change.directive for change in one.changes)
        if directives not in seen:
            seen.add(directives)
            yield one


def _why(before: Stats, after: Stats) -> str:
    """Return the effect of a change: the cause of the makespan that loses most cycles, and the bound of the changed run."""
    then = f"then bounded by {after.dominated_by}" if after.verdict.kind != before.verdict.kind else f"still {after.dominated_by}"
    was, now = (stats.causes() if stats.task_count <= _MOST_EXPLAINED else {} for stats in (before, after))
    lost = {cause: cycles - now.get(cause, 0) for cause, cycles in was.items()}
    if not lost or max(lost.values()) <= 0:
        return f"{_busy(before)} → {_busy(after)}; {then}"
    most = max(lost, key=lambda cause: lost[cause])
    return f"{CAUSE_NAMES[most]}: {was[most]:,} → {now.get(most, 0):,} cycles of the makespan, {_busy(before)} → {_busy(after)}; {then}"


def _busy(stats: Stats) -> str:
    """Return how busy the executors are: each pool as a share of the makespan."""
    shares = [f"{sum(e.busy for e in stats.executors if e.pool == pool.pool) / max(1, pool.executors * stats.total_cycles):.0%}"
              for pool in stats.shared_pools]
    return f"{counted(len(stats.executors), 'executor')} {' and '.join(shares)} busy"
