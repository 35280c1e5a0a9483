"""Time one run under several schedules and machines, and search for a schedule, from the command line.

Directives are given as in Python, without the names of classes: `round_robin(4)`, `affinity(b, 8)`, `work_steal`, `priority(b)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from types import MappingProxyType

from pto_wsp.api.program import Program
from pto_wsp.api.search import auto_schedule
from pto_wsp.api.workload import Workload
from pto_wsp.arch.instances import ARCH_NAMES as _ARCH_NAMES
from pto_wsp.cli.programs import choose, load_file, made_of, opened, refused
from pto_wsp.cli.runs import Given, arrays_of, run
from pto_wsp.errors import PtoError
from pto_wsp.schedule.changes import code_of
from pto_wsp.schedule.directives import DispatchPolicy, Pools, ReadyPolicy, TaskWindow
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.timing.retime import Simulation
from pto_wsp.values import dataclass
from pto_wsp.view.card import Card, Preformatted, TablePart
from pto_wsp.wording import counted, nearest

ARCH_NAMES = _ARCH_NAMES
_MOST_VARIANTS = 500
_ROWS = 40
_NO_MACHINE = ("C104", "C115")      # an arch that there is none of: no other row can do with it either
_BAR = 24      # characters of the longest bar


# -- directives of the command line ------------------------------------------------------------------------------------
_DIRECTIVE = re.compile(r"\s*(?P<name>\w+)\s*(?:\((?P<args>[^()]*)\)|:(?P<rest>[^()]*))?\s*")
Change = Callable[[Schedule], Schedule]
DISPATCHES: Mapping[str, tuple[str, Callable[..., object]]] = MappingProxyType({
    "round_robin": ("n", DispatchPolicy.round_robin), "work_steal": ("n?", DispatchPolicy.work_steal),
    "affinity": ("kn?", DispatchPolicy.affinity), "hash": ("kn?", DispatchPolicy.hash)})
_READIES: Mapping[str, tuple[str, Callable[..., object]]] = MappingProxyType({
    "fifo": ("", ReadyPolicy.fifo), "work_steal": ("", ReadyPolicy.work_steal), "priority": ("k", ReadyPolicy.priority)})
_POOLS: Mapping[str, tuple[str, Callable[..., object]]] = MappingProxyType({
    "single": ("", Pools.single), "by_exec_unit": ("", Pools.by_exec_unit)})
_EXAMPLES = {"n": "round_robin(4)", "n?": "work_steal or work_steal(8)", "kn?": "affinity(b) or affinity(b, 8)", "k": "priority(b)",
             "": "a name without brackets"}


def _policy(option: str, text: str, known: Mapping[str, tuple[str, Callable[..., object]]]) -> object:
    """Return the policy that a text such as `affinity(b, 4)` names.

    Raises: C108 for another name, or for other arguments than the policy takes.
    """
    match = _DIRECTIVE.fullmatch(text)
    if match is None or match["name"] not in known:
        near = nearest(text.partition("(")[0].strip(), known)
        raise refused(f"--{option} does not take {text!r}", expected=f"one of {', '.join(known)}",
                      help=f"did you mean {near}?" if near else None)
    takes, make = known[match["name"]]
    given = [part.strip() for part in (match["args"] or match["rest"] or "").split(",") if part.strip()]
    kinds = ["n" if part.isdecimal() and len(part) < 10 else "k" if part.isidentifier() else "?" for part in given]
    least = takes.removesuffix("?")
    accepted = {takes.replace("?", ""), least[:-1] if takes.endswith("?") else takes}
    if "".join(kinds) not in accepted:
        raise refused(f"--{option} {match['name']} does not take these arguments", found=text, expected=_EXAMPLES[takes].replace(
            _EXAMPLES[takes].partition("(")[0].split()[0], match["name"]) if takes else _EXAMPLES[takes])
    return make(*(int(part) if kind == "n" else part for part, kind in zip(given, kinds, strict=True)))


def _change(option: str, text: str) -> Change:
    """Return what an option's value does to a schedule."""
    if option in ("window", "streams"):
        if not (text.isdecimal() and 0 < int(text) < 1 << 31):
            raise refused(f"--{option} takes a whole number above 0", found=text)
        number = int(text)
        if option == "window":
            return lambda schedule: schedule.with_task_graph(window=TaskWindow(number))
        return lambda schedule: schedule.having(streams=number)
    policy = _policy(option, text, {"dispatch": DISPATCHES, "ready": _READIES, "pools": _POOLS}[option])
    if option == "dispatch":
        return lambda schedule: schedule.having(dispatch=policy)
    return lambda schedule: schedule.with_task_graph(**{option: policy})


# -- variants ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ScheduleVariant:
    """A schedule and a machine, as the command line says them, with the simulation or the reason for its refusal."""

    said: str
    simulated: Simulation | None
    refusal: str = ""

    @property
    def cycles(self) -> int:
        """The cycles; 0 without a simulation."""
        return self.simulated.total_cycles if self.simulated is not None else 0


