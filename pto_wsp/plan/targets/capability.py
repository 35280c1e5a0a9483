"""What each target makes of each schedule directive: enforced, recorded in the artifact's manifest, or refused. And of each form of a
workload: it is enforced (the target does what it means), recorded (there are no tasks in the artifact), or refused.

A directive is recorded where a target leaves to its runtime what the directive steers, and nothing but performance depends on it. It is
refused where leaving it out would break a promise: an order of tasks, an end of the run, a count.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from pto_wsp.errors import CompileOptionError
from pto_wsp.source import here
from pto_wsp.values import dataclass


class Capability(Enum):
    """What a target makes of a directive."""

    ENFORCED = "enforced"
    RECORDED = "recorded"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Support:
    """What a target makes of a directive, and why."""

    capability: Capability
    reason: str


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

# The engine, the interpreter and the simulator, by directive, as below. What acts in simulated time alone says so.
_IN_TIME = "in simulated time; host threads take ready tasks as they come, and results are the same"
_FULL = {
    "abort": Support(Capability.ENFORCED, "tasks are simulated before a kernel runs, and a run without room for one ends there"),
    "benchmark": Support(Capability.ENFORCED, "tasks without room are counted in stats.window, and nothing waits"),
}
_ON_HOST: Mapping[str, Support] = {
    "dispatch": Support(Capability.ENFORCED, "each task has its home in simulated time; host threads run those of one home together"),
    "dispatch.round_robin": Support(Capability.ENFORCED, f"each task has its home {_IN_TIME}"),
    "dispatch.work_steal": Support(Capability.ENFORCED, f"executors share one queue {_IN_TIME}"),
    "stream": Support(Capability.ENFORCED, "edges order the tasks of a stream, for host threads and in simulated time alike"),
    "timing.immediate": Support(Capability.ENFORCED, "a task may run once it is submitted"),
    "timing": Support(Capability.ENFORCED, f"tasks are released {_IN_TIME}"),
    "task_graph.deps.overlap": Support(Capability.ENFORCED, "edges come from regions that share an element, and from after="),
    "task_graph.deps.explicit": Support(Capability.ENFORCED, "edges come from structure alone; what it leaves open is proved to be apart"),
    "task_graph.deps.hybrid": Support(Capability.ENFORCED, "edges come from structure and from regions that share an element"),
    "task_graph.deps.exact": Support(Capability.ENFORCED, "edges come from equal regions; that none overlap in part is proved, or refused"),
    **{f"task_graph.window.{unit}.stall": Support(Capability.ENFORCED, "a stream waits for room in simulated time; for host threads, "
                                                  "tensors that bodies make use the memory of those that a window has let go")
       for unit in ("tasks", "bytes", "entries")},
    **{f"task_graph.window.{unit}.{mode}": support for unit in ("tasks", "bytes", "entries") for mode, support in _FULL.items()},
    "task_graph.pools.single": Support(Capability.ENFORCED, f"each AICPU is one executor {_IN_TIME}"),
    "task_graph.pools.by_exec_unit": Support(Capability.ENFORCED, f"a task runs on a core of its unit {_IN_TIME}"),
    "task_graph.pools.custom": Support(Capability.ENFORCED, f"a task runs in the pool that its key names {_IN_TIME}"),
    "task_graph.ready": Support(Capability.ENFORCED, f"an executor takes ready tasks in this order {_IN_TIME}"),
    "task_graph.ready.priority": Support(Capability.ENFORCED, "the highest goes first, in simulated time and for host threads alike"),
    "task_graph.start.immediate": Support(Capability.ENFORCED, "a task may run once it is submitted"),
    "task_graph.start": Support(Capability.ENFORCED, f"the first task waits {_IN_TIME}"),
    "task_graph.trace.none": Support(Capability.ENFORCED, "a task takes the cycles that the arch model gives"),
    "task_graph.trace.cycles": Support(Capability.ENFORCED, "a task takes the cycles that its key gives, in simulated time"),
    "calendar": Support(Capability.ENFORCED, "each executor runs its tasks in the order of their positions, on a host thread too; "
                                                  "from their starts on in simulated time alone"),
    "spatial_map": Support(Capability.REFUSED, "no target lays tasks out on a grid of cores yet"),
}

# The device's runtime: by directive, or by what the directives begin with that have no line of their own.
_PLACES = Support(Capability.RECORDED, "how many control processors make tasks, and on which core a task runs, is the runtime's choice")
_QUEUES = Support(Capability.RECORDED, "the runtime has its own queues of ready tasks, one for each kind of core")
_ON_DEVICE: Mapping[str, Support] = {
    "dispatch": _PLACES,
    "stream": Support(Capability.REFUSED, "tasks of a stream would not run in the order of their submission"),
    "timing.immediate": Support(Capability.ENFORCED, "a task is submitted when its turn comes"),
    "timing": Support(Capability.RECORDED, "the runtime releases tasks as soon as it has them"),
    "task_graph.deps.overlap": Support(Capability.ENFORCED, "the runtime infers reads and writes after writes, the package names the rest"),
    "task_graph.deps.hybrid": Support(Capability.ENFORCED, "as overlap, and program order is named where data does not give it"),
    "task_graph.deps": Support(Capability.REFUSED, "the runtime infers edges from overlapping views and cannot be told not to"),
    "task_graph.window.tasks.stall": Support(Capability.RECORDED, "the runtime's task ring stalls when it is full; it sets the size"),
    "task_graph.window.bytes.stall": Support(Capability.RECORDED, "the runtime's heap stalls when it is full; it sets the size"),
    "task_graph.window.entries.stall": Support(Capability.RECORDED, "the runtime's map stalls when it is full; it sets the size"),
    "task_graph.window": Support(Capability.REFUSED, "the runtime only stalls: it neither ends the run nor counts"),
    "task_graph.pools.by_exec_unit": Support(Capability.ENFORCED, "a task runs on a core of its unit"),
    "task_graph.pools": Support(Capability.RECORDED, "a task runs on any core of its unit"),
    "task_graph.ready": _QUEUES,
    "task_graph.start.immediate": Support(Capability.ENFORCED, "a task may run once it is submitted"),
    "task_graph.start": Support(Capability.RECORDED, "when the first task runs is the runtime's choice"),
    "task_graph.trace.none": Support(Capability.ENFORCED, "nothing is simulated"),
    "task_graph.trace": Support(Capability.RECORDED, "cycles are of simulated time, and the device has real ones"),
    "calendar": Support(Capability.REFUSED, "the runtime takes no order of tasks on a core"),
    "spatial_map": Support(Capability.REFUSED, "no target lays tasks out on a grid of cores yet"),
}

# Forms of workloads beside loops and tasks, and how a user comes to them.
FORMS: Mapping[str, str] = {
    "choice": "P.when, P.elif_, P.otherwise",
    "walk.ragged": "a row of a Ragged, and other bounds that are read from a tensor",
    "walk.sparse": "P.sel, and other walks through a Sparse",
    "read.given": "an element of a tensor in a bound, a condition, a place or a scalar argument",
    "read.computed": "the same of a tensor that tasks of the workload write",
    "slot": "slot_set_u64, slot_load_u64, slot_u64",
    "fresh": "Tensor.empty in a loop, a branch or a process",
    "combine": "combine, |",
    "pipeline": "P.pipe, connect",
    "pipeline.fresh": "Tensor.empty in a body of a process that sends or takes behind it",
    "event": "record, synchronize",
}
_FORM_ON_HOST = Support(Capability.ENFORCED, "the engine, the interpreter and the simulator do it")
_FORMS_ON_DEVICE: Mapping[str, Support] = {
    "choice": Support(Capability.ENFORCED, "conditions stay conditions of the orchestration, which runs on the control processor"),
    "walk": Support(Capability.ENFORCED, "the orchestration reads bounds, and where a sparse row leads, from its tensors"),
    "read.given": Support(Capability.ENFORCED, "the orchestration reads elements; the runtime host_build_graph cannot, and is refused"),
    "read.computed": Support(Capability.ENFORCED, "the runtime waits for the tasks that write it; host_build_graph cannot, and is refused"),
    "slot": Support(Capability.ENFORCED, "slots are variables of the orchestration"),
    "fresh": Support(Capability.ENFORCED, "the runtime allocates it each time, in a scope of its own"),
    "combine": Support(Capability.ENFORCED, "edges are named for each side by itself"),
    "pipeline": Support(Capability.ENFORCED, "processes take turns on the control processor, and tasks wait for what tokens wait for"),
    "pipeline.fresh": Support(Capability.REFUSED, "the runtime's scopes nest, and those of processes that take turns would not"),
    "event": Support(Capability.ENFORCED, "the tasks behind it are told to wait for those in front of its record"),
}
_KERNELS_ONLY = Support(Capability.RECORDED, "a .pto file is a kernel: tasks, and what runs them, are not in it")
DEVICE_TARGETS = ("ascend_npu", "pto")
TARGETS = ("cpu_sim", "interp", *DEVICE_TARGETS)


def capabilities(target: str) -> Mapping[str, Capability]:
    """Return what `target` makes of each directive.

    Raises: C104 for a target that there is none of.
    """
    return {name: found.capability for name, found in supports(target).items()}


def supports(target: str) -> Mapping[str, Support]:
    """Return what `target` makes of each directive, with the reasons.

    Raises: C104 for a target that there is none of.
    """
    _check(target)
    if target == "ascend_npu":
        return {name: _longest(name, _ON_DEVICE) for name in DIRECTIVES}
    if target == "pto":
        return {name: _KERNELS_ONLY for name in DIRECTIVES}
    return {name: _longest(name, _ON_HOST) for name in DIRECTIVES}


def enforcing_targets(directive: str) -> tuple[str, ...]:
    """Return the targets that enforce a directive."""
    return tuple(target for target in TARGETS
                 if supports(target)[directive].capability is Capability.ENFORCED)


def workload_forms(target: str) -> Mapping[str, Capability]:
    """Return what `target` makes of each form of a workload.

    Raises: C104 for a target that there is none of.
    """
    return {name: found.capability for name, found in form_supports(target).items()}


def form_supports(target: str) -> Mapping[str, Support]:
    """Return what `target` makes of each form of a workload, with the reasons.

    Raises: C104 for a target that there is none of.
    """
    _check(target)
    if target == "ascend_npu":
        return {name: _longest(name, _FORMS_ON_DEVICE) for name in FORMS}
    return dict.fromkeys(FORMS, _KERNELS_ONLY if target == "pto" else _FORM_ON_HOST)


def forming_targets(form: str) -> tuple[str, ...]:
    """Return the targets that run a form of a workload."""
    return tuple(target for target in TARGETS if form_supports(target)[form].capability is Capability.ENFORCED)


def _check(target: str) -> None:
    if not isinstance(target, str) or target not in TARGETS:
        raise CompileOptionError(f"there is no target {target!r}", here(), expected=f"one of {', '.join(TARGETS)}")


def _longest(name: str, supports: Mapping[str, Support]) -> Support:
    """Return what is said of the longest part that a name begins with."""
    return supports[max((known for known in supports if name.startswith(known)), key=len)]
