"""The passes of a plan, in order, on one page."""

from __future__ import annotations

from pto_wsp.passes.pipeline import Fact, Level, Pass
from pto_wsp.plan.model import Context, TaskPlan
from pto_wsp.plan.refine.ragged import find_ragged_outputs, verify_after_find_ragged_outputs
from pto_wsp.plan.refine.repeats import drop_repeated_checks, verify_after_drop_repeated_checks
from pto_wsp.plan.refine.stream import stream_outputs, verify_after_stream_outputs
from pto_wsp.plan.schedule.place import order_tasks, place_tasks, verify_after_place_tasks
from pto_wsp.plan.schedule.price import price_tasks, verify_after_price_tasks
from pto_wsp.plan.written.text import print_plan

PLAN = Level("plan", TaskPlan, print_plan)
PlanPass = Pass[TaskPlan, Context]

_SCHEDULE, _PLACES = frozenset({Fact.SCHEDULE}), frozenset({Fact.PLACES})
# each comparison is made once
_DROP_REPEATED_CHECKS: PlanPass = Pass("drop_repeated_checks", PLAN, drop_repeated_checks, verify_after_drop_repeated_checks)

PASSES: tuple[PlanPass, ...] = (
    _DROP_REPEATED_CHECKS,
    # the schedule's rules stand in the plan, its keys in the tasks
    Pass("place_tasks", PLAN, place_tasks, verify_after_place_tasks, needs=_SCHEDULE, establishes=_PLACES),
    # every task has its cycles, in terms of its own views
    Pass("price_tasks", PLAN, price_tasks, verify_after_price_tasks, needs=_SCHEDULE | _PLACES),
    # kernels know which outputs may have fewer rows
    Pass("find_ragged_outputs", PLAN, find_ragged_outputs, verify_after_find_ragged_outputs),
    # kernels know which outputs are larger than the caches
    Pass("stream_outputs", PLAN, stream_outputs, verify_after_stream_outputs),
)

# what a plan is given again when a run is simulated under another schedule, or on another arch
SCHEDULE_PASSES = tuple(step for step in PASSES if Fact.SCHEDULE in step.needs)

# for a device, which finds executors, prices and caches of its own
DEVICE_PASSES: tuple[PlanPass, ...] = (
    _DROP_REPEATED_CHECKS,
    # edges come from where the schedule says
    Pass("order_tasks", PLAN, order_tasks, verify_after_place_tasks, needs=_SCHEDULE),
)
