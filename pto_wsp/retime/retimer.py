"""Time the stream of a finished run again: plan under the new schedule, columns of what it says of each task, the simulator."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pto_wsp.arch.model import Arch
from pto_wsp.errors import ProgramStateError, raise_all
from pto_wsp.passes.pipeline import Runner
from pto_wsp.plan.model import Context, TaskPlan
from pto_wsp.plan.passes import SCHEDULE_PASSES
from pto_wsp.plan.waits.elements import has_waits
from pto_wsp.report.regions import Regions
from pto_wsp.report.timed_run import TimedRun
from pto_wsp.retime.calendar_check import breach_of, check_places
from pto_wsp.retime.columnar import columnar
from pto_wsp.retime.edges import edges_under
from pto_wsp.retime.feed import LongStream, simulate_columns
from pto_wsp.retime.fields import mark_delays, task_fields
from pto_wsp.retime.recorded import RecordedTasks
from pto_wsp.runtime.bound.binding import Bindings
from pto_wsp.runtime.failures.simulation import SimulationEnded, ended_error
from pto_wsp.runtime.interpreter.run import Interpreter
from pto_wsp.runtime.native.recorder import MAX_RECORDED_TASKS, Recorder
from pto_wsp.runtime.native.run import Engine
from pto_wsp.runtime.native.simulator import SimulationStuck
from pto_wsp.runtime.record.columns import RecordColumns
from pto_wsp.runtime.remake import enumerated_again, orchestrated_again, reads_results
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.source import here
from pto_wsp.targets.compiled import Compiled
from pto_wsp.targets.options import enforced_part
from pto_wsp.values import dataclass
from pto_wsp.verify.exact import check_exact


@dataclass(frozen=True, slots=True, eq=False)
class _Stream:
    """A record of the run's tasks. `plan` says which kinds of edges it has."""

    plan: TaskPlan
    recorder: Recorder
    tasks: RecordedTasks
    columns: RecordColumns


