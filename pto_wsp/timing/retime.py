"""Simulate a finished run again under another schedule, on another arch.

The steps: the passes write the new schedule into the recorded plan; `columns.py` evaluates its fields for all tasks; `edges_under` keeps
the recorded edges that the schedule's dependencies ask for and adds those of its lanes; the simulator runs on the new columns. A stream
that lacks the needed edges is recorded again; a stream too long for a record is generated again and simulated in chunks (`LongStream`).
`frozen` turns a simulated run into a schedule with a calendar. `Simulation` is the user's result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from pto_wsp.arch.model import Arch
from pto_wsp.artifact.build import Runtime
from pto_wsp.calls import user_calls
from pto_wsp.check.outputs import check_exact
from pto_wsp.doors import Displayed
from pto_wsp.errors import ProgramStateError, RecordLimitError, raise_all
from pto_wsp.ir.execution_rules import ExecutionRules
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.ir.waits import has_waits
from pto_wsp.passes.context import Context
from pto_wsp.passes.passes import SCHEDULE_PASSES
from pto_wsp.passes.pipeline import Runner
from pto_wsp.pickling import InOneProcess
from pto_wsp.progress import tell
from pto_wsp.run.bound import Bindings
from pto_wsp.run.failures import SimulationEnded, ended_error
from pto_wsp.run.interpreter import Interpreter
from pto_wsp.run.native import Engine
from pto_wsp.run.record import EdgeReason, NodeKind, RecordColumns, before_in_group
from pto_wsp.run.remake import enumerated_again, orchestrated_again, reads_results
from pto_wsp.run.simulator import MAX_RECORDED_TASKS, Recorder, SimResult, SimulationStuck, feed_columns, finish_sim, new_sim
from pto_wsp.schedule.calendar import Calendar
from pto_wsp.schedule.directives import TaskGraph
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.source import here
from pto_wsp.targets.compiled import Compiled
from pto_wsp.targets.options import enforced_part
from pto_wsp.timing.calendar_check import breach_of, check_places
from pto_wsp.timing.columns import RecordedTasks, TaskFields, columnar, mark_delays, task_fields
from pto_wsp.timing.edges import TaskLike
from pto_wsp.timing.explain import Explanation
from pto_wsp.timing.graph import CriticalPath, Regions
from pto_wsp.timing.graph import RunGraph as EdgeGraph
from pto_wsp.timing.links import stuck_links
from pto_wsp.timing.stats import Stats
from pto_wsp.timing.timed_run import TimedRun
from pto_wsp.timing.trace import Trace
from pto_wsp.values import dataclass
from pto_wsp.wording import counted

Array = np.ndarray[Any, Any]

_DATA = EdgeReason.RAW | EdgeReason.WAR | EdgeReason.WAW | EdgeReason.READ


# -- edges -------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, eq=False)
class NodeEdges:
    """The edges between nodes in CSR form: predecessors of node n are source[begin[n]:begin[n + 1]], ascending; `why`: EdgeReason bits."""

    begin: Array
    source: Array
    why: Array
    arg: Array


class LaneEnds:
    """The last node of every lane over the chunks of a stream so far."""

    def __init__(self) -> None:
        self.last: dict[int, int] = {}


def recorded_edges(tasks: RecordedTasks) -> NodeEdges:
    """Return the edges as recorded."""
    return NodeEdges(tasks.view("pred_begin", tasks.n_nodes + 1, np.int64), tasks.view("edge_src", tasks.n_edges, np.int64),
                 tasks.view("edge_why", tasks.n_edges, np.uint16), tasks.view("edge_arg", tasks.n_edges, np.int32))


def edges_under(tasks: RecordedTasks, recorded: TaskPlan, plan: TaskPlan, lane: Array | None, lanes: LaneEnds | None = None) -> NodeEdges:
    """Return the edges of a recorded stream under another plan, which must not ask for kinds of edges that the record lacks.

    `lanes`: state of the chunks before, if the record is a chunk of a stream; updated for the next chunk.
    """
    edges = recorded_edges(tasks)
    had_lanes = bool(tasks.raw.task_lane)
    drops_data, drops_structure = recorded.infer and not plan.infer, recorded.structure and not plan.structure
    if drops_data or drops_structure or had_lanes:
        edges = _drop_unrequested(tasks, edges, drops_data, drops_structure)
    if lane is not None:
        edges = _merged(edges, *_lane_edges(tasks, lane, lanes or LaneEnds()), int(tasks.raw.first_node))
    return edges


def _drop_unrequested(tasks: RecordedTasks, edges: NodeEdges, drops_data: bool, drops_structure: bool) -> NodeEdges:
    """Return the edges without the kinds that the schedule drops: lanes always, conflicts and structure on request."""
    kind = tasks.view("node_kind", tasks.n_nodes, np.uint8)
    target = np.repeat(np.arange(tasks.n_nodes), np.diff(edges.begin))
    dropped = EdgeReason.LANE | (_DATA if drops_data else EdgeReason(0))
    why = edges.why & np.uint16(0xFFFF & ~dropped.value)
    if drops_structure:     # edges into joins stay: a join without successors delays nothing
        why = np.where(kind[target] == NodeKind.JOIN, why, why & np.uint16(0xFFFF & ~EdgeReason.ORDER.value))
    keeps = why != 0
    begin = np.zeros(tasks.n_nodes + 1, np.int64)
    np.cumsum(np.bincount(target[keeps], minlength=tasks.n_nodes), out=begin[1:])
    return NodeEdges(begin, edges.source[keeps], why[keeps], edges.arg[keeps])


def _lane_edges(tasks: RecordedTasks, lane: Array, lanes: LaneEnds) -> tuple[Array, Array]:
    """Return sources and targets of the lane edges: each task of a lane waits for the one before."""
    node = tasks.view("task_node", tasks.n_tasks, np.int64)
    before = before_in_group(lane, none=0)
    has_earlier = before >= 0
    begins, is_last = np.flatnonzero(~has_earlier & (lane != 0)), lane != 0
    is_last[before[has_earlier]] = False
    first = [(lanes.last[key], at) for key, at in zip(lane[begins].tolist(), node[begins].tolist(), strict=True) if key in lanes.last]
    lanes.last.update(zip(lane[is_last].tolist(), node[is_last].tolist(), strict=True))
    earlier = np.array(first, np.int64).reshape(-1, 2)
    return np.concatenate((node[before[has_earlier]], earlier[:, 0])), np.concatenate((node[has_earlier], earlier[:, 1]))


def _merged(edges: NodeEdges, source: Array, target: Array, first_node: int) -> NodeEdges:
    """Return the edges with lane edges added; an existing edge gets the lane as one more reason."""
    n_nodes = len(edges.begin) - 1
    sources = np.concatenate((edges.source, source))
    targets = np.concatenate((np.repeat(np.arange(n_nodes), np.diff(edges.begin)), target - first_node))
    why = np.concatenate((edges.why, np.full(len(source), EdgeReason.LANE.value, np.uint16)))
    arg = np.concatenate((edges.arg, np.full(len(source), -1, np.int32)))
    order = np.argsort(targets * np.int64(first_node + n_nodes) + sources, kind="stable")    # of equal edges the lane's comes second
    sources, targets, why, arg = sources[order], targets[order], why[order], arg[order]
    first = np.ones(len(order), np.bool_)
    first[1:] = (sources[1:] != sources[:-1]) | (targets[1:] != targets[:-1])
    if len(order):
        why = np.bitwise_or.reduceat(why, np.flatnonzero(first))
    begin = np.zeros(n_nodes + 1, np.int64)
    np.cumsum(np.bincount(targets[first], minlength=n_nodes), out=begin[1:])
    return NodeEdges(begin, sources[first], why, arg[first])


# -- the simulator -----------------------------------------------------------------------------------------------------
_FIELDS = {"task_worker": "worker", "task_cost": "cost", "task_lane": "lane", "task_pool": "pool", "task_priority": "priority",
           "task_position": "position", "task_bytes": "traffic", "task_ranks": "ranks"}


def simulate_columns(tasks: RecordedTasks, fields: TaskFields, edges: NodeEdges, delays: np.ndarray[Any, Any] | None, rules: ExecutionRules,
                     ) -> SimResult:
    """Return the simulated times of the tasks with a schedule's fields, edges and delays."""
    raw, alive = columns_with(tasks, fields, edges, delays)
    sim = new_sim(tasks.runtime, rules, keep_trace=True)
    feed_columns(tasks.runtime, sim, raw)
    del alive
    return finish_sim(tasks.runtime, sim)


