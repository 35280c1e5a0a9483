"""What an explorer lets a user choose, and what each choice makes of a schedule: all of it timed on the record of one run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from pto_wsp.api.compare import compare_all
from pto_wsp.api.program import Program
from pto_wsp.api.search_space import loop_names, worker_counts
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.arch.model import Arch
from pto_wsp.errors import PtoError
from pto_wsp.schedule.changes import changed, code_of, settings_of
from pto_wsp.schedule.directives import Deps, DispatchPolicy, Pools, ReadyPolicy, TaskWindow
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.timing.comparison import Comparison, said
from pto_wsp.timing.retime import Simulation
from pto_wsp.values import dataclass

Chosen = Mapping[str, int]

_MOST_NAMES = 3
_WINDOWS = (16, 64, 256, 1024, 4096)
_SUBMITS = (0, 100, 200, 400, 800)
_BUDGET_S = 0.4      # for what the other options would cost, after each choice


@dataclass(frozen=True, slots=True)
class Control:
    """A choice of one option by its label; the first option keeps the schedule of the run. `note`: the subject of the choice."""

    name: str
    note: str
    options: tuple[str, ...]


class ScheduleChoices:
    """The choices for the last run of a program, or of one program for each combination of Tunables; everything is simulated."""

    def __init__(self, program: Program, tunables: Mapping[str, Sequence[object]], make: Callable[[Mapping[str, object]], Program],
                 name: str) -> None:
        """Create the choices. `make`: returns a program that has run with these values of the tunables; `name`: of what makes them."""
        self.program, self._tunables, self._make, self._name = program, tunables, make, name
        self._programs: dict[tuple[int, ...], Program] = {(0,) * len(tunables): program}
        self._known: dict[tuple[tuple[str, int], ...], Simulation | str] = {}
        plan, arch = program.plan, program.compiled.arch
        names = loop_names(plan)[:_MOST_NAMES]
        said_now = settings_of(program.schedule)
        self._dispatch: list[tuple[str, Callable[[int], object]]] = [
            ("round_robin", DispatchPolicy.round_robin), ("work_steal", DispatchPolicy.work_steal),
            *((f"affinity {name}", _keyed(DispatchPolicy.affinity, name)) for name in names),
            *((f"hash {name}", _keyed(DispatchPolicy.hash, name)) for name in names)]
        self._counts = sorted(worker_counts(arch))
        self._policies: dict[str, list[tuple[str, object]]] = {
            "ready": [("fifo", ReadyPolicy.fifo()), ("work_steal", ReadyPolicy.work_steal()),
                      *((f"priority {sign}{name}", ReadyPolicy.priority(_signed(sign, name))) for name in names for sign in ("", "-"))],
            "window": [(f"{size:,}", TaskWindow(size)) for size in _WINDOWS],
            "pools": [("single", Pools.single()), ("by_exec_unit", Pools.by_exec_unit())]
            if arch.cores.cube is not None and arch.cores.vector is not None else [],
            "deps": [("hybrid", Deps.hybrid()), ("overlap", Deps.infer_bytes_overlap())],
        }
        self._policies = {subject: [(label, policy) for label, policy in found if label != said_now[subject]]
                          for subject, found in self._policies.items()}
        self._archs: list[tuple[str, Arch]] = [(name, builtin_arch(name)) for name in ("unit", "ascend_910b", "host_cpu")
                                               if name != arch.name]
        submits = [cycles for cycles in _SUBMITS if cycles != arch.aicpu.submit_cycles] if program.compiled.options.overheads else []
        self._submits: list[tuple[str, Arch]] = [(f"{cycles:,}", arch.with_aicpu(submit_cycles=cycles)) for cycles in submits]
        notes = {"ready": "what an executor takes", "window": "tasks in flight", "pools": "what an executor is",
                 "deps": "where edges come from"}
        rows = [("dispatch", "home of a task", said_now["dispatch"], [label for label, _ in self._dispatch]),
                ("AICPUs", "where dispatch says", "as run", [f"{count}" for count in self._counts]),
                *((subject, notes[subject], said_now[subject], [label for label, _ in found]) for subject, found in self._policies.items()),
                ("arch", "the machine", arch.name, [label for label, _ in self._archs]),
                ("submit_cycles", "of an AICPU, a task", f"{arch.aicpu.submit_cycles}", [label for label, _ in self._submits]),
                *((name, "a Tunable", repr(values[0]), [repr(value) for value in values[1:]]) for name, values in tunables.items())]
        self.controls = tuple(Control(name, note, (f"{first} (as run)" if first != "as run" else first, *more))
                              for name, note, first, more in rows if more)

    def read(self, given: object) -> dict[str, int]:
        """Return choices as they come from a page: options that there are, others as run."""
        chosen = dict(given) if isinstance(given, Mapping) else {}
        return {control.name: place for control in self.controls
                if isinstance(place := chosen.get(control.name), int) and 0 < place < len(control.options)}

    def schedule(self, chosen: Chosen) -> Schedule:
        """Return the schedule of some choices.

        Raises: S105 where they contradict each other.
        """
        schedule = self.program.schedule
        kind, count = chosen.get("dispatch", 0), chosen.get("AICPUs", 0)
        n = self._counts[count - 1] if count else getattr(schedule.dispatch, "num_aicpus", None) or self._counts[-1]
        if kind:
            schedule = changed(schedule, self._dispatch[kind - 1][1](n))
        elif count:
            now = schedule.dispatch
            schedule = changed(schedule, DispatchPolicy.round_robin(n) if now is None else now.model_copy(update={"num_aicpus": n}))
        for subject, found in self._policies.items():
            if chosen.get(subject):
                schedule = changed(schedule, found[chosen[subject] - 1][1])
        return schedule

    def arch(self, chosen: Chosen) -> Arch:
        """Return the machine of some choices."""
        arch = self.program.compiled.arch
        if chosen.get("arch"):
            arch = self._archs[chosen["arch"] - 1][1]
        if chosen.get("submit_cycles"):
            arch = arch.with_aicpu(submit_cycles=self._submits[chosen["submit_cycles"] - 1][1].aicpu.submit_cycles)
        return arch

    def values(self, chosen: Chosen) -> Mapping[str, object]:
        """Return the values of the tunables."""
        return {name: values[chosen.get(name, 0)] for name, values in self._tunables.items()}

    def simulated(self, chosen: Chosen) -> Simulation | str:
        """Return the simulation of some choices, or why it is refused."""
        key = tuple(sorted(chosen.items()))
        if key not in self._known:
            try:
                self._known[key] = self._program(chosen).simulate(self.schedule(chosen), self.arch(chosen))
            except PtoError as problem:
                self._known[key] = problem.message
        return self._known[key]

    def _program(self, chosen: Chosen) -> Program:
        tuning = tuple(chosen.get(name, 0) for name in self._tunables)
        if tuning not in self._programs:
            self._programs[tuning] = self._make(self.values(chosen))
        return self._programs[tuning]

    def costs(self, chosen: Chosen) -> Iterator[tuple[str, int, int | None, str]]:
        """Yield for each option the cycles of the run with that option alone changed: control, option, cycles, or the reason of a refusal.

        Options that need a run of their own, and those past the budget of time, have neither unless they are known.
        """
        until = time.perf_counter() + _BUDGET_S
        for control in self.controls:
            for place in range(len(control.options)):
                other = {name: at for name, at in {**chosen, control.name: place}.items() if at}
                known = tuple(sorted(other.items())) in self._known
                tuning = tuple(other.get(name, 0) for name in self._tunables)
                if known or (time.perf_counter() < until and tuning in self._programs):
                    found = self.simulated(other)
                    yield (control.name, place, None, found) if isinstance(found, str) else (control.name, place, found.total_cycles, "")
                else:
                    yield control.name, place, None, ""

    def name_of(self, chosen: Chosen) -> str:
        """Return some choices in words."""
        by_name = {control.name: control for control in self.controls}
        return said({name: by_name[name].options[place] for name, place in chosen.items()}) or "as run"

    def comparison(self, kept: Sequence[Chosen]) -> Comparison:
        """Return choices side by side with the run; those that are refused are left out."""
        pairs: list[tuple[str, object]] = [("as run", self.simulated({}))]
        for chosen in kept:
            found, name = self.simulated(chosen), self.name_of(chosen)
            if not isinstance(found, str) and name not in {known for known, _ in pairs}:
                pairs.append((name, found))
        return compare_all(pairs)

    def code(self, chosen: Chosen) -> str:
        """Return Python that compiles the workload under some choices and runs it."""
        values, options = self.values(chosen), self.program.compiled.options
        arch, lines = self.arch(chosen), []
        lines.append("from pto_wsp import *" if arch == _builtin(arch.name) else "from pto_wsp import *\n"
                     f"arch = Arch.model_validate_json({arch.model_dump_json()!r})")
        if values:
            lines.append(f"w = {self._name}({', '.join(f'{name}={value!r}' for name, value in values.items())})")
        named = f"arch={arch.name!r}" if arch == _builtin(arch.name) else "arch=arch"
        given = [named, *["overheads=True"] * options.overheads]
        lines.append(f"program = w.under(Schedule()){code_of(self.schedule(chosen))}.compile({', '.join(given)}).run()")
        return "\n".join(lines)


def _builtin(name: str) -> Arch | None:
    try:
        return builtin_arch(name)
    except PtoError:
        return None


def _keyed(policy: Callable[[str, int], object], name: str) -> Callable[[int], object]:
    return lambda n: policy(name, n)


def _signed(sign: str, name: str) -> Callable[..., object]:
    return lambda t: -1 * t.get(name) if sign else t.get(name)
