"""Which schedule directive each target enforces; what it does not is refused, or recorded where the user asks for that."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from pto_wsp.errors import CompileOptionError
from pto_wsp.source import here


class Capability(Enum):
    """What a target makes of a directive."""

    ENFORCED = "enforced"
    REFUSED = "refused"


DIRECTIVES = (
    "dispatch.round_robin", "dispatch.affinity", "dispatch.hash", "dispatch.dispatch_by", "dispatch.work_steal", "streams",
    "stream_by", "timing.immediate", "timing.batched", "timing.interleaved", "timing.rate_limit", "task_graph.deps.exact",
    "task_graph.deps.overlap", "task_graph.deps.explicit", "task_graph.deps.hybrid", "task_graph.window.tasks.stall",
    "task_graph.window.tasks.abort", "task_graph.window.tasks.benchmark", "task_graph.window.bytes.stall",
    "task_graph.window.bytes.abort", "task_graph.window.bytes.benchmark", "task_graph.window.entries.stall",
    "task_graph.window.entries.abort", "task_graph.window.entries.benchmark", "task_graph.pools.single",
    "task_graph.pools.by_exec_unit", "task_graph.pools.custom", "task_graph.ready.fifo", "task_graph.ready.work_steal",
    "task_graph.ready.priority", "task_graph.start.immediate", "task_graph.start.after_orchestration",
    "task_graph.start.threshold", "task_graph.trace.none", "task_graph.trace.cycles", "calendar", "spatial_map",
)
_ENFORCED = frozenset({
    "dispatch.round_robin", "dispatch.affinity", "dispatch.hash", "dispatch.dispatch_by", "timing.immediate",
    "task_graph.deps.overlap", "task_graph.deps.hybrid", "task_graph.window.tasks.stall", "task_graph.pools.single",
    "task_graph.ready.fifo", "task_graph.start.immediate", "task_graph.trace.none",
})
TARGETS = ("cpu_sim", "interp")


def capabilities(target: str) -> Mapping[str, Capability]:
    """Return what `target` makes of each directive; the targets of this version run one engine and one simulator.

    Raises: C104 for a target that there is none of.
    """
    if target not in TARGETS:
        raise CompileOptionError(f"there is no target {target!r}", here(), expected=f"one of {', '.join(TARGETS)}")
    return {name: Capability.ENFORCED if name in _ENFORCED else Capability.REFUSED for name in DIRECTIVES}
