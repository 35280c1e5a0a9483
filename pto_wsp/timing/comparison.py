"""Compare runs and simulations: cycles, bounds, cores, kernels, and what each does otherwise than the first.

>>> print(compare({"as run": program, "stealing": ReadyPolicy.work_steal()}))
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import numpy as np

from pto_wsp.arch.model import Arch
from pto_wsp.calls import user_calls
from pto_wsp.doors import Displayed, late_module
from pto_wsp.errors import TaskNameError
from pto_wsp.schedule.changes import differences, settings_of
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.source import here
from pto_wsp.timing.stats import Stats
from pto_wsp.timing.timed_run import TimedRun
from pto_wsp.timing.trace import Trace
from pto_wsp.values import dataclass
from pto_wsp.wording import counted

MOST_CHAINED = 2048      # tasks up to which the chain of causes of a candidate is found when it is compared


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Compared:
    """A candidate of a comparison: its figures, its schedule and arch (None for bare figures), and what differs from the first, by subject.

    `letter`: its place among those given. `causes`: the cycles of its chain of causes by kind, empty where a chain is too long to look for.
    """

    name: str
    letter: str
    stats: Stats
    settings: Mapping[str, str]
    schedule: Schedule | None = None
    arch: Arch | None = None
    timed: TimedRun | None = None
    changes: Mapping[str, str] = field(default_factory=dict)
    causes: Mapping[str, int] = field(default_factory=dict)

    @property
    def cycles(self) -> int:
        """The makespan in cycles."""
        return self.stats.total_cycles

    @property
    def trace(self) -> Trace | None:
        """The busy interval and executor of each task; None for bare figures and for runs of more tasks than a trace keeps."""
        return None if self.timed is None or self.timed.sim.tasks is None else self.timed.trace

    @property
    def lanes(self) -> Trace | None:
        """The trace without what delayed each task: enough to draw it, and quicker."""
        return None if self.timed is None or self.timed.sim.tasks is None else self.timed.lanes

    @property
    def kernel_cycles(self) -> Mapping[str, int]:
        """The cycles in which tasks of each kernel ran, by name; empty without a trace."""
        trace = self.lanes
        if trace is None:
            return {}
        cycles = np.bincount(trace.kernel, trace.end - trace.start, len(trace.kernels)).astype(np.int64)
        found: dict[str, int] = {}
        for name, count in zip(trace.kernels, cycles.tolist(), strict=True):
            found[name] = found.get(name, 0) + count
        return found

    def __repr__(self) -> str:
        figures = f"{counted(self.cycles, 'cycle')}, {self.stats.gap:.1%} above the bound"
        return f"Compared({'; '.join([f'{self.name!r}: {figures}', *filter(None, [said(self.changes)])])})"


def compared(name: str, stats: Stats, schedule: Schedule | None = None, arch: Arch | None = None, timed: TimedRun | None = None, *,
             program: str = "", overheads: bool = False) -> Compared:
    """Return a candidate. `program`: what its tasks are of."""
    settings: dict[str, str] = {}
    if schedule is not None and arch is not None:
        settings = {"program": program, **settings_of(schedule), "arch": arch.name, **_other_numbers(arch)}
        settings["overheads"] = "counted" if overheads else "not counted"
    causes: Mapping[str, int] = {}
    if stats.chain is not None and stats.task_count <= MOST_CHAINED:
        causes = stats.chain().causes
    return Compared(name, "", stats, settings, schedule, arch, timed, causes=causes)


def _other_numbers(arch: Arch) -> Mapping[str, str]:
    """Return the numbers of a machine as text, by their place in it."""
    found: dict[str, str] = {}

    def walk(value: object, place: str) -> None:
        if isinstance(value, Mapping):
            for name, inner in value.items():
                walk(inner, f"{place}.{name}")
        elif isinstance(value, bool | int | float):
            found[place] = f"{value}"

    walk(arch.model_dump(), "arch")
    return found


def changes_of(given: Sequence[Compared]) -> list[Mapping[str, str]]:
    """Return, by candidate, the differences of its settings from the first's; of another machine only the name."""
    found: list[Mapping[str, str]] = []
    for one in given:
        changes = differences(given[0].settings, one.settings) if given[0].settings and one.settings else {}
        found.append({subject: text for subject, text in changes.items() if not (subject.startswith("arch.") and "arch" in changes)})
    return found


