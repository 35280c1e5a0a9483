"""Feed tasks of a record to the simulator with columns of another schedule in place of its own, at once or piece by piece."""

from __future__ import annotations

from typing import Any

import numpy as np

from pto_wsp.artifact.build import Runtime
from pto_wsp.plan.model import TaskPlan
from pto_wsp.plan.rules import ExecutionRules
from pto_wsp.retime.edges import Lanes, NodeEdges, edges_under
from pto_wsp.retime.fields import TaskFields, mark_delays, task_fields
from pto_wsp.retime.recorded import RecordedTasks
from pto_wsp.runtime.bound.binding import Bindings
from pto_wsp.runtime.native.simulator import SimResult, feed_columns, finish_sim, new_sim

_FIELDS = {"task_worker": "worker", "task_cost": "cost", "task_lane": "lane", "task_pool": "pool", "task_priority": "priority",
           "task_position": "position", "task_bytes": "traffic"}


def simulate_columns(tasks: RecordedTasks, fields: TaskFields, edges: NodeEdges, delays: np.ndarray[Any, Any] | None, rules: ExecutionRules,
                     ) -> SimResult:
    """Return the simulated times of the tasks with what a schedule says of them."""
    raw, alive = columns_with(tasks, fields, edges, delays)
    sim = new_sim(tasks.runtime, rules, keep_trace=True)
    feed_columns(tasks.runtime, sim, raw)
    del alive
    return finish_sim(tasks.runtime, sim)


def columns_with(tasks: RecordedTasks, fields: TaskFields, edges: NodeEdges, delays: np.ndarray[Any, Any] | None) -> tuple[Any, ...]:
    """Return a pto_columns and what must stay alive with it."""
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
    """A stream that no record keeps, simulated while it is made. Tasks have numbers of their own in it, nodes as well."""

    def __init__(self, columns: TaskPlan, recorded: TaskPlan, plan: TaskPlan, bindings: Bindings, runtime: Runtime) -> None:
        """`columns`: the plan in terms of a record; `recorded`: that of the orchestrator; `plan`: that of the schedule."""
        self._columns, self._recorded, self._plan, self._bindings, self._runtime = columns, recorded, plan, bindings, runtime
        self.sim = new_sim(runtime, plan.rules, keep_trace=False)
        self._lanes = Lanes()

    def feed(self, raw: Any) -> None:
        """Take the next tasks: a pto_columns."""
        tasks = RecordedTasks(self._runtime, raw, self._columns, self._bindings)
        fields = task_fields(tasks, self._plan)
        edges = edges_under(tasks, self._recorded, self._plan, fields.lane, self._lanes)
        with_fields, alive = columns_with(tasks, fields, edges, mark_delays(tasks, self._plan))
        feed_columns(self._runtime, self.sim, with_fields)
        del alive

    def finish(self) -> SimResult:
        """Return the simulated times."""
        return finish_sim(self._runtime, self.sim)