def columns_with(tasks: RecordedTasks, fields: TaskFields, edges: NodeEdges, delays: np.ndarray[Any, Any] | None) -> tuple[Any, ...]:
    """Return a pto_columns with these fields, and the buffers that must outlive its use."""
    ffi = tasks.runtime.ffi
    raw = ffi.new("pto_columns *", tasks.raw[0])
    alive: list[object] = []

    def put(name: str, column: np.ndarray[Any, Any] | None, ctype: str = "int64_t[]") -> None:
        if column is None or len(column) == 0:
            setattr(raw, name, ffi.NULL)
            return
        buffer = ffi.from_buffer(ctype, np.ascontiguousarray(column))
        alive.append(buffer)
        setattr(raw, name, buffer)

    for name, field in _FIELDS.items():
        put(name, getattr(fields, field))
    put("pred_begin", edges.begin)
    put("edge_src", edges.source)
    put("edge_why", edges.why, "uint16_t[]")
    put("edge_arg", edges.arg, "int32_t[]")
    raw.n_edges = len(edges.source)
    if delays is not None:
        put("mark_delay", delays)
    return raw, alive


class LongStream:
    """A stream without a record, simulated chunk by chunk while it is generated. Tasks and nodes are numbered over the whole stream."""

    def __init__(self, columns: TaskPlan, recorded: TaskPlan, plan: TaskPlan, bindings: Bindings, runtime: Runtime) -> None:
        """Create the stream. `columns`: the plan in terms of a record; `recorded`: the orchestrator's plan; `plan`: the schedule's plan."""
        self._columns, self._recorded, self._plan, self._bindings, self._runtime = columns, recorded, plan, bindings, runtime
        self.sim = new_sim(runtime, plan.rules, keep_trace=False)
        self._lanes = LaneEnds()

    def feed(self, raw: Any) -> None:
        """Simulate the next chunk of tasks: a pto_columns."""
        tasks = RecordedTasks(self._runtime, raw, self._columns, self._bindings)
        tell(tasks.n_tasks)
        fields = task_fields(tasks, self._plan)
        edges = edges_under(tasks, self._recorded, self._plan, fields.lane, self._lanes)
        with_fields, alive = columns_with(tasks, fields, edges, mark_delays(tasks, self._plan))
        feed_columns(self._runtime, self.sim, with_fields)
        del alive

    def finish(self) -> SimResult:
        """Return the simulated times."""
        return finish_sim(self._runtime, self.sim)


