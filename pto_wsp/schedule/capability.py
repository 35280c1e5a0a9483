"""Define what each target does with each schedule directive, as the directives' classes state, and with each workload form.

A target enforces a workload form (it implements its meaning), records it (the artifact contains no tasks), or refuses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from pto_wsp import doors
from pto_wsp.calls import user_call
from pto_wsp.errors import CompileOptionError
from pto_wsp.schedule.calendar import Calendar
from pto_wsp.schedule.directives import (
    STREAMS,
    Deps,
    Dispatch,
    Pools,
    ReadyPolicy,
    SpatialMap,
    StartPolicy,
    TaskWindow,
    Timing,
    TracePolicy,
)
from pto_wsp.schedule.support import Capability, Directive, Support
from pto_wsp.source import here
from pto_wsp.wording import suggestion

_ENTRIES: tuple[Directive, ...] = (
    *(entry for policy in get_args(get_args(Dispatch)[0]) for entry in policy.entries), *STREAMS, *Timing.entries, *Deps.entries,
    *TaskWindow.entries, *Pools.entries, *ReadyPolicy.entries, *StartPolicy.entries, *TracePolicy.entries, *Calendar.entries,
    *SpatialMap.entries,
)
DIRECTIVES = tuple(entry.name for entry in _ENTRIES)

# Workload forms other than loops and tasks, and what in the API creates each.
FORMS: Mapping[str, str] = {
    "choice": "P.when, P.elif_, P.otherwise",
    "walk.ragged": "a row of a Ragged, and other bounds that are read from a tensor",
    "walk.sparse": "P.sel, and other walks through a Sparse",
    "read.given": "an element of a tensor in a bound, a condition, a place or a scalar argument",
    "read.computed": "the same of a tensor that tasks of the workload write",
    "slot": "slot_set_u64, slot_load_u64, slot_u64",
    "fresh": "Tensor.empty in a loop, a branch or a process",
    "fresh.sized": "Tensor.empty in such a body, of a size without an upper bound, which only a run knows",
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
    "fresh.sized": Support(Capability.REFUSED, "a package states the sizes of its tensors"),
    "combine": Support(Capability.ENFORCED, "edges are named for each side by itself"),
    "pipeline": Support(Capability.ENFORCED, "processes take turns on the control processor, and tasks wait for what tokens wait for"),
    "pipeline.fresh": Support(Capability.REFUSED, "the runtime's scopes nest, and those of processes that take turns would not"),
    "event": Support(Capability.ENFORCED, "the tasks behind it are told to wait for those in front of its record"),
}
_KERNELS_ONLY = Support(Capability.RECORDED, "a .pto file is a kernel: tasks, and what runs them, are not in it")
TARGETS = tuple(doors.TARGETS)


@user_call()
def capabilities(target: str) -> Mapping[str, Capability]:
    """Return what `target` does with each directive.

    Raises: C104 for an unknown target.
    """
    return {name: support.capability for name, support in supports(target).items()}


def supports(target: str) -> Mapping[str, Support]:
    """Return what `target` does with each directive, with the reasons.

    Raises: C104 for an unknown target.
    """
    check_target(target)
    match target:
        case "ascend_npu":
            return {entry.name: entry.device for entry in _ENTRIES}
        case "pto":
            return dict.fromkeys(DIRECTIVES, _KERNELS_ONLY)
        case _:
            return {entry.name: entry.host for entry in _ENTRIES}


def enforcing_targets(directive: str) -> tuple[str, ...]:
    """Return the targets that enforce a directive."""
    return tuple(target for target in TARGETS
                 if supports(target)[directive].capability is Capability.ENFORCED)


@user_call()
def workload_forms(target: str) -> Mapping[str, Capability]:
    """Return what `target` does with each workload form.

    Raises: C104 for an unknown target.
    """
    return {name: support.capability for name, support in form_supports(target).items()}


def form_supports(target: str) -> Mapping[str, Support]:
    """Return what `target` does with each workload form, with the reasons.

    Raises: C104 for an unknown target.
    """
    check_target(target)
    if target == "ascend_npu":
        return {name: _longest(name, _FORMS_ON_DEVICE) for name in FORMS}
    return dict.fromkeys(FORMS, _KERNELS_ONLY if target == "pto" else _FORM_ON_HOST)


def forming_targets(form: str) -> tuple[str, ...]:
    """Return the targets that run a workload form."""
    return tuple(target for target in TARGETS if form_supports(target)[form].capability is Capability.ENFORCED)


def check_target(target: object) -> str:
    """Return the name of a target.

    Raises: C104 with the targets.
    """
    if not isinstance(target, str) or target not in TARGETS:
        raise CompileOptionError(f"there is no target {target!r}", here(), expected=f"one of {', '.join(TARGETS)}",
                                 help=suggestion(target, TARGETS))
    return target


def _longest(name: str, supports: Mapping[str, Support]) -> Support:
    """Return the entry of `supports` for the longest prefix of `name`."""
    return supports[max((prefix for prefix in supports if name.startswith(prefix)), key=len)]
