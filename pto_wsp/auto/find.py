"""What `auto_schedule` does: check what it is given, run the workload once, search, and say what was found."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from pto_wsp.api.workloads.tunable import Tunable, tunables_of
from pto_wsp.api.workloads.workload import Workload, WorkloadFunction
from pto_wsp.auto.result import AutoSchedule, Trial
from pto_wsp.auto.search import Tried, best_of, search
from pto_wsp.auto.space import Draw, questions, tuned
from pto_wsp.auto.trials import Trials
from pto_wsp.errors import AutoScheduleError
from pto_wsp.source import here
from pto_wsp.targets.options import read_arch

if TYPE_CHECKING:
    from rich.progress import Progress


def find_schedule(what: Workload | Callable[..., Workload], arch: object, budget: int, seed: int, executor: Executor | None,
                  bindings: Mapping[str, object], *, overheads: bool, progress: bool | None) -> AutoSchedule:
    """Do what `auto_schedule` says."""
    tunables = _check(what, budget, seed, executor)
    _check_options(bindings, overheads, progress)
    model = None if arch is None else read_arch(arch, "unit")
    values = {name: tunable.values for name, tunable in tunables.items()}

    def make(tuning: tuple[int, ...]) -> Workload:
        made = what if isinstance(what, Workload) else what(**tuned(values, tuning))
        if not isinstance(made, Workload):
            raise AutoScheduleError("the function returns no workload", here(), expected="a Workload", found=repr(made))
        return made

    usual = (0,) * len(values)
    first = make(usual)
    trials = Trials(first.schedule, make, bindings=bindings, arch=model, overheads=overheads, executor=executor)
    program = trials.program(usual)
    asked = questions(first.schedule, program.plan, model or read_arch(None, "unit"))
    trials.ask(asked)
    draw = Draw([*(len(question.answers) for question in asked), *map(len, values.values())], len(asked), int(seed))
    with _bar(progress, min(budget, draw.size)) as step:
        tried = [step(one) for one in search(draw, int(budget), trials)]
    return _result(trials, tried, values, make, int(seed))


def _check(what: object, budget: object, seed: object, executor: object) -> Mapping[str, Tunable]:
    """Return the tunables; refuse what cannot be searched."""
    tunables = tunables_of(what) if callable(what) and not isinstance(what, Workload) else {}
    if not tunables and not isinstance(what, Workload | WorkloadFunction):
        raise AutoScheduleError("auto_schedule takes a workload", here(), found=repr(what),
                                expected="a Workload, or a function whose parameters are Tunables and that returns one")
    if isinstance(budget, bool) or not isinstance(budget, int | np.integer) or budget < 1:
        raise AutoScheduleError("the budget is the number of schedules that are simulated", here(), expected="an int of at least 1",
                                found=repr(budget))
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise AutoScheduleError("the seed is a whole number", here(), expected="an int", found=repr(seed))
    if executor is not None and not isinstance(executor, Executor):
        raise AutoScheduleError("the executor is one of concurrent.futures", here(), found=repr(executor),
                                expected="an Executor: ProcessPoolExecutor(), ThreadPoolExecutor(), or a cluster's",
                                help="give an instance, not the class" if isinstance(executor, type) else None)
    return tunables


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
            seed: int) -> AutoSchedule:
    shown = tuple(Trial(trials.schedule(one.candidate), tuned(values, one.candidate.tuning), one.cycles, one.bound, one.refused)
                  for one in tried)
    if tried[0].cycles is None:
        raise AutoScheduleError("the schedule that is there cannot be simulated", here(), found=tried[0].refused)
    best = best_of(tried)
    schedule = trials.schedule(best.candidate)
    return AutoSchedule(make(best.candidate.tuning).under(schedule), schedule, tuned(values, best.candidate.tuning), best.cycles or 0,
                        tried[0].cycles, best.bound, shown, seed)


@contextmanager
def _bar(progress: bool | None, total: int) -> Iterator[Callable[[Tried], Tried]]:
    """Give a function that every result goes through, and show how many have."""
    if progress is False or (progress is None and not sys.stderr.isatty()):
        yield lambda one: one
        return
    with _rich_bar() as bar:
        task = bar.add_task("schedules", total=total)
        least: list[int] = []

        def step(one: Tried) -> Tried:
            least[:] = [min([*least, *([] if one.cycles is None else [one.cycles])])] if least or one.cycles is not None else []
            bar.update(task, advance=1, description=f"best {least[0]} cycles" if least else "schedules")
            return one

        yield step


def _rich_bar() -> Progress:
    from rich.console import Console  # a bar on a terminal alone needs it
    from rich.progress import Progress

    return Progress(console=Console(stderr=True))