# -- freezing ----------------------------------------------------------------------------------------------------------
def freeze_schedule(timed: TimedRun, schedule: Schedule) -> Schedule:
    """Return the schedule of a simulated run with a calendar in place of its dynamic decisions.

    Edges, window, start, batches and rates stay; dispatch, streams, pools and the order of ready tasks give way to the calendar, which has
    each task start when it did.
    Raises: R115 for a run of more tasks than a trace keeps.
    """
    sim = timed.sim
    if sim.tasks is None:
        raise RecordLimitError(f"the run had {sim.n_tasks} tasks, more than a calendar is made for", here(),
                               help="freeze a run of a smaller problem")
    start, executor = sim.tasks.start, sim.tasks.executor
    order = np.lexsort((sim.tasks.end, start, executor))       # by end too: a task of cost 0 precedes the task that starts at its end
    in_order = executor[order]
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order)) - np.searchsorted(in_order, in_order)
    table = tuple(zip(executor.tolist(), position.tolist(), strict=True))
    timing, graph = schedule.timing, schedule.task_graph
    if timing is not None and timing.kind == "interleaved":
        timing = None       # the calendar has the order of ready tasks
    if graph is not None:
        graph = TaskGraph(deps=graph.deps, window=graph.window, start=graph.start, trace=graph.trace)
    return Schedule(name=schedule.name, timing=timing, task_graph=graph, calendar=Calendar(table=table, starts=tuple(start.tolist())))