class Retimer:
    """The last run of a program, until the next one."""

    def __init__(self, compiled: Compiled, runner: Engine | Interpreter, bindings: Bindings, columns: RecordColumns,
                 execute_time_ms: float) -> None:
        self._compiled, self._runner, self._bindings, self._execute_time_ms = compiled, runner, bindings, execute_time_ms
        self._plan = columnar(replace(compiled.unscheduled, symbols=compiled.plan.symbols))
        self._streams = [self._stream(compiled.plan, runner.recorder, columns)]

    def time(self, schedule: Schedule, arch: Arch, *, overheads: bool) -> TimedRun:
        """Return the run's tasks in simulated time.

        Raises: R103 where the record does not tell and the stream cannot be made again, R106 where a task finds no room in a window that
        does not wait, W203 where edges are asked for that come from equal regions alone and others may overlap in part.
        """
        plan = self._scheduled(schedule, arch, overheads)
        if schedule.deps.kind == "exact":
            raise_all([finding.error for finding in check_exact(self._compiled.unscheduled) if finding.error is not None])
        if self._streams[0].columns.first_node > 0:
            return self._timed_in_chunks(plan)
        stream = self._fitting(plan)
        tasks = stream.tasks
        fields = task_fields(tasks, plan)
        edges = edges_under(tasks, stream.plan, plan, fields.lane)
        delays = mark_delays(tasks, plan)
        columns = replace(stream.columns, task_worker=fields.worker, task_cost=fields.cost, pred_begin=edges.begin.copy(),
                          edge_src=edges.source.copy(), edge_why=edges.why.copy(), edge_arg=edges.arg.copy(), task_position=fields.position,
                          task_bytes=fields.traffic, mark_delay=stream.columns.mark_delay if delays is None else delays)
        regions = Regions(stream.plan, stream.columns, stream.recorder, self._bindings)
        if plan.rules.calendar:
            check_places(plan, columns)
        try:
            sim = simulate_columns(tasks, fields, edges, delays, plan.rules)
        except SimulationEnded as ended:
            raise ended_error(plan, tasks.runtime, tasks.raw, ended) from None
        except SimulationStuck:
            raise breach_of(plan, columns, regions) from None
        return TimedRun(plan, columns, sim, self._execute_time_ms, self._compiled.compile_time_ms, regions, arch.clock_ghz)

    def _stream(self, plan: TaskPlan, recorder: Recorder, columns: RecordColumns) -> _Stream:
        return _Stream(plan, recorder, RecordedTasks(recorder.runtime, recorder.raw_columns(), self._plan, self._bindings), columns)

    def _scheduled(self, schedule: Schedule, arch: Arch, overheads: bool) -> TaskPlan:
        """Return the plan as the schedule's passes leave it, its tasks in terms of what the record has."""
        intermediates = frozenset(slot.ref.id for slot in self._compiled.plan.tensors if slot.kept)
        plan, context = self._plan, Context(schedule, arch, None, enforced_part(schedule, "cpu_sim"), overheads, intermediates)
        if self._compiled.passes:
            return Runner(self._compiled.passes, here()).run(plan, context, SCHEDULE_PASSES)
        for step in SCHEDULE_PASSES:
            plan = step.run(plan, context)      # of a plan that they have been verified on
        return plan

    # ---- streams with the edges that a schedule asks for ----

    def _fitting(self, plan: TaskPlan) -> _Stream:
        """Return a record that has the edges which `plan` asks for, made again where there is none."""
        for stream in self._streams:
            if _has_edges(stream, plan):
                return stream
        made, recorder = self._made_again(plan, self._compiled.plan)
        columns = recorder.columns()
        first = self._streams[0].columns
        if not (np.array_equal(columns.task_site, first.task_site) and np.array_equal(columns.index, first.index)):
            raise ProgramStateError("arrays that decide which tasks there are have changed since the run", here(),
                                    help="run it again, then simulate")
        self._streams.append(self._stream(made, recorder, columns))
        return self._streams[-1]

    def _made_again(self, plan: TaskPlan, recorded: TaskPlan) -> tuple[TaskPlan, Recorder]:
        """Return the program's plan with the kinds of edges that `plan` asks for, and a record of its stream with them."""
        if plan.structure != recorded.structure:     # that is in no orchestrator of the program's
            if has_waits(recorded):
                raise reads_results(recorded)
            made = replace(recorded, infer=plan.infer or recorded.infer, structure=plan.structure)
            return made, enumerated_again(made, self._bindings)
        made = replace(recorded, infer=True)
        if isinstance(self._runner, Engine):
            return made, orchestrated_again(self._runner.artifact, recorded, self._bindings, infer=True, max_tasks=MAX_RECORDED_TASKS)
        return made, self._runner.record(made)

    # ---- streams too long to keep ----

    def _timed_in_chunks(self, plan: TaskPlan) -> TimedRun:
        """Make the stream again, piece by piece, and simulate each as it comes."""
        recorded, runner = self._compiled.plan, self._runner
        assert isinstance(runner, Engine)      # an interpreter's record keeps all
        if plan.rules.calendar:
            raise ProgramStateError(f"the run had {self._streams[0].columns.total_tasks} tasks, more than a calendar can be checked for",
                                    here(), help="simulate a smaller problem")
        if has_waits(recorded):
            raise reads_results(recorded)
        if (plan.structure and not recorded.structure) or (plan.structure != recorded.structure and plan.n_streams > 1):
            raise ProgramStateError(f"the run had {self._streams[0].columns.total_tasks} tasks, more than a record keeps, and was recorded "
                                    "without the order of the workload's structure", here(),
                                    help="compile it under that schedule and run it")
        long = LongStream(self._plan, recorded, plan, self._bindings, runner.runtime)
        try:
            orchestrated_again(runner.artifact, recorded, self._bindings, infer=plan.infer, max_tasks=runner.max_tasks, rules=plan.rules,
                               chunk=long.feed, sim=long.sim)
            sim = long.finish()
        except SimulationEnded as ended:      # the task may be in a piece that nobody has any more: the last one of the run stands for it
            raise ended_error(plan, runner.runtime, runner.recorder.raw_columns(), ended) from None
        return TimedRun(plan, self._streams[0].columns, sim, self._execute_time_ms, self._compiled.compile_time_ms)


def _has_edges(stream: _Stream, plan: TaskPlan) -> bool:
    """Tell whether a record has what `plan` asks for, or more that can be told apart: marks do not say which order is structure."""
    if plan.infer and not stream.plan.infer:
        return False
    if plan.structure == stream.plan.structure:
        return True
    return stream.plan.structure and len(stream.columns.mark_node) == 0
