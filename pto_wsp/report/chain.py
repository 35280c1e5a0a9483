"""A chain of causes: from the beginning to the end of a task, without gaps.

>>> print(program.explain(-1).chain())
640 cycles: 640 in 3 tasks
    0 .. 200  4 load[b=1]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pto_wsp.values import dataclass
from pto_wsp.wording import both_ends, counted

# how a task of a chain came to start
_AFTER = {
    "not": "", "edge": "when what it waits for was there", "executor": "when its executor was free", "window": "when the window had room",
    "mark": "when its process went on", "release": "when timing released it", "start": "when the start policy let tasks run",
    "submit": "when it had been submitted", "dispatch": "when its AICPU dispatched it", "calendar": "when the calendar came to it",
}


@dataclass(frozen=True, slots=True)
class Step:
    """From `begin` to `end`, in cycles: a task runs (`kind` "task"), or something holds the next one back.

    `held`: what the task waited for last, or what holds: edge, executor, window, mark, release, start, submit, dispatch, retire, calendar;
    not: nothing.
    """

    begin: int
    end: int
    kind: str
    text: str
    task: int | None
    held: str


def together(steps: Iterable[Step]) -> Iterator[Step]:
    """Yield the steps with submissions that follow one another as one."""
    run: list[Step] = []
    for step in steps:
        if run and (step.kind, step.task) != ("submit", None):
            yield _as_one(run)
            run = []
        if (step.kind, step.task) == ("submit", None):
            run.append(step)
        else:
            yield step
    if run:
        yield _as_one(run)


def _as_one(run: Sequence[Step]) -> Step:
    if len(run) == 1:
        return run[0]
    return Step(run[0].begin, run[-1].end, "submit", f"the submission of {len(run)} tasks", None, "submit")


@dataclass(frozen=True, slots=True)
class Chain:
    """Steps one after another: what the end of the last task is made of."""

    steps: tuple[Step, ...]

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    @property
    def tasks(self) -> tuple[int, ...]:
        """The tasks of the chain."""
        return tuple(step.task for step in self.steps if step.task is not None)

    @property
    def cycles(self) -> Mapping[str, int]:
        """Cycles by kind of step: `task` for those in which a task of the chain runs."""
        found: Counter[str] = Counter()
        for step in self.steps:
            found[step.kind] += step.end - step.begin
        return dict(found)

    def __str__(self) -> str:
        n = len(self.steps)
        end = self.steps[-1].end if n else 0
        by_kind = [f"{cycles} in {counted(len(self.tasks), 'task')}" if kind == "task" else f"{cycles} held by {kind}"
                   for kind, cycles in self.cycles.items() if cycles or kind == "task"]
        lines = [f"{counted(end, 'cycle')}: {', '.join(by_kind)}" if n else "no tasks"]
        width = len(str(end))

        def line(at: int) -> str:
            step = self.steps[at]
            text = f"{step.text}  {_AFTER[step.held]}".rstrip() if step.kind == "task" else f"  held by {step.text}"
            return f"  {step.begin:>{width}} .. {step.end:>{width}}  {text}"

        return "\n".join((*lines, *both_ends(n, line, lambda more: f"  … {more} more steps")))

    __repr__ = __str__
