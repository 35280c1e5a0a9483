"""Define the search space of auto_schedule: the open questions of a schedule, and the answers to try for each.

Directives that the user set stay. The first answer to each question changes nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from pto_wsp.arch.model import Arch
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.ir.plan_walk import submits
from pto_wsp.schedule.directives import Deps, DispatchPolicy, Pools, ReadyPolicy, TaskWindow
from pto_wsp.schedule.keys import trace_key
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.values import dataclass

Change: TypeAlias = Callable[[Schedule], Schedule]


@dataclass(frozen=True, slots=True)
class Decision:
    """A choice whose answers are changes of a schedule; the first answer changes nothing."""

    name: str
    answers: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """An answer to every question and a value for every tunable, as indices."""

    answers: tuple[int, ...]
    tuning: tuple[int, ...] = ()

    @property
    def places(self) -> tuple[int, ...]:
        """The answers, then the tuning."""
        return (*self.answers, *self.tuning)


def unchanged(schedule: Schedule) -> Schedule:
    """Return the schedule unchanged."""
    return schedule


def loop_names(plan: TaskPlan) -> tuple[str, ...]:
    """Return the names of the loops that enclose every task, which a key may use; the position of a sparse column is no such name."""
    names_by_task = [{var.name for var in task.loops} for task in submits(plan)]
    common = set.intersection(*names_by_task) if names_by_task else set()
    first = submits(plan)[0].loops if names_by_task else ()
    return tuple(dict.fromkeys(var.name for var in first if var.name in common and var.name.isidentifier()))


def worker_counts(arch: Arch) -> tuple[int, ...]:
    """Return the AICPU counts to try: the maximum of the arch, or its default, and repeated halves of it."""
    most = arch.aicpu.count or arch.aicpu.default_count
    counts = [most]
    while counts[-1] > 1:
        counts.append(counts[-1] // 2)
    return tuple(counts)


def questions(base: Schedule, plan: TaskPlan, arch: Arch) -> tuple[Decision, ...]:
    """Return the questions that a schedule leaves open."""
    asked: list[Decision] = []
    names = loop_names(plan)
    graph = base.task_graph

    def ask(name: str, *answers: Change) -> None:
        if answers:
            asked.append(Decision(name, (unchanged, *answers)))

    if graph is None or graph.deps is None:
        ask("deps", lambda s: s.with_task_graph(deps=Deps.infer_bytes_overlap()))
    if base.calendar is None and base.spatial_map is None and base.dispatch is None:
        ask("dispatch", *(_dispatch(policy) for n in worker_counts(arch) for policy in _policies(names, n)))
    if base.calendar is None and base.streams is None and base.stream_by is None:
        ask("streams", *(_stream_by(name) for name in names))
    if base.calendar is None and (graph is None or graph.ready is None):
        steals = () if base.spatial_map is not None else (lambda s: s.with_task_graph(ready=ReadyPolicy.work_steal()),)
        ask("ready", *steals,
            *(_first(name, sign) for name in names for sign in (1, -1)))
    if base.calendar is None and base.spatial_map is None and (graph is None or graph.pools is None):
        has_cores = arch.cores.cube is not None and arch.cores.vector is not None
        ask("pools", *((lambda s: s.with_task_graph(pools=Pools.by_exec_unit()),) if has_cores else ()))
    if graph is None or graph.window is None:
        ask("window", *(_window(size) for size in (64, 512)))
    return tuple(asked)


def _policies(names: Sequence[str], n: int) -> tuple[object, ...]:
    return (DispatchPolicy.work_steal(n), DispatchPolicy.round_robin(n),
            *(policy(name, n) for name in names for policy in (DispatchPolicy.affinity, DispatchPolicy.hash)))


def _dispatch(policy: object) -> Change:
    return lambda s: s.having(dispatch=policy)


def _stream_by(name: str) -> Change:
    return lambda s: s.having(stream_by=trace_key(name, "stream_by"))


def _first(name: str, sign: int) -> Change:
    """Return a change that starts the ready tasks with the largest loop variable first, or those with the smallest."""
    return lambda s: s.with_task_graph(ready=ReadyPolicy.priority(lambda t: sign * t.get(name)))


def _window(size: int) -> Change:
    return lambda s: s.with_task_graph(window=TaskWindow(size))


def answered(base: Schedule, asked: Sequence[Decision], answers: Sequence[int]) -> Schedule:
    """Return the schedule with these answers applied."""
    for question, answer in zip(asked, answers, strict=True):
        base = question.answers[answer](base)
    return base


def tuned(tunables: Mapping[str, Sequence[object]], tuning: Sequence[int]) -> dict[str, object]:
    """Return the value of every tunable."""
    return {name: values[index] for (name, values), index in zip(tunables.items(), tuning, strict=True)}


class Draw:
    """Draw candidates at random, or close to a good one; equal seeds give equal candidates."""

    def __init__(self, widths: Sequence[int], n_answers: int, seed: int) -> None:
        """Create the generator.

        `widths` holds the number of answers to each question, which are the first `n_answers`, then the number of values of each tunable.
        """
        self._widths = tuple(widths)
        self._n_answers = n_answers
        self._random = random.Random(seed)

    @property
    def size(self) -> int:
        """The number of candidates."""
        size = 1
        for width in self._widths:
            size *= width
        return size

    def first(self) -> Candidate:
        """Return the candidate that changes nothing."""
        return self._candidate([0] * len(self._widths))

    def alone(self) -> list[Candidate]:
        """Return one candidate for each answer, with no other change."""
        return [self._candidate([value if other == index else 0 for other in range(len(self._widths))])
                for index, width in enumerate(self._widths) for value in range(1, width)]

    def together(self, alone: Sequence[Candidate]) -> list[Candidate]:
        """Return combinations of the first two of these, the first three, and so on; of two answers to a question the first one counts."""
        places = [0] * len(self._widths)
        candidates: list[Candidate] = []
        for candidate in alone:
            for index, place in enumerate(candidate.places):
                if place and not places[index]:
                    places[index] = place
                    candidates.append(self._candidate(places))
        return candidates

    def all(self) -> list[Candidate]:
        """Return all candidates of a small space; the first candidate is the unchanged schedule."""
        prefixes: list[list[int]] = [[]]
        for width in self._widths:
            prefixes = [[*begun, index] for begun in prefixes for index in range(width)]
        return [self._candidate(places) for places in prefixes]

    def any(self) -> Candidate:
        """Return a random candidate."""
        return self._candidate([self._random.randrange(width) for width in self._widths])

    def near(self, candidate: Candidate) -> Candidate:
        """Return a candidate that differs from another in one answer, sometimes in two."""
        places = list(candidate.places)
        open_places = [index for index, width in enumerate(self._widths) if width > 1]
        for index in self._random.sample(open_places, min(len(open_places), self._random.choice((1, 1, 2)))):
            others = [place for place in range(self._widths[index]) if place != places[index]]
            places[index] = self._random.choice(others)
        return self._candidate(places)

    def _candidate(self, places: Sequence[int]) -> Candidate:
        return Candidate(tuple(places[:self._n_answers]), tuple(places[self._n_answers:]))
