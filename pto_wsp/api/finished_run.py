"""Inspect a finished run: statistics, times of tasks, the graph, explanations, and other schedules on the same tasks."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pto_wsp import doors
from pto_wsp.errors import CompileOptionError, ProgramStateError, RecordLimitError
from pto_wsp.ir.flow import RecordEvent, walk
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.run.bound import Bindings
from pto_wsp.run.interpreter import Interpreter
from pto_wsp.run.native import Engine
from pto_wsp.run.record import RecordColumns
from pto_wsp.schedule.schedule import Schedule, schedule_of
from pto_wsp.source import here
from pto_wsp.targets.compiled import Compiled
from pto_wsp.targets.options import check_directives, read_arch
from pto_wsp.timing.columns import RecordedTasks, columnar
from pto_wsp.timing.graph import Regions, RunGraph
from pto_wsp.timing.links import bytes_sent
from pto_wsp.timing.retime import Retimer, Simulation, freeze_schedule
from pto_wsp.timing.stats import Stats
from pto_wsp.timing.timed_run import TimedRun, graph_of
from pto_wsp.timing.trace import Trace, WallTrace, wall_trace_of

if TYPE_CHECKING:
    from pto_wsp.api.advise import Advices


class FinishedRun:
    """Hold the results of a program's last run until the next one starts. The record is read and simulated at the first access."""

    def __init__(self, compiled: Compiled, runner: Engine | Interpreter, bound: Bindings, execute_time_ms: float) -> None:
        self._compiled = compiled
        self._runner = runner
        self._bound = bound
        self._execute_time_ms = execute_time_ms
        self.advice: Advices | None = None      # what advise() found last
        self.is_over = False        # the next run has started, so the record is no longer this run's

    @property
    def _plan(self) -> TaskPlan:
        return self._compiled.plan

    @cached_property
    def columns(self) -> RecordColumns:
        """The tasks and their edges."""
        return self._runner.recorder.columns()

    @cached_property
    def timed(self) -> TimedRun:
        """The tasks in simulated time."""
        return TimedRun(self._plan, self.columns, self._runner.simulate(keep_trace=True), self._execute_time_ms,
                        self._compiled.compile_time_ms, self._regions, self._compiled.arch)

    @property
    def is_timed(self) -> bool:
        """Whether the tasks have been simulated."""
        return "timed" in vars(self)

    @property
    def stats(self) -> Stats:
        """The statistics of the run."""
        advice = "" if self.advice is None else self.advice.sentence
        return replace(self.timed.stats, intermediate_bytes=self._runner.intermediate_bytes, advice=advice,
                       by_kernel=partial(self.timed.kernels, self._wall_ns))

    @cached_property
    def _wall_ns(self) -> np.ndarray[Any, Any] | None:
        """By task: how long it ran on this machine, in ns; None where that is not known."""
        if self.is_over or not self._compiled.options.wall_trace or not isinstance(self._runner, Engine):
            return None
        wall = self._runner.wall_times()
        return None if wall.is_cut else wall.end - wall.start

    @property
    def trace(self) -> Trace:
        """When and where each task was busy; its card has the sentence of the figures.

        Raises: R115 when there are more tasks than a record keeps.
        """
        return replace(self.timed.trace, stats=lambda: self.stats)

    def bytes_sent(self) -> np.ndarray[Any, Any]:
        """Return the bytes that copies moved from rank to rank.

        Raises: R103 for a run that is over, R115 for one that was longer than a record keeps.
        """
        if self.is_over or self.columns.first_node > 0:
            raise RecordLimitError("what the run sent is not recorded any more", here(), help="run a part of the workload")
        recorder = self._runner.recorder
        return bytes_sent(RecordedTasks(recorder.runtime, recorder.raw_columns(), columnar(self._plan), self._bound), self._plan)

    def sent_between_ranks(self) -> np.ndarray[Any, Any] | None:
        """Return the bytes that copies moved from rank to rank; None without a mesh, and where the record does not tell."""
        return None if not self._plan.rules.n_ranks or self.is_over or self.columns.first_node > 0 else self.bytes_sent()

    @property
    def graph(self) -> RunGraph:
        """The tasks and every edge between them."""
        return graph_of(self._plan, self.columns, self._regions)

    def wall_trace(self, engine: Engine) -> WallTrace:
        """Return when each task started and ended on this machine; `engine` has recorded the times.

        Raises: R115 for more tasks than a record keeps.
        """
        wall = engine.wall_times()
        if wall.is_cut:
            raise RecordLimitError(f"the run had {self.columns.total_tasks} tasks, more than a record keeps", here(),
                                   help="run a part of the workload")
        return wall_trace_of(self._plan, self.columns, wall, engine.threads)

    def page_json(self, sentence: str, trace: Trace, stats: Stats, graph: RunGraph) -> str:
        """Return the data of the run for a page that answers to clicks. `sentence`: the verdict above it; the others: those of this run."""
        page = doors.late_module("pto_wsp.view.run_page")
        regions = self._runner.recorder.regions() if self.columns.first_node == 0 and not self.is_over else None
        made: str = page.json_of(page.run_data(self.timed, trace, stats, graph, self._bound, regions) | {"sentence": sentence})
        return made

    def simulate(self, schedule: object, arch: object, overheads: object) -> Simulation:
        """Return the tasks in simulated time with another schedule or arch; None: as compiled.

        Raises: R103 and R115 where the recorded stream does not tell, S101, S103 and C104 as compile() does.
        """
        if self.is_over:
            raise ProgramStateError("the program has run again since this simulation was made", here(),
                                    help="simulate its last run: program.simulate(...)")
        if not isinstance(overheads, bool | None):
            raise CompileOptionError("simulate() option `overheads` does not take this value", here(), expected="True, False or None",
                                     found=repr(overheads))
        compiled = self._compiled
        counted = compiled.options.overheads if overheads is None else overheads
        new_schedule = compiled.schedule if schedule is None else schedule_of(schedule, compiled.workload)
        if schedule is not None:
            check_directives(new_schedule, "cpu_sim", strict=True)
        model = compiled.arch if arch is None else read_arch(arch, "unit")
        return Simulation(new_schedule, model, counted, self._retimer.time(new_schedule, model, overheads=counted), self.simulate)

    def advise(self, budget_s: object, seed: object) -> Advices:
        """Return the changes of the schedule that make the run shorter, and keep them: the figures' sentence has the best.

        Raises: R103 and R115 where the recorded stream does not tell, S111 for a budget or a seed that is none.
        """
        advise = doors.late_module("pto_wsp.api.advise").advise
        found: Advices = advise(self.timed.stats, self._compiled.schedule, self._compiled.arch, self._plan,
                                lambda schedule: self.simulate(schedule, None, None), budget_s, seed)
        self.advice = found
        return found

    def freeze(self) -> Schedule:
        """Return the schedule with a calendar of the simulated times.

        Raises: R115 for more tasks than a trace keeps.
        """
        return freeze_schedule(self.timed, self._compiled.schedule)

    def recorded(self, event: int) -> bool:
        """Tell whether the run recorded an event of the workload.

        Raises: R115 for a run that was longer than a record keeps.
        """
        if self.columns.first_node > 0:
            raise RecordLimitError("the run was longer than a record keeps: which events it recorded is not known", here())
        sites = [item.site for item in walk(self._plan.body)
                 if isinstance(item, RecordEvent) and self._plan.events[item.event].ref == event]
        return bool(np.isin(self.columns.mark_site, sites).any())

    @cached_property
    def _retimer(self) -> Retimer:
        return Retimer(self._compiled, self._runner, self._bound, self.columns, self._execute_time_ms)

    @cached_property
    def _regions(self) -> Regions:
        return Regions(self._plan, self.columns, self._runner.recorder, self._bound)
