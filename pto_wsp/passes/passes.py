"""List the passes of a plan, in order, and run them."""

from __future__ import annotations

from pto_wsp.ir.plan import TaskPlan
from pto_wsp.ir.plan_text import print_plan
from pto_wsp.passes.context import Context
from pto_wsp.passes.pipeline import Fact, Level, Pass
from pto_wsp.passes.price import price_tasks, verify_after_price_tasks
from pto_wsp.passes.refine import (
    drop_repeated_checks,
    find_ragged_outputs,
    stream_outputs,
    verify_after_drop_repeated_checks,
    verify_after_find_ragged_outputs,
    verify_after_stream_outputs,
)
from pto_wsp.passes.schedule import order_tasks, place_tasks, verify_after_place_tasks

PLAN = Level("plan", TaskPlan, print_plan)
PlanPass = Pass[TaskPlan, Context]

_SCHEDULE, _PLACES = frozenset({Fact.SCHEDULE}), frozenset({Fact.PLACES})
# no comparison is repeated
_DROP_REPEATED_CHECKS: PlanPass = Pass("drop_repeated_checks", PLAN, drop_repeated_checks, verify_after_drop_repeated_checks)

PASSES: tuple[PlanPass, ...] = (
    _DROP_REPEATED_CHECKS,
    # rules are in the plan, keys in the tasks
    Pass("place_tasks", PLAN, place_tasks, verify_after_place_tasks, needs=_SCHEDULE, establishes=_PLACES,
         required="the schedule says where and when tasks run: without it, no task has a place"),
    # every task has a cost in terms of its own views
    Pass("price_tasks", PLAN, price_tasks, verify_after_price_tasks, needs=_SCHEDULE | _PLACES,
         required="simulated time is made of the costs of tasks"),
    # outputs that may have fewer rows are known
    Pass("find_ragged_outputs", PLAN, find_ragged_outputs, verify_after_find_ragged_outputs),
    # outputs larger than the caches are known
    Pass("stream_outputs", PLAN, stream_outputs, verify_after_stream_outputs),
)

# Passes to run again when a run is simulated under another schedule or on another arch.
SCHEDULE_PASSES = tuple(step for step in PASSES if Fact.SCHEDULE in step.needs)

# For a device with executors, costs and caches of its own.
DEVICE_PASSES: tuple[PlanPass, ...] = (
    _DROP_REPEATED_CHECKS,
    # edges are of the schedule's kinds
    Pass("order_tasks", PLAN, order_tasks, verify_after_place_tasks, needs=_SCHEDULE,
         required="edges between tasks are of the kinds that the schedule names"),
)
