"""Simulate candidates: one run of each tuned workload, then its recorded tasks under every schedule.

An executor in other processes gets the workload itself, pickled once, and runs it once; threads and no executor share the run.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import lru_cache

from pto_wsp.api.programs.program import Program
from pto_wsp.api.workloads.workload import Workload
from pto_wsp.arch.model import Arch
from pto_wsp.auto.search import Tried
from pto_wsp.auto.space import Candidate, Question, answered
from pto_wsp.errors import AutoScheduleError, PtoError
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.source import here
from pto_wsp.values import dataclass

_PARTS = 4      # of a batch, for as many workers at a time


@dataclass(frozen=True, slots=True)
class Figures:
    """What a schedule takes: cycles and their lower bound, or why it is refused."""

    cycles: int | None
    bound: int = 0
    refused: str = ""


def pack(workload: Workload, bindings: Mapping[str, object]) -> bytes:
    """Return a workload and its bindings as bytes."""
    return pickle.dumps((workload, dict(bindings)), pickle.HIGHEST_PROTOCOL)


def run_once(workload: Workload, bindings: Mapping[str, object], arch: Arch | None) -> Program:
    """Return a program that has run, under the workload's own schedule."""
    program = workload.compile(arch=arch)
    program._given.advice = "give it to the search: auto_schedule(..., bindings={{'{}': {}}})"
    return program.run(**bindings)


@lru_cache(maxsize=8)
def _program_of(packed: bytes, arch: str) -> Program:
    """Return the program of a job in this process, run on copies of its arrays."""
    workload, bindings = pickle.loads(packed)
    return run_once(workload, bindings, Arch.model_validate_json(arch) if arch else None)


def figures_of(program: Program, schedules: Sequence[Schedule], *, overheads: bool) -> list[Figures]:
    """Return what each schedule takes on the tasks of a program that has run."""
    found: list[Figures] = []
    for schedule in schedules:
        try:
            stats = program.simulate(schedule, overheads=overheads).stats
        except PtoError as problem:
            found.append(Figures(None, refused=problem.message))
        else:
            found.append(Figures(stats.total_cycles, stats.lower_bound))
    return found


def figures_elsewhere(packed: bytes, arch: str, overheads: bool, schedules: Sequence[str]) -> list[Figures]:
    """Return what `figures_of` returns, in a process that knows nothing yet."""
    return figures_of(_program_of(packed, arch), [Schedule.model_validate_json(text) for text in schedules], overheads=overheads)


class Trials:
    """Simulates batches of candidates for a search."""

    def __init__(self, base: Schedule, make: Callable[[tuple[int, ...]], Workload], *,
                 bindings: Mapping[str, object], arch: Arch | None, overheads: bool, executor: Executor | None) -> None:
        """`make` returns the workload of a tuning."""
        self._base, self._make = base, make
        self._asked: tuple[Question, ...] = ()
        self._bindings, self._arch, self._overheads, self._executor = bindings, arch, overheads, executor
        self._programs: dict[tuple[int, ...], Program | str] = {}
        self._packed: dict[tuple[int, ...], bytes] = {}

    def ask(self, questions: tuple[Question, ...]) -> None:
        """Say what the answers of candidates answer."""
        self._asked = questions

    def schedule(self, candidate: Candidate) -> Schedule:
        """Return the schedule of a candidate."""
        return answered(self._base, self._asked, candidate.answers)

    def __call__(self, batch: Sequence[Candidate]) -> list[Tried]:
        """Return what became of each candidate, in the order of the batch."""
        groups: dict[tuple[int, ...], list[int]] = {}
        for at, candidate in enumerate(batch):
            groups.setdefault(candidate.tuning, []).append(at)
        found: dict[int, Figures] = {}
        waiting: list[tuple[list[int], Future[list[Figures]]]] = []
        for tuning, places in groups.items():
            for part in _parts(places, 1 if self._executor is None else _PARTS):
                schedules = [self.schedule(batch[at]) for at in part]
                if self._executor is None:
                    found.update(zip(part, self._figures(tuning, schedules), strict=True))
                else:
                    waiting.append((part, self._submit(self._executor, tuning, schedules)))
        for part, future in waiting:
            found.update(zip(part, future.result(), strict=True))
        return [Tried(candidate, found[at].cycles, found[at].bound, found[at].refused) for at, candidate in enumerate(batch)]

    def program(self, tuning: tuple[int, ...]) -> Program:
        """Return the program of a tuning, which has run.

        Raises: what making, compiling or running it raises.
        """
        known = self._programs.get(tuning)
        if not isinstance(known, Program):
            known = self._programs[tuning] = run_once(self._make(tuning), self._bindings, self._arch)
        return known

    def _figures(self, tuning: tuple[int, ...], schedules: Sequence[Schedule]) -> list[Figures]:
        known = self._programs.get(tuning)
        if known is None:
            try:
                known = self.program(tuning)
            except PtoError as problem:      # a tile that does not fit, a size that is not divisible: another value will do
                if not any(tuning):
                    raise
                known = self._programs[tuning] = problem.message
        if isinstance(known, str):
            return [Figures(None, refused=known)] * len(schedules)
        return figures_of(known, schedules, overheads=self._overheads)

    def _submit(self, executor: Executor, tuning: tuple[int, ...], schedules: Sequence[Schedule]) -> Future[list[Figures]]:
        if isinstance(executor, ThreadPoolExecutor):
            self._figures(tuning, ())       # made here: threads share it
            return _submitted(executor, self._figures, tuning, schedules)
        if tuning not in self._packed:
            try:
                self._packed[tuning] = pack(self._make(tuning), self._bindings)
            except PtoError as problem:
                refused: Future[list[Figures]] = Future()
                refused.set_result([Figures(None, refused=problem.message)] * len(schedules))
                return refused
        arch = "" if self._arch is None else self._arch.model_dump_json()
        return _submitted(executor, figures_elsewhere, self._packed[tuning], arch, self._overheads,
                               [schedule.model_dump_json() for schedule in schedules])


def _submitted(executor: Executor, function: Callable[..., list[Figures]], *args: object) -> Future[list[Figures]]:
    try:
        return executor.submit(function, *args)
    except RuntimeError as problem:      # shut down, or broken by a worker that died
        raise AutoScheduleError("the executor takes no work", here(), found=f"{type(executor).__name__}: {problem}",
                                help="give one that is open: with ProcessPoolExecutor() as pool: auto_schedule(w, executor=pool)") from None


def _parts(places: Sequence[int], n: int) -> list[list[int]]:
    size = max(1, -(-len(places) // n))
    return [list(places[at:at + size]) for at in range(0, len(places), size)]
