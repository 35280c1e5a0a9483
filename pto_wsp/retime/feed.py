"""Feed a record's tasks to the simulator with columns of another schedule in place of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from pto_wsp.plan.rules import ExecutionRules
from pto_wsp.retime.edges import Edges
from pto_wsp.retime.fields import TaskFields
from pto_wsp.retime.recorded import RecordedTasks
from pto_wsp.runtime.native import SimResult, feed_columns, finish_sim, new_sim

_FIELDS = {"task_worker": "worker", "task_cost": "cost", "task_lane": "lane", "task_pool": "pool", "task_priority": "priority",
           "task_position": "position", "task_bytes": "traffic"}


def simulate_columns(tasks: RecordedTasks, fields: TaskFields, edges: Edges, delays: np.ndarray[Any, Any] | None, rules: ExecutionRules,
                     ) -> SimResult:
    """Return the simulated times of the tasks with what a schedule says of them."""
    raw, alive = columns_with(tasks, fields, edges, delays)
    sim = new_sim(tasks.runtime, rules, keep_trace=True)
    feed_columns(tasks.runtime, sim, raw)
    del alive
    return finish_sim(tasks.runtime, sim)


def columns_with(tasks: RecordedTasks, fields: TaskFields, edges: Edges, delays: np.ndarray[Any, Any] | None) -> tuple[Any, ...]:
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
