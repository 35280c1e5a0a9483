"""Time the stream of a finished run again: plan under the new schedule, columns of what it says of each task, the simulator."""

from __future__ import annotations

from dataclasses import replace

from pto_wsp.arch.model import Arch
from pto_wsp.driver.compiled import Compiled
from pto_wsp.errors import ProgramStateError
from pto_wsp.plan.model import Context, TaskPlan
from pto_wsp.plan.passes import SCHEDULE_PASSES
from pto_wsp.report.timed_run import TimedRun
from pto_wsp.retime.columnar import columnar
from pto_wsp.retime.edges import edges_under
from pto_wsp.retime.feed import simulate_columns
from pto_wsp.retime.fields import mark_delays, task_fields
from pto_wsp.retime.recorded import RecordedTasks
from pto_wsp.runtime.binding import Bindings
from pto_wsp.runtime.interp import Interpreter
from pto_wsp.runtime.native import Engine
from pto_wsp.runtime.record import RecordColumns
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.source import here


class Retimer:
    """The last run of a program, until the next one."""

    def __init__(self, compiled: Compiled, runner: Engine | Interpreter, bindings: Bindings, columns: RecordColumns,
                 execute_time_ms: float) -> None:
        self._compiled, self._columns, self._execute_time_ms = compiled, columns, execute_time_ms
        if columns.first_node > 0:
            raise ProgramStateError(f"the run had {columns.total_tasks} tasks, more than a record keeps", here(),
                                    help="simulate a smaller problem")
        self._plan = columnar(compiled.unscheduled)
        recorder = runner.recorder
        self._tasks = RecordedTasks(recorder.runtime, recorder.raw_columns(), self._plan, bindings)

    def time(self, schedule: Schedule, arch: Arch) -> TimedRun:
        """Return the run's tasks in simulated time."""
        plan = self._scheduled(schedule, arch)
        tasks = self._tasks
        fields = task_fields(tasks, plan)
        edges = edges_under(tasks, self._compiled.plan, plan, fields.lane)
        sim = simulate_columns(tasks, fields, edges, mark_delays(tasks, plan), plan.rules)
        columns = replace(self._columns, task_worker=fields.worker, task_cost=fields.cost, pred_begin=edges.begin.copy(),
                          edge_src=edges.source.copy(), edge_why=edges.why.copy(), edge_arg=edges.arg.copy())
        return TimedRun(plan, columns, sim, self._execute_time_ms, self._compiled.compile_time_ms)

    def _scheduled(self, schedule: Schedule, arch: Arch) -> TaskPlan:
        """Return the plan as the schedule's passes leave it, its tasks in terms of what the record has."""
        plan, context = self._plan, Context(schedule, arch)
        for step in SCHEDULE_PASSES:
            plan = step.run(plan, context)
        return plan