# -- simulating again --------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, eq=False)
class _RecordStream:
    """A record of the run's tasks. `plan` says which kinds of edges the record has."""

    plan: TaskPlan
    recorder: Recorder
    tasks: RecordedTasks
    columns: RecordColumns


class Retimer:
    """The last run of a program, valid until the next run."""

    def __init__(self, compiled: Compiled, runner: Engine | Interpreter, bindings: Bindings, columns: RecordColumns,
                 execute_time_ms: float) -> None:
        self._compiled, self._runner, self._bindings, self._execute_time_ms = compiled, runner, bindings, execute_time_ms
        self._plan = columnar(replace(compiled.unscheduled, symbols=compiled.plan.symbols))
        self._streams = [self._stream(compiled.plan, runner.recorder, columns)]

    def time(self, schedule: Schedule, arch: Arch, *, overheads: bool) -> TimedRun:
        """Return the run's tasks in simulated time.

        Raises: R103 and R115 where the record does not tell and the stream cannot be made again, R106 where a task finds no room in a
        window that does not wait, W203 where edges are asked for that come from equal regions alone and others may overlap in part.
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
            raise ended_error(plan, tasks.raw, ended) from None
        except SimulationStuck as stuck:
            if stuck.times is not None and not plan.rules.calendar:
                raise stuck_links(plan, columns, tasks.raw, stuck.times) from None
            raise breach_of(plan, columns, regions) from None
        return TimedRun(plan, columns, sim, self._execute_time_ms, self._compiled.compile_time_ms, regions, arch)

    def _stream(self, plan: TaskPlan, recorder: Recorder, columns: RecordColumns) -> _RecordStream:
        return _RecordStream(plan, recorder, RecordedTasks(recorder.runtime, recorder.raw_columns(), self._plan, self._bindings), columns)

    def _scheduled(self, schedule: Schedule, arch: Arch, overheads: bool) -> TaskPlan:
        """Return the plan after the schedule's passes, with tasks in terms of the record."""
        intermediates = frozenset(slot.ref.id for slot in self._compiled.plan.tensors if slot.kept)
        plan, context = self._plan, Context(schedule, arch, None, enforced_part(schedule, "cpu_sim"), overheads, intermediates)
        if self._compiled.passes:
            return Runner(self._compiled.passes, here()).run(plan, context, SCHEDULE_PASSES)
        for step in SCHEDULE_PASSES:
            plan = step.run(plan, context)      # of a plan that they have been verified on
        return plan

    # -- records with a schedule's edges -------------------------------------------------------------------------------

    def _fitting(self, plan: TaskPlan) -> _RecordStream:
        """Return a record with the edges that `plan` asks for; records the stream again if no record has them."""
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
        """Return the program's plan with the kinds of edges that `plan` asks for, and a new record of its stream with these edges."""
        if plan.structure != recorded.structure:     # the program's orchestrator has no other structure
            if has_waits(recorded):
                raise reads_results(recorded)
            made = replace(recorded, infer=plan.infer or recorded.infer, structure=plan.structure)
            return made, enumerated_again(made, self._bindings)
        made = replace(recorded, infer=True)
        if isinstance(self._runner, Engine):
            return made, orchestrated_again(self._runner.artifact, recorded, self._bindings, infer=True, max_tasks=MAX_RECORDED_TASKS)
        return made, self._runner.record(made)

    # -- streams longer than a record ----------------------------------------------------------------------------------

    def _timed_in_chunks(self, plan: TaskPlan) -> TimedRun:
        """Return the simulated run of a stream too long for a record: generated again and simulated chunk by chunk."""
        recorded, runner = self._compiled.plan, self._runner
        assert isinstance(runner, Engine)      # an interpreter's record is complete
        if plan.rules.calendar:
            raise RecordLimitError(f"the run had {self._streams[0].columns.total_tasks} tasks, more than a calendar can be checked for",
                                   here(), help="simulate a smaller problem")
        if has_waits(recorded):
            raise reads_results(recorded)
        if (plan.structure and not recorded.structure) or (plan.structure != recorded.structure and plan.n_streams > 1):
            raise RecordLimitError(f"the run had {self._streams[0].columns.total_tasks} tasks, more than a record keeps, and was recorded "
                                   "without the order of the workload's structure", here(),
                                   help="compile it under that schedule and run it")
        long = LongStream(self._plan, recorded, plan, self._bindings, runner.runtime)
        try:
            orchestrated_again(runner.artifact, recorded, self._bindings, infer=plan.infer, max_tasks=runner.max_tasks, rules=plan.rules,
                               chunk=long.feed, sim=long.sim)
            sim = long.finish()
        except SimulationEnded as ended:      # the task's chunk may be gone: the last recorded chunk stands for it
            raise ended_error(plan, runner.recorder.raw_columns(), ended) from None
        return TimedRun(plan, self._streams[0].columns, sim, self._execute_time_ms, self._compiled.compile_time_ms)


