"""Compare programs that have run, simulations, figures, and schedules that are timed from the record of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pto_wsp.api.program import Program
from pto_wsp.arch.model import Arch
from pto_wsp.calls import user_call
from pto_wsp.errors import ComparisonError, PtoError
from pto_wsp.schedule.changes import changed
from pto_wsp.schedule.policy import Policy, shown_value
from pto_wsp.schedule.schedule import Schedule, Scheduled, schedule_of
from pto_wsp.source import here
from pto_wsp.timing.comparison import Compared, Comparison, changes_of, compared, said
from pto_wsp.timing.retime import Simulation
from pto_wsp.timing.stats import Stats

_LONGEST = 60
_EXPECTED = "a program that has run, program.simulate(...), stats, a Schedule, a policy, a list of policies, or an Arch"


@user_call()
def compare(*given: object, **named: object) -> Comparison:
    """Return programs, simulations, figures and schedules side by side, best first; ratios are against the first one given.

    Each is a program that has run, a `Simulation`, a `Stats`, or what is timed on the first program or simulation among them, without
    running anything: a Schedule, the workload under one, a policy in place of that run's own (`TaskWindow(256)`), a list of policies, an
    Arch. A dict gives names: `compare({"as run": program, "wider": TaskWindow(256)})`; so do keywords.

    Raises: S112 for what cannot be compared; R103 for a program that has not run; what `Program.simulate` raises.
    """
    pairs: list[tuple[str, object]] = []
    for one in given:
        if isinstance(one, Mapping):
            for name in one:
                if not isinstance(name, str) or not name.strip():
                    raise ComparisonError("a name in compare is no text", here(), expected='a dict of names: {"as run": program}',
                                          found=shown_value(name))
            pairs += one.items()
        elif isinstance(one, list | tuple) and one and not any(isinstance(part, Policy | Arch) for part in one):
            pairs += [("", part) for part in one]
        else:
            pairs.append(("", one))
    pairs += named.items()
    return compare_all(pairs)


def compare_with(program: Program, given: tuple[object, ...], named: Mapping[str, object]) -> Comparison:
    """Return a program's last run beside what is given: `Program.compare`."""
    return compare({_free("as run", given, named): program}, *given, **named)


def _free(name: str, given: tuple[object, ...], named: Mapping[str, object]) -> str:
    taken = {*named, *(key for one in given if isinstance(one, Mapping) for key in one)}
    while name in taken:
        name = f"{name}'"
    return name


def compare_all(pairs: list[tuple[str, object]]) -> Comparison:
    """Return the comparison of named values; "" for a value without a name."""
    names = [name for name, _ in pairs if name]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ComparisonError(f"two of the compared are called {shown_value(twice)}", here(), help="give each a name of its own")
    base = next((value for _, value in pairs if isinstance(value, Program | Simulation)), None)
    if not pairs:
        raise ComparisonError("compare is given nothing", here(), expected=_EXPECTED)
    found: list[Compared] = []
    for name, value in pairs:
        try:
            found.append(_one(name, value, base))
        except PtoError as problem:
            if name:
                problem.notes = (*problem.notes, f"while comparing {shown_value(name)}")
            raise
    return Comparison(_named(found))


def _one(name: str, value: object, base: Program | Simulation | None) -> Compared:
    match value:
        case Program():
            program, stats, options = value.plan.name, value.stats, value.compiled.options
            return compared(name, stats, value.schedule, value.compiled.arch, value.timed_run, program=program,
                            overheads=options.overheads)
        case Simulation():
            return compared(name, value.stats, value.schedule, value.arch, value.timed, program=value.timed.plan.name,
                            overheads=value.overheads)
        case Stats():
            return compared(name, value)
    if not isinstance(value, Schedule | Scheduled | Policy | Arch | list | tuple):
        raise ComparisonError("this cannot be compared", here(), expected=_EXPECTED, found=shown_value(value))
    if base is None:
        raise ComparisonError("there is no run to time the schedules on", here(), found="schedules alone",
                              help='add a program that has run, compare({"as run": program, ...}), or call program.compare({...})')
    schedule, arch = base.schedule, None
    for change in value if isinstance(value, list | tuple) else (value,):
        if isinstance(change, Arch):
            arch = change
        elif isinstance(change, Scheduled):
            workload = base.compiled.workload if isinstance(base, Program) else None
            schedule = change.schedule if workload is None else schedule_of(change, workload)
        else:
            schedule = changed(schedule, change)
    return _one(name, base.simulate(schedule, arch), None)


def _named(found: list[Compared]) -> list[Compared]:
    """Return the candidates; a candidate without a name is named by its differences from the first."""
    taken = {one.name for one in found}
    named = []
    for at, (one, changes) in enumerate(zip(found, changes_of(found), strict=True)):
        name = one.name
        if not name:
            own = one.schedule.name if one.schedule is not None else ""
            name = own or said(changes) or one.settings.get("program", "") or "figures"
            name = name if len(name) <= _LONGEST else name[:_LONGEST - 1] + "…"
            name = f"{name} ({at + 1})" if name in taken else name
            taken.add(name)
        named.append(replace(one, name=name))
    return named