def simulate_card(what: Path, workload: str, target: str, arches: Sequence[str], asked: Mapping[str, Sequence[str]], overheads: bool,
                  seed: int, given: Given) -> Card:
    """Run once, simulate every combination of the options' values, and return the card that compares them, fewest cycles first.

    Raises: C108 for options that do not fit; the errors of compile and run. A combination that is refused has its reason in its row.
    """
    options = [[(f"{name}={text}", _change(name, text)) for text in texts] for name, texts in asked.items() if texts]
    machines: list[str | None] = [*arches] or [None]
    n = len(machines)
    for values in options:
        n *= len(values)
    if n > _MOST_VARIANTS:
        raise refused(f"the options have {n} combinations", expected=f"at most {_MOST_VARIANTS}",
                      help="pto-wsp tune searches larger spaces")
    program = opened(what, workload, {"target": target})
    run(program, seed, given)
    counted_overheads = overheads or None
    first = _simulated(program, "as compiled", (), None, counted_overheads)
    variants = [_simulated(program, ", ".join([*(said for said, _ in picks), *([f"arch={machine}"] if machine else [])]),
                           [change for _, change in picks], machine, counted_overheads)
                for machine in machines for picks in product(*options) if picks or machine]
    return _comparison(program.plan.name, first, variants)


def _simulated(program: Program, said: str, changes: Sequence[Change], machine: str | None, overheads: bool | None) -> ScheduleVariant:
    try:
        schedule = program.schedule
        for change in changes:
            schedule = change(schedule)
        return ScheduleVariant(said, program.simulate(schedule if changes else None, arch=machine, overheads=overheads))
    except PtoError as problem:
        if problem.code in _NO_MACHINE:
            raise
        return ScheduleVariant(said, None, f"{problem.code}: {problem.message}")


def _comparison(name: str, first: ScheduleVariant, variants: Sequence[ScheduleVariant]) -> Card:
    timed = sorted((one for one in (first, *variants) if one.simulated is not None), key=lambda one: one.cycles)
    most = max((one.cycles for one in timed), default=1) or 1
    rows = [_row(one, first, most) for one in timed]
    rows += [(one.said, "", "-", "", "", one.refusal) for one in variants if one.simulated is None]
    has_refusals = any(one.simulated is None for one in variants)
    table = TablePart(title="Schedules", head=("schedule", "", "cycles", "vs compiled", "above bound", *(["refused"] * has_refusals)),
                      rows=tuple(row if has_refusals else row[:5] for row in rows[:_ROWS]), right=(2, 3, 4), more=max(0, len(rows) - _ROWS))
    best = timed[0] if timed else first
    sentence = "Nothing was faster than the schedule that it was compiled with." if best.cycles == first.cycles else \
        f"{best.said}: {best.cycles:,} cycles, {_against(best.cycles, first.cycles)} of {first.cycles:,} as compiled."
    return Card(title=name, subtitle=f"Simulation · {counted(len(variants), 'variant')} of one run", sentence=sentence, parts=(table,))


def _row(one: ScheduleVariant, first: ScheduleVariant, most: int) -> tuple[str, ...]:
    assert one.simulated is not None
    stats = one.simulated.stats
    bound = stats.lower_bound
    work = round(_BAR * min(bound, one.cycles) / most)
    bar = "█" * work + "▒" * (round(_BAR * one.cycles / most) - work)
    gap = f"{one.cycles / bound - 1:.0%}" if bound else "-"
    return one.said, bar, f"{one.cycles:,}", "" if one is first else _against(one.cycles, first.cycles), gap, ""


def _against(cycles: int, before: int) -> str:
    return f"{(cycles - before) / before:+.0%}" if before else "-"


# -- search ------------------------------------------------------------------------------------------------------------
def tune_card(file: Path, workload: str, arch: str, budget: int, seed: int, overheads: bool, given: Given, save: Path | None) -> Card:
    """Search for a schedule, save the program under the best one if asked to, and return the card with the code to paste.

    Raises: C108 for what is no workload of the file; the errors of compile, run and search; C107 for a folder that is not empty.
    """
    chosen = choose(load_file(file), file, workload, tuned=True)
    bindings = arrays_of(made_of(chosen, file).compile(), seed, given).bound
    found = auto_schedule(chosen, arch=arch or None, budget=budget, seed=seed, bindings=bindings, overheads=overheads)
    saved = "" if save is None else f"saved: {found.workload.compile(arch=arch or None).save(save)}"
    name = workload or found.workload.name
    values = ", ".join(f"{name}={value!r}" for name, value in found.tunables.items())
    code = f"best = {name}{'' if isinstance(chosen, Workload) else f'({values})'}{code_of(found.schedule)}"
    shown: Card = found.card
    return shown.model_copy(update={"parts": (*shown.parts, Preformatted(title="To paste", text=code)), "foot": saved})
