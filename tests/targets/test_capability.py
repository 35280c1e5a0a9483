"""The table of targets and directives: a test a cell for the device, and what compile makes of each."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import get_args, get_type_hints

import numpy as np
import pytest

from pto_wsp import (
    Deps,
    DispatchPolicy,
    DType,
    In,
    Out,
    P,
    Pools,
    ReadyPolicy,
    StartPolicy,
    TaskWindow,
    Tensor,
    Tile,
    TimingPolicy,
    TracePolicy,
    WindowMode,
    Workload,
    kernel,
    pto,
    workload,
)
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.errors import CompileOptionError, DirectiveError
from pto_wsp.passes.context import Context
from pto_wsp.passes.lower import lower
from pto_wsp.passes.passes import DEVICE_PASSES
from pto_wsp.passes.pipeline import run_passes
from pto_wsp.schedule.capability import (
    DIRECTIVES,
    FORMS,
    TARGETS,
    enforcing_targets,
    form_supports,
    supports,
    workload_forms,
)
from pto_wsp.schedule.directives import Affinity, DispatchBy, DispatchSteal, Hash, RoundRobin, Timing
from pto_wsp.schedule.policy import Policy
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.schedule.support import Capability
from pto_wsp.targets.options import check_directives, enforced_part

ENFORCED, RECORDED, REFUSED = Capability.ENFORCED, Capability.RECORDED, Capability.REFUSED


@kernel
def move(x: In[Tile[1, 4, DType.F32]], y: Out[Tile[1, 4, DType.F32]]) -> None:
    """Double a row."""
    pto.store(y, x * 2)


def rows() -> Workload:
    """Return a workload with one loop, over r."""
    X, Y = Tensor(np.ones((4, 4), np.float32), name="X"), Tensor(np.zeros((4, 4), np.float32), name="Y")

    @workload
    def case() -> None:
        for r in P(4):
            move[r](X[r], Y[r])
    return case()


def windowed(unit: str, mode: WindowMode) -> Callable[[Workload], Workload]:
    """Return what bounds a window."""
    return lambda w: w.task_graph(window=TaskWindow(4, unit, mode))   # type: ignore[arg-type]


# Each directive: what ascend_npu makes of it, and how it is asked for (None: the facade has no word for it).
CELLS: dict[str, tuple[Capability, Callable[[Workload], Workload] | None]] = {
    "dispatch.round_robin": (RECORDED, lambda w: w.dispatch(DispatchPolicy.round_robin(3))),
    "dispatch.affinity": (RECORDED, lambda w: w.dispatch(DispatchPolicy.affinity(lambda t: t.r))),
    "dispatch.hash": (RECORDED, lambda w: w.dispatch(DispatchPolicy.hash(lambda t: t.r))),
    "dispatch.dispatch_by": (RECORDED, lambda w: w.dispatch(DispatchPolicy.dispatch_by(lambda t: t.r))),
    "dispatch.work_steal": (RECORDED, lambda w: w.dispatch(DispatchPolicy.work_steal())),
    "streams": (REFUSED, lambda w: w.streams(2)),
    "stream_by": (REFUSED, lambda w: w.stream_by(lambda t: t.r)),
    "timing.immediate": (ENFORCED, lambda w: w.timing(TimingPolicy.immediate)),
    "timing.batched": (RECORDED, lambda w: w.timing(TimingPolicy.batched(4))),
    "timing.interleaved": (RECORDED, lambda w: w.timing(TimingPolicy.interleaved(2))),
    "timing.rate_limit": (RECORDED, lambda w: w.timing(TimingPolicy.rate_limit(10.0))),
    "task_graph.deps.exact": (REFUSED, lambda w: w.task_graph(deps=Deps.infer_tensor_map_exact())),
    "task_graph.deps.overlap": (ENFORCED, lambda w: w.task_graph(deps=Deps.infer_bytes_overlap())),
    "task_graph.deps.explicit": (REFUSED, lambda w: w.task_graph(deps=Deps.explicit())),
    "task_graph.deps.hybrid": (ENFORCED, lambda w: w.task_graph(deps=Deps.hybrid())),
    **{f"task_graph.window.{unit}.{mode.value}": (RECORDED if mode is WindowMode.STALL else REFUSED, windowed(unit, mode))
       for unit in ("tasks", "bytes", "entries", "edges", "ready") for mode in WindowMode},
    "task_graph.pools.single": (RECORDED, lambda w: w.task_graph(pools=Pools.single())),
    "task_graph.pools.by_exec_unit": (ENFORCED, lambda w: w.task_graph(pools=Pools.by_exec_unit())),
    "task_graph.pools.custom": (RECORDED, lambda w: w.task_graph(pools=Pools.custom(lambda t: t.r))),
    "task_graph.ready.fifo": (RECORDED, lambda w: w.task_graph(ready=ReadyPolicy.fifo())),
    "task_graph.ready.work_steal": (RECORDED, lambda w: w.task_graph(ready=ReadyPolicy.work_steal())),
    "task_graph.ready.priority": (RECORDED, lambda w: w.task_graph(ready=ReadyPolicy.priority(lambda t: t.r))),
    "task_graph.start.immediate": (ENFORCED, None),
    "task_graph.start.after_orchestration": (RECORDED, lambda w: w.task_graph(start=StartPolicy.after_orchestration())),
    "task_graph.start.threshold": (RECORDED, lambda w: w.task_graph(start=StartPolicy.threshold(3))),
    "task_graph.trace.none": (ENFORCED, lambda w: w.task_graph(trace=TracePolicy.none())),
    "task_graph.trace.cycles": (RECORDED, lambda w: w.task_graph(trace=TracePolicy.cycles(lambda t: 5))),
    "calendar": (REFUSED, lambda w: w.calendar(lambda t: (0, t.r))),
    "spatial_map": (REFUSED, lambda w: w.spatial_map((2, 2))),
}


def schedule_of(directive: str) -> Schedule:
    """Return a schedule that asks for nothing but a directive."""
    ask = CELLS[directive][1]
    if ask is not None:
        return ask(rows()).schedule
    return rows().task_graph(start=StartPolicy()).schedule


def test_every_directive_has_its_cell() -> None:
    assert tuple(sorted(CELLS)) == tuple(sorted(DIRECTIVES))
    assert all([name for name, _ in schedule_of(directive).directives()] == [directive] for directive in DIRECTIVES)


@pytest.mark.parametrize("directive", DIRECTIVES)
def test_what_the_device_makes_of_a_directive(directive: str) -> None:
    capability, schedule = CELLS[directive][0], schedule_of(directive)
    found = supports("ascend_npu")[directive]
    assert found.capability is capability and found.reason
    if capability is REFUSED:
        with pytest.raises(DirectiveError) as caught:
            check_directives(schedule, "ascend_npu", strict=True)
        assert found.reason in str(caught.value)
        assert all(target in str(caught.value) for target in enforcing_targets(directive))
        return
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        recorded = check_directives(schedule, "ascend_npu", strict=True)
    assert len(recorded) == len(said) == (capability is RECORDED)
    assert all(directive in str(warning.message) for warning in said)


@pytest.mark.parametrize("directive", DIRECTIVES)
def test_a_pto_file_has_no_tasks_that_a_directive_could_steer(directive: str) -> None:
    assert supports("pto")[directive].capability is RECORDED


@pytest.mark.parametrize("directive", [name for name, cell in CELLS.items() if cell[0] is not ENFORCED])
def test_what_is_recorded_is_no_obstacle_to_a_plan(directive: str) -> None:
    """With strict=False even what is refused comes as far as the plan."""
    schedule = schedule_of(directive)
    context = Context(schedule, builtin_arch("ascend_910b"), enforced=enforced_part(schedule, "ascend_npu"))
    assert run_passes(lower(rows().node), context, DEVICE_PASSES).n_sites == 1


@pytest.mark.parametrize("target", ("ascend_npu", "pto"))
def test_the_default_schedule_asks_a_device_for_nothing_more(target: str) -> None:
    assert check_directives(rows().schedule, target, strict=True) == ()


def test_a_target_that_there_is_none_of_is_refused() -> None:
    with pytest.raises(CompileOptionError, match="no target 'gpu'"):
        supports("gpu")


# ---- forms of workloads ----

FORMS_ON_DEVICE = {
    "choice": ENFORCED, "walk.ragged": ENFORCED, "walk.sparse": ENFORCED, "read.given": ENFORCED, "read.computed": ENFORCED,
    "slot": ENFORCED, "fresh": ENFORCED, "fresh.sized": REFUSED, "combine": ENFORCED, "pipeline": ENFORCED, "pipeline.fresh": REFUSED,
    "event": ENFORCED,
}


def test_what_each_target_makes_of_each_form() -> None:
    assert workload_forms("ascend_npu") == FORMS_ON_DEVICE and set(FORMS) == set(FORMS_ON_DEVICE)
    assert all(found.reason for target in TARGETS for found in form_supports(target).values())
    assert set(workload_forms("pto").values()) == {RECORDED}
    assert set(workload_forms("interp").values()) == set(workload_forms("cpu_sim").values()) == {ENFORCED}
    with pytest.raises(CompileOptionError, match="no target 'gpu'"):
        workload_forms("gpu")


def test_the_matrix_is_what_the_classes_of_directives_say() -> None:
    """A kind of a policy without an entry would be said and not be found: it is missed here."""
    def kinds(policy: type[Policy]) -> set[str]:
        hints = get_type_hints(policy)
        values = [tuple(WindowMode) if name == "mode" else get_args(hints[name]) for name in ("kind", "unit", "mode") if name in hints]
        return {".".join(str(getattr(value, "value", value)) for value in chosen) for chosen in itertools.product(*values)}

    policies = (RoundRobin, Affinity, Hash, DispatchBy, DispatchSteal, Timing, Deps, TaskWindow, Pools, ReadyPolicy, StartPolicy,
                TracePolicy)
    for policy in policies:
        stem = policy.said_as.partition(".{")[0]
        assert {entry.name for entry in policy.entries} == {f"{stem}.{kind}" for kind in kinds(policy)}, policy
        assert {entry.name for entry in policy.entries} <= set(DIRECTIVES)
