"""Search for schedules: `auto_schedule`, its candidates and its result.

Each tuned workload runs once; its recorded tasks are then simulated under every schedule. Executors with threads share that run. An
executor with processes receives the pickled workload with each part of a batch and runs it once per process. What a lost worker was to
simulate is simulated here: the result is the same.

A small space is tried completely. In a large space every answer is first tried alone, then the helpful ones together, best first.
After that, half of each batch is drawn at random and half is close to the best candidates so far. Batches do not depend on the
executor.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor, as_completed
from dataclasses import field
from functools import lru_cache
from typing import Any, overload

import numpy as np

from pto_wsp.api.compare import compare
from pto_wsp.api.jit import JitFunction
from pto_wsp.api.program import Program
from pto_wsp.api.search_space import Candidate, Decision, Draw, answered, questions, tuned
from pto_wsp.api.workload import Workload, WorkloadFunction
from pto_wsp.arch.model import Arch
from pto_wsp.calls import user_call
from pto_wsp.doors import Displayed, late_module
from pto_wsp.errors import AutoScheduleError, PtoError
from pto_wsp.progress import step
from pto_wsp.schedule.changes import code_of, differences, settings_of
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.schedule.tiling import TilePlan
from pto_wsp.schedule.tunable import Tunable, tunables_of
from pto_wsp.source import here
from pto_wsp.targets.options import read_arch
from pto_wsp.timing.comparison import Comparison
from pto_wsp.values import dataclass

# -- result ------------------------------------------------------------------------------------------------------------
_SHOWN = 10
_WIDTH = 110      # columns of a schedule in the table


@dataclass(frozen=True, slots=True)
class Trial:
    """A schedule that was tried: its cycles in simulated time, or None and the reason for its refusal.

    `lower_bound` is a lower bound on the cycles of every schedule on as many executors.
    """

    schedule: Schedule
    tunables: Mapping[str, object]
    cycles: int | None
    lower_bound: int
    refused: str = ""


class Kept:
    """What a result shows beside its data and does not pass on to another process."""

    def __init__(self, value: Comparison | None = None) -> None:
        self.value = value

    def __reduce__(self) -> tuple[type[Kept], tuple[()]]:
        return Kept, ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AutoSchedule(Displayed):
    """The best schedule found; `workload` has that schedule and the values of the tunables, and is ready to compile.

    `trials` holds everything tried, in order. The first trial is the starting point: the given schedule and the default values.
    `was_stopped`: Ctrl-C ended the search.
    """

    workload: Workload
    schedule: Schedule
    tunables: Mapping[str, object]
    cycles: int
    default_cycles: int
    lower_bound: int
    trials: tuple[Trial, ...] = field(repr=False)
    seed: int = 0
    was_stopped: bool = False
    kept: Kept = field(default_factory=Kept)

    @property
    def speedup(self) -> float:
        """The speed relative to the starting point, in simulated time."""
        return self.default_cycles / self.cycles if self.cycles else 1.0

    @property
    def gap(self) -> float:
        """The distance of `cycles` above the lower bound on as many executors; 0.0 is optimal."""
        return self.cycles / self.lower_bound - 1 if self.lower_bound else 0.0

    @property
    def comparison(self) -> Comparison | None:
        """The starting point and the best schedule side by side; None where processes simulated, and for very many tasks."""
        return self.kept.value

    @property
    def card(self) -> Any:
        """All that a notebook shows as data: the best trials on one scale, and how the search came to them."""
        start = settings_of(self.trials[0].schedule)
        usual = self.trials[0].tunables
        rows = [({**differences(start, settings_of(trial.schedule)),
                  **{name: repr(value) for name, value in trial.tunables.items() if value != usual.get(name)}},
                 trial.cycles, trial.lower_bound, trial.refused) for trial in self.trials]
        card = late_module("pto_wsp.view.compare_cards").search_card
        return card(self.workload.name, rows, self.seed, self.comparison, code_of(self.schedule), was_stopped=self.was_stopped)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        """Return the schedule, its gain, and a table of the best trials."""
        refused = sum(trial.cycles is None for trial in self.trials)
        values = "".join(f", {name}={value!r}" for name, value in self.tunables.items())
        lines = [f"{self.schedule!r}{values}",
                 f"{self.cycles} cycles, {self.default_cycles} before ({self.speedup:.2f} times as fast); "
                 f"{self.gap:.1%} above the lower bound of {self.lower_bound}",
                 f"{len(self.trials)} tried, seed {self.seed}" + (f", {refused} of them refused" if refused else "")
                 + ", stopped by Ctrl-C" * self.was_stopped]
        ranked = sorted((trial for trial in self.trials if trial.cycles is not None), key=lambda trial: trial.cycles or 0)
        lines.append(f"{'cycles':>12} {'above bound':>12}  schedule")
        for trial in ranked[:_SHOWN]:
            gap = f"{(trial.cycles or 0) / trial.lower_bound - 1:.1%}" if trial.lower_bound else "-"
            values = "".join(f", {name}={value!r}" for name, value in trial.tunables.items())
            lines.append(f"{trial.cycles:>12} {gap:>12}  {_short(f'{trial.schedule!r}{values}')}")
        if len(ranked) > _SHOWN:
            lines.append(f"{'…':>12} {'':>12}  {len(ranked) - _SHOWN} more, in trials")
        return "\n".join(lines)


def _short(text: str) -> str:
    return text if len(text) <= _WIDTH else text[:_WIDTH - 1] + "…"


# -- search ------------------------------------------------------------------------------------------------------------
BATCH = 16
_PARENTS = 4


@dataclass(frozen=True, slots=True)
class Tried:
    """A candidate with its cycles or the reason for its refusal; `bound` is a lower bound for its number of executors."""

    candidate: Candidate
    cycles: int | None
    bound: int = 0
    refused: str = ""


Simulate = Callable[[Sequence[Candidate]], Sequence[Tried]]


def search(draw: Draw, budget: int, simulate: Simulate) -> Iterator[Tried]:
    """Yield at most `budget` distinct tried candidates, in order, beginning with the one that changes nothing."""
    tried: list[Tried] = []
    for batch in _batches(draw, budget, tried):
        results = simulate(batch)
        tried.extend(results)
        yield from results


def _batches(draw: Draw, budget: int, found: Sequence[Tried]) -> Iterator[Sequence[Candidate]]:
    """Yield the batches to try; the caller appends the results of a batch to `found` before it requests the next one."""
    if draw.size <= budget:
        yield from _candidate_parts(draw.all())
        return
    yield from _candidate_parts([draw.first(), *draw.alone()][:budget])
    seen = {tried.candidate for tried in found}
    yield [candidate for candidate in draw.together([tried.candidate for tried in _improvements(found)]) if candidate not in seen][
        :budget - len(found)]
    while batch := _next_batch(draw, found, min(BATCH, budget - len(found))):
        yield batch


def _candidate_parts(candidates: Sequence[Candidate]) -> Iterator[Sequence[Candidate]]:
    return (candidates[start:start + BATCH] for start in range(0, len(candidates), BATCH))


def best_of(tried: Sequence[Tried]) -> Tried:
    """Return the candidate with the fewest cycles; among equals the one that changes least, then the first."""
    return min((trial for trial in tried if trial.cycles is not None), key=_rank)


def _rank(tried: Tried) -> tuple[int, int]:
    return (tried.cycles or 0, sum(1 for place in tried.candidate.places if place))


def _improvements(found: Sequence[Tried]) -> list[Tried]:
    """Return the candidates with fewer cycles than the first, best first."""
    usual = found[0].cycles
    return sorted((trial for trial in found if trial.cycles is not None and usual is not None and trial.cycles < usual), key=_rank)


def _next_batch(draw: Draw, found: Sequence[Tried], size: int) -> list[Candidate]:
    """Return untried candidates; fewer than `size` if drawing finds no more."""
    seen = {trial.candidate for trial in found}
    parents = sorted((trial for trial in found if trial.cycles is not None), key=_rank)[:_PARENTS]
    batch: list[Candidate] = []
    for attempt in range(20 * max(0, size)):
        if len(batch) == size:
            break
        candidate = draw.near(parents[attempt // 2 % len(parents)].candidate) if attempt % 2 and parents else draw.any()
        if candidate not in seen:
            seen.add(candidate)
            batch.append(candidate)
    return batch


# -- simulation --------------------------------------------------------------------------------------------------------
_MOST_KEPT = 20_000      # tasks up to which a result keeps the runs that it is drawn from
_PARTS = 4      # of a batch, which workers simulate at the same time


@dataclass(frozen=True, slots=True)
class Figures:
    """The cycles of a schedule and their lower bound, or the reason for its refusal."""

    cycles: int | None
    bound: int = 0
    refused: str = ""


def pack(workload: Workload, bindings: Mapping[str, object]) -> bytes:
    """Return a workload and its bindings, pickled."""
    return pickle.dumps((workload, dict(bindings)), pickle.HIGHEST_PROTOCOL)


def run_once(workload: Workload, bindings: Mapping[str, object], arch: Arch | None) -> Program:
    """Return a program that has run once with the workload's own schedule."""
    program = workload.compile(arch=arch)
    program._given.advice = "give it to the search: auto_schedule(..., bindings={{'{}': {}}})"
    return program.run(**bindings)