@user_calls(leave_out=("__init__",))
class Comparison(Displayed, Sequence[Compared]):
    """Runs or simulations side by side, best first. `first`: the one that the others are held against.

    `comparison["name"]` is one of them, `comparison[0]` the best.
    """

    def __init__(self, given: Sequence[Compared]) -> None:
        """Compare candidates with the first of them."""
        many = len(given) > len(_LETTERS)
        rows = [replace(one, letter=str(at + 1) if many else _LETTERS[at], changes=changes)
                for at, (one, changes) in enumerate(zip(given, changes_of(given), strict=True))]
        self.first = rows[0]
        self.rows: tuple[Compared, ...] = tuple(sorted(rows, key=lambda one: (one.cycles, len(one.changes))))

    @property
    def best(self) -> Compared:
        """The candidate with the fewest cycles; of equals the candidate that changes least."""
        return self.rows[0]

    def columns(self) -> Mapping[str, np.ndarray[Any, Any]]:
        """Return the rows as columns, best first: `pandas.DataFrame(comparison.columns())`.

        `name`, `letter`. `cycles`, `lower_bound`, `critical_path`, `work` in cycles. `gap`: cycles above the bound, as a fraction.
        `speedup`: cycles of the first over those of the row. `tasks`, `cores_used`, `n_executors`. `run_ms`, `compile_ms`: wall time of the
        run behind it. `changes`: what differs from the first, as text.
        """
        stats = [one.stats for one in self.rows]
        whole = {"cycles": [s.total_cycles for s in stats], "lower_bound": [s.lower_bound for s in stats],
                 "critical_path": [s.critical_path for s in stats], "work": [s.work for s in stats], "tasks": [s.task_count for s in stats],
                 "cores_used": [s.cores_used for s in stats], "n_executors": [len(s.executors) for s in stats]}
        real = {"gap": [s.gap for s in stats], "speedup": [self.first.cycles / s.total_cycles if s.total_cycles else 1.0 for s in stats],
                "run_ms": [s.execute_time_ms for s in stats], "compile_ms": [s.compile_time_ms for s in stats]}
        text = {"name": [one.name for one in self.rows], "letter": [one.letter for one in self.rows]}
        return ({name: np.array(values, object) for name, values in text.items()}
                | {name: np.array(values, np.int64) for name, values in whole.items()}
                | {name: np.array(values, np.float64) for name, values in real.items()}
                | {"changes": np.array([said(one.changes) for one in self.rows], object)})

    def report(self, path: str | Path) -> Path:
        """Write a page of HTML that shows the comparison, then the lanes and figures of each, best first; return its path.

        Raises: C108 if the file cannot be written, T205 if `path` is no path.
        """
        cards = late_module("pto_wsp.view.compare_cards").comparison_page(self)
        written: Path = late_module("pto_wsp.view.notebook").write_page(cards, cards[0].title, path)
        return written

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Compared]:
        return iter(self.rows)

    def __getitem__(self, which: int | slice | str) -> Any:
        if not isinstance(which, str):
            return self.rows[which]
        for one in self.rows:
            if which in (one.name, one.letter):
                return one
        raise TaskNameError(f"nothing compared is called {which!r}", here(), expected=", ".join(repr(one.name) for one in self.rows[:8]))

    def __str__(self) -> str:
        return comparison_text(self)

    __repr__ = __str__


_LETTERS = "abcdefghijklmnopqrstuvwxyz"


# -- text --------------------------------------------------------------------------------------------------------------
_BAR, _SHOWN = 24, 20
_CHANGES = 72


def said(changes: Mapping[str, str]) -> str:
    """Return what differs as text: `window 256, ready work_steal`."""
    return ", ".join(f"{subject} {text}" for subject, text in changes.items())


def sentence_of(comparison: Comparison) -> str:
    """Return one sentence: which is best, by how much, and how far it is above the lower bound."""
    best, first = comparison.best, comparison.first
    if not best.stats.task_count and not first.stats.task_count:
        return "No task ran."
    cycles = {one.cycles for one in comparison}
    if len(comparison) > 1 and len(cycles) == 1:
        return f"All {len(comparison)} take {best.cycles:,} cycles."
    bound = f"{best.stats.gap:.0%} above the lower bound" if best.stats.gap >= 0.005 else "at the lower bound"
    if best is first:
        others = "" if len(comparison) == 1 else "; nothing here is faster"
        return f"{best.name}: {best.cycles:,} cycles, {bound}{others}."
    return f"{best.name} is best: {best.cycles:,} cycles, {versus(best, first)} against {first.name}; {bound}."


def versus(one: Compared, first: Compared) -> str:
    """Return the change of the cycles in percent: `−29 %`, `+3 %`; "" for the first itself."""
    return "" if one.letter == first.letter else percent(one.cycles, first.cycles)


def percent(cycles: int, first: int) -> str:
    """Return how much more or less some cycles are than others, in percent; "" where the others are none."""
    if not first or cycles == first:
        return "±0 %" if first else ""
    change = cycles / first - 1
    digits = 0 if abs(change) >= 0.01 else 2
    return f"{'−' if change < 0 else '+'}{100 * abs(change):.{digits}f} %"


def comparison_text(comparison: Comparison) -> str:
    """Return the comparison as text: a line each, best first, with a bar on one scale and | at the lower bound."""
    most = max(max(one.cycles, one.stats.lower_bound) for one in comparison) or 1
    width = max(len("cycles"), *(len(f"{one.cycles:,}") for one in comparison))
    names = min(32, max(len(one.name) for one in comparison))
    lines = [sentence_of(comparison),
             f"   {'':<{names}}  {'cycles':>{width}}  {'change':>8}  {'above bound':>11}  {'cores':>9}  {'':<{_BAR}}  differs from "
             f"{comparison.first.letter}".rstrip()]
    for one in comparison.rows[:_SHOWN]:
        stats = one.stats
        cores = f"{stats.cores_used}/{stats.n_cores or len(stats.executors)}"
        name = one.name if len(one.name) <= names else one.name[:names - 1] + "…"
        what = said(one.changes)
        what = what if len(what) <= _CHANGES else what[:_CHANGES - 1] + "…"
        lines.append(f"{one.letter:>2} {name:<{names}}  {one.cycles:>{width},}  {versus(one, comparison.first):>8}  {stats.gap:>11.0%}  "
                     f"{cores:>9}  {_bar(one, most):<{_BAR}}  {what}".rstrip())
    if len(comparison) > _SHOWN:
        lines.append(f"… {len(comparison) - _SHOWN} more")
    return "\n".join(lines)


def _bar(one: Compared, most: int) -> str:
    length, bound = round(_BAR * one.cycles / most), min(_BAR - 1, round(_BAR * one.stats.lower_bound / most))
    cells = ["█" if at < bound else "▒" for at in range(length)]
    cells += [" "] * (_BAR - len(cells))
    cells[bound] = "|"
    return "".join(cells)