def _has_edges(stream: _RecordStream, plan: TaskPlan) -> bool:
    """Tell whether a record has the edges of `plan`, possibly with more that can be dropped.

    Marks do not separate structure from other order.
    """
    if plan.infer and not stream.plan.infer:
        return False
    if plan.structure == stream.plan.structure:
        return True
    return stream.plan.structure and len(stream.columns.mark_node) == 0


# -- the user's result -------------------------------------------------------------------------------------------------
@user_calls(leave_out=("__init__",))
@dataclass(frozen=True, slots=True, eq=False)
class Simulation(InOneProcess, Displayed):
    """The result of `Program.simulate`. Later runs of the program do not change it."""

    _instead: ClassVar[str] = "send its `stats` or its `trace`"

    schedule: Schedule
    arch: Arch
    overheads: bool
    timed: TimedRun
    again: Callable[[object, object, object], Simulation]      # simulate(schedule, arch, overheads) for the same run

    @property
    def total_cycles(self) -> int:
        """The makespan in cycles."""
        return self.timed.sim.total_cycles

    @property
    def stats(self) -> Stats:
        """The figures, as in `Program.stats`; wall times are those of the run."""
        return self.timed.stats

    @property
    def trace(self) -> Trace:
        """The busy interval and executor of each task."""
        return self.timed.trace

    @property
    def graph(self) -> EdgeGraph:
        """The tasks and all edges between them under the schedule."""
        return self.timed.graph

    @property
    def critical_path(self) -> CriticalPath:
        """The longest chain of dependent tasks."""
        return self.timed.critical_path

    def explain(self, task: TaskLike | None = None) -> Explanation:
        """Return why a task ran when it did. `task`: its number, its name, or (kernel, indices).

        None: the task that completed last, whose chain() accounts for the makespan.

        Raises: R112 for what names no task.
        """
        return self.timed.explainer.explain(task)

    def simulate(self, schedule: object = None, arch: object = None, overheads: bool | None = None) -> Simulation:
        """Return the same tasks in simulated time under another schedule or on another arch; None keeps this simulation's.

        Raises: as `Program.simulate`; R103 once the program has run again.
        """
        return self.again(self.schedule if schedule is None else schedule, self.arch if arch is None else arch,
                          self.overheads if overheads is None else overheads)

    def freeze(self) -> Schedule:
        """Return this simulation's schedule with a calendar: each task's executor, position and start.

        Raises: R115 for a run of more tasks than a trace keeps.
        """
        return freeze_schedule(self.timed, self.schedule)

    def __repr__(self) -> str:
        return f"Simulation({counted(self.total_cycles, 'cycle')} on {self.arch.name}, {self.schedule!r})"