@lru_cache(maxsize=8)
def _program_of(packed: bytes, arch: str) -> Program:
    """Return the program of a job in this process, after a run on copies of its arrays."""
    workload, bindings = pickle.loads(packed)
    return run_once(workload, bindings, Arch.model_validate_json(arch) if arch else None)


def figures_of(program: Program, schedules: Sequence[Schedule], *, overheads: bool) -> list[Figures]:
    """Return the figures of each schedule on the tasks of a program that has run."""
    figures: list[Figures] = []
    for schedule in schedules:
        try:
            stats = program.simulate(schedule, overheads=overheads).stats
        except PtoError as problem:
            figures.append(Figures(None, refused=problem.message))
        else:
            figures.append(Figures(stats.total_cycles, stats.lower_bound))
    return figures


def figures_elsewhere(packed: bytes, arch: str, overheads: bool, schedules: Sequence[str]) -> list[Figures]:
    """Return the result of `figures_of` in another process, from pickled and JSON arguments."""
    return figures_of(_program_of(packed, arch), [Schedule.model_validate_json(text) for text in schedules], overheads=overheads)


class Trials:
    """Simulate batches of candidates for a search."""

    def __init__(self, base: Schedule, make: Callable[[tuple[int, ...]], Workload], *, bindings: Mapping[str, object], arch: Arch | None,
                 overheads: bool, executor: Executor | None, look: Callable[[Figures], None] = lambda figures: None) -> None:
        """Create the simulator; `make` returns the workload for a tuning, `look` gets all figures as they come."""
        self._base, self._make, self._look = base, make, look
        self._begun: tuple[Sequence[Candidate], dict[int, Figures]] = ((), {})
        self._asked: tuple[Decision, ...] = ()
        self._bindings, self._arch, self._overheads, self._executor = bindings, arch, overheads, executor
        self._programs: dict[tuple[int, ...], Program | str] = {}
        self._packed: dict[tuple[int, ...], bytes] = {}
        self._has_lost = False

    def ask(self, questions: tuple[Decision, ...]) -> None:
        """Set the questions that the answers of candidates refer to."""
        self._asked = questions

    def schedule(self, candidate: Candidate) -> Schedule:
        """Return the schedule of a candidate."""
        return answered(self._base, self._asked, candidate.answers)

    def __call__(self, batch: Sequence[Candidate]) -> list[Tried]:
        """Return the result of each candidate, in the order of the batch."""
        groups: dict[tuple[int, ...], list[int]] = {}
        for index, candidate in enumerate(batch):
            groups.setdefault(candidate.tuning, []).append(index)
        figures: dict[int, Figures] = {}
        self._begun = (batch, figures)
        waiting: dict[Future[list[Figures]], tuple[tuple[int, ...], list[int]]] = {}
        try:
            for tuning, places in groups.items():
                for part in _parts(places, 1 if self._executor is None else _PARTS):
                    schedules = [self.schedule(batch[index]) for index in part]
                    if self._executor is not None:
                        waiting[self._submit(self._executor, tuning, schedules)] = tuning, part
                        continue
                    for index, schedule in zip(part, schedules, strict=True):
                        figures[index], = self._figures(tuning, [schedule])
                        self._look(figures[index])
            for future in as_completed(waiting):
                tuning, part = waiting[future]
                for index, one in zip(part, self._result_of(future, tuning, [self.schedule(batch[index]) for index in part]), strict=True):
                    figures[index] = one
                    self._look(one)
        finally:
            for future in waiting:      # after Ctrl-C, no worker begins what nobody waits for
                future.cancel()
        return self.finished()

    def _result_of(self, future: Future[list[Figures]], tuning: tuple[int, ...], schedules: Sequence[Schedule]) -> list[Figures]:
        """Return what a worker has found; what it was lost with is simulated in this process.

        Raises: the errors of the workload.
        """
        try:
            return future.result()
        except PtoError:
            raise
        except Exception as problem:      # a broken pool, a killed worker of a cluster, a result that does not arrive
            if not self._has_lost:
                self._has_lost = True
                said = f"{type(problem).__name__}: {problem}".rstrip(": ")
                warnings.warn(f"auto_schedule: the executor has lost work, which is simulated in this process ({said:.200})", stacklevel=2)
            return self._figures(tuning, schedules)

    def finished(self) -> list[Tried]:
        """Return the results of the last batch: those of all trials, or of fewer where Ctrl-C ended the batch."""
        batch, figures = self._begun
        return [Tried(candidate, figures[index].cycles, figures[index].bound, figures[index].refused)
                for index, candidate in enumerate(batch) if index in figures]

    def comparison(self, tuning: tuple[int, ...], schedule: Schedule) -> Comparison | None:
        """Return the starting point and the best side by side, where both ran in this process and have few enough tasks to draw."""
        usual, best = self._programs.get((0,) * len(tuning)), self._programs.get(tuning)
        if not isinstance(usual, Program) or not isinstance(best, Program) or len(usual.timed_run.columns.task_site) > _MOST_KEPT:
            return None
        start = usual.simulate(overheads=self._overheads)
        found = best.simulate(schedule, overheads=self._overheads)
        return compare({"as given": start} if schedule == self._base and not any(tuning) else {"as given": start, "found": found})

    def program(self, tuning: tuple[int, ...]) -> Program:
        """Return the program of a tuning, after its run.

        Raises: the errors of making, compiling or running it.
        """
        program = self._programs.get(tuning)
        if not isinstance(program, Program):
            program = self._programs[tuning] = run_once(self._make(tuning), self._bindings, self._arch)
        return program

    def _figures(self, tuning: tuple[int, ...], schedules: Sequence[Schedule]) -> list[Figures]:
        program = self._programs.get(tuning)
        if program is None:
            try:
                program = self.program(tuning)
            except PtoError as problem:      # such as a tile that does not fit; other values may work
                if not any(tuning):
                    raise
                program = self._programs[tuning] = problem.message
        if isinstance(program, str):
            return [Figures(None, refused=program)] * len(schedules)
        return figures_of(program, schedules, overheads=self._overheads)

    def _submit(self, executor: Executor, tuning: tuple[int, ...], schedules: Sequence[Schedule]) -> Future[list[Figures]]:
        if isinstance(executor, ThreadPoolExecutor):
            self._figures(tuning, ())       # run here, because the threads share the program
            return self._submitted(executor, self._figures, tuning, schedules)
        if tuning not in self._packed:
            try:
                self._packed[tuning] = pack(self._make(tuning), self._bindings)
            except PtoError as problem:
                refused: Future[list[Figures]] = Future()
                refused.set_result([Figures(None, refused=problem.message)] * len(schedules))
                return refused
        arch = "" if self._arch is None else self._arch.model_dump_json()
        return self._submitted(executor, figures_elsewhere, self._packed[tuning], arch, self._overheads,
                               [schedule.model_dump_json() for schedule in schedules])

    def _submitted(self, executor: Executor, function: Callable[..., list[Figures]], *args: object) -> Future[list[Figures]]:
        try:
            return executor.submit(function, *args)
        except BrokenExecutor as problem:      # a worker has died: as if it had died later
            lost: Future[list[Figures]] = Future()
            lost.set_exception(problem)
            return lost
        except RuntimeError as problem:      # the executor is shut down
            raise AutoScheduleError("the executor takes no work", here(), found=f"{type(executor).__name__}: {problem}",
                                    help="give one that is open: with ProcessPoolExecutor() as pool: auto_schedule(w, executor=pool)"
                                    ) from None


def _parts(places: Sequence[int], n: int) -> list[list[int]]:
    size = max(1, -(-len(places) // n))
    return [list(places[start:start + size]) for start in range(0, len(places), size)]


# -- auto_schedule -----------------------------------------------------------------------------------------------------
def find_schedule(what: Workload | Callable[..., Workload], arch: object, budget: int, seed: int, executor: Executor | None,
                  bindings: Mapping[str, object], *, overheads: bool, progress: bool | None) -> AutoSchedule:
    """Check the arguments of `auto_schedule`, run the workload once, search, and return the result."""
    tunables = _check(what, budget, seed, executor)
    _check_options(bindings, overheads, progress)
    model = None if arch is None else read_arch(arch, "unit")
    values = {name: tunable.values for name, tunable in tunables.items()}

    def make(tuning: tuple[int, ...]) -> Workload:
        workload = what if isinstance(what, Workload) else what(**tuned(values, tuning))
        if not isinstance(workload, Workload):
            raise AutoScheduleError("the function returns no workload", here(), expected="a Workload", found=repr(workload))
        return workload

    usual = (0,) * len(values)
    first = make(usual)
    with step("auto_schedule", int(budget), shown=progress) as shown:
        least: list[int] = []

        def look(figures: Figures) -> None:
            if figures.cycles is not None and (not least or figures.cycles < least[0]):
                least[:] = [figures.cycles]
            shown.advance(note=f"best {least[0]:,} cycles" if least else "")

        trials = Trials(first.schedule, make, bindings=bindings, arch=model, overheads=overheads, executor=executor, look=look)
        program = trials.program(usual)
        asked = questions(first.schedule, program.plan, model or read_arch(None, "unit"))
        trials.ask(asked)
        draw = Draw([*(len(question.answers) for question in asked), *map(len, values.values())], len(asked), int(seed))
        shown.total = min(int(budget), draw.size)
        tried: list[Tried] = []
        was_stopped = False
        try:
            tried.extend(search(draw, int(budget), trials))
        except KeyboardInterrupt:
            known = {one.candidate for one in tried}
            tried += [one for one in trials.finished() if one.candidate not in known]
            if not tried or tried[0].candidate != draw.first():
                raise
            was_stopped = True
    return _result(trials, tried, values, make, int(seed), was_stopped=was_stopped)


def _check(what: object, budget: object, seed: object, executor: object) -> Mapping[str, Tunable]:
    """Return the tunables.

    Raises: S111 for arguments that cannot be searched.
    """
    tunables = tunables_of(what) if callable(what) and not isinstance(what, Workload) else {}
    if not tunables and not isinstance(what, Workload | WorkloadFunction):
        raise AutoScheduleError("auto_schedule takes a workload", here(), found=repr(what),
                                expected="a Workload, or a function whose parameters are Tunables and that returns one")
    _check_numbers(budget, seed, executor)
    return tunables


def _check_numbers(budget: object, seed: object, executor: object) -> None:
    if isinstance(budget, bool) or not isinstance(budget, int | np.integer) or budget < 1:
        raise AutoScheduleError("the budget is the number of schedules that are simulated", here(), expected="an int of at least 1",
                                found=repr(budget))
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise AutoScheduleError("the seed is a whole number", here(), expected="an int", found=repr(seed))
    if executor is not None and not isinstance(executor, Executor):
        raise AutoScheduleError("the executor is one of concurrent.futures", here(), found=repr(executor),
                                expected="an Executor: ProcessPoolExecutor(), ThreadPoolExecutor(), or a cluster's",
                                help="give an instance, not the class" if isinstance(executor, type) else None)


def _check_options(bindings: object, overheads: object, progress: object) -> None:
    if not isinstance(bindings, Mapping) or not all(isinstance(name, str) for name in bindings):
        raise AutoScheduleError("the bindings are names with values, as a run takes them", here(), expected="a dict, {'n': 4, 'X': array}",
                                found=repr(bindings))
    if not isinstance(overheads, bool):
        raise AutoScheduleError("overheads says whether control processors take time", here(), expected="True or False",
                                found=repr(overheads))
    if not isinstance(progress, bool | None):
        raise AutoScheduleError("progress says whether a bar is shown", here(), expected="True, False or None", found=repr(progress))


def _result(trials: Trials, tried: list[Tried], values: Mapping[str, tuple[object, ...]], make: Callable[[tuple[int, ...]], Workload],
            seed: int, *, was_stopped: bool) -> AutoSchedule:
    shown = tuple(Trial(trials.schedule(trial.candidate), tuned(values, trial.candidate.tuning), trial.cycles, trial.bound, trial.refused)
                  for trial in tried)
    if tried[0].cycles is None:
        raise AutoScheduleError("the schedule that is there cannot be simulated", here(), found=tried[0].refused)
    best = best_of(tried)
    schedule = trials.schedule(best.candidate)
    return AutoSchedule(make(best.candidate.tuning).under(schedule), schedule, tuned(values, best.candidate.tuning), best.cycles or 0,
                        tried[0].cycles, best.bound, shown, seed, was_stopped, Kept(trials.comparison(best.candidate.tuning, schedule)))


@overload
def auto_schedule(what: JitFunction[Any], *arrays: Any, arch: object = None, budget: int = 100, overheads: bool = False,
                  wall_time: bool = False) -> TilePlan: ...


@overload
def auto_schedule(what: Workload | Callable[..., Workload], *, arch: object = None, budget: int = 100, seed: int = 0,
                  executor: Executor | None = None, bindings: Mapping[str, object] | None = None, overheads: bool = False,
                  progress: bool | None = None) -> AutoSchedule: ...


@user_call()
def auto_schedule(what: JitFunction[Any] | Workload | Callable[..., Workload], *arrays: Any, arch: object = None, budget: int = 100,
                  seed: int = 0, executor: Executor | None = None, bindings: Mapping[str, object] | None = None, overheads: bool = False,
                  progress: bool | None = None, wall_time: bool = False) -> AutoSchedule | TilePlan:
    """Return the schedule with the fewest simulated cycles that the search finds; it is never worse than the given one.

    `what` is a workload, or a function that returns one and whose parameters are all Tunables. Directives that are set stay; the search
    varies the others: dispatch, streams, the order of ready tasks, pools, window, and edges from data instead of structure.
    `arch` is an Arch or its name, as for compile(). `budget` is the maximum number of simulated schedules. Equal seeds give equal
    results with every executor. `executor` is any executor of concurrent.futures, for parallel simulation; processes receive a pickled
    copy of the workload and its arrays. `bindings` are as for run(). `overheads` counts the costs of the control processors. `progress`
    shows a bar on the terminal after a second; None: if there is one. Ctrl-C ends the search with the best schedule so far.

    For a function of jit, `auto_schedule(f, *arrays)` simulates the tiles around those of the default plan, and returns the best
    `TilePlan`; it takes `arch`, `budget` and `overheads`. `wall_time` times the runs of each plan on this machine in place of simulating.

    The workload runs once per tried combination of Tunables (and per worker process) and writes its outputs.

    Raises: S111 for arguments that cannot be searched, and the errors of compiling and running the workload.

    >>> print(auto_schedule(w, arch="ascend_910b", budget=50))  # doctest: +SKIP
    """
    if isinstance(what, JitFunction):
        _check_numbers(budget, seed, executor)
        if executor is not None or bindings is not None:
            raise AutoScheduleError("a search for the plan of a function takes its arrays", here(), found="executor= or bindings=",
                                    expected=f"auto_schedule({what.__name__}, *arrays, arch=, budget=, overheads=)")
        _check_options({}, overheads, progress)
        if not isinstance(wall_time, bool):
            raise AutoScheduleError("wall_time says whether runs are timed", here(), expected="True or False", found=repr(wall_time))
        found: TilePlan = late_module("pto_wsp.api.plan_search").find_plan(what, arrays, arch, int(budget), overheads=overheads,
                                                                           wall_time=wall_time)
        return found
    if wall_time is not False:
        raise AutoScheduleError("schedules of a workload are compared in simulated time", here(), found="wall_time=",
                                expected="a function of jit, whose plans may be timed")
    if arrays:
        raise AutoScheduleError("auto_schedule of a workload takes no arrays by position", here(), expected="bindings={'X': array}",
                                found=repr(arrays)[:80])
    return find_schedule(what, arch, budget, seed, executor, {} if bindings is None else bindings, overheads=overheads, progress=progress)
