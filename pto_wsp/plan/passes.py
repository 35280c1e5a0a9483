"""The passes of a plan, in order, on one page."""

from __future__ import annotations

from collections.abc import Callable

from pto_wsp.plan.model import Context, TaskPlan
from pto_wsp.plan.refine.ragged import find_ragged_outputs, verify_after_find_ragged_outputs
from pto_wsp.plan.refine.repeats import drop_repeated_checks, verify_after_drop_repeated_checks
from pto_wsp.plan.refine.stream import stream_outputs, verify_after_stream_outputs
from pto_wsp.plan.schedule.place import order_tasks, place_tasks, verify_after_place_tasks
from pto_wsp.plan.schedule.price import price_tasks, verify_after_price_tasks
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Pass:
    """A step from plan to plan, and what holds after it."""

    name: str
    run: Callable[[TaskPlan, Context], TaskPlan]
    verify: Callable[[TaskPlan], None]


PASSES = (
    Pass("drop_repeated_checks", drop_repeated_checks, verify_after_drop_repeated_checks),   # each comparison is made once
    Pass("place_tasks", place_tasks, verify_after_place_tasks),   # the schedule's rules stand in the plan, its keys in the tasks
    Pass("price_tasks", price_tasks, verify_after_price_tasks),   # every task has its cycles, in terms of its own views
    Pass("find_ragged_outputs", find_ragged_outputs, verify_after_find_ragged_outputs),   # kernels know which outputs may have fewer rows
    Pass("stream_outputs", stream_outputs, verify_after_stream_outputs),   # kernels know which outputs are larger than the caches
)

# what depends on the schedule and on the arch's times: they give the same to a plan at any later time, when a run is simulated again
SCHEDULE_PASSES = tuple(step for step in PASSES if step.name in ("place_tasks", "price_tasks"))

# for a device, which finds executors, prices and caches of its own
DEVICE_PASSES = (
    Pass("drop_repeated_checks", drop_repeated_checks, verify_after_drop_repeated_checks),
    Pass("order_tasks", order_tasks, verify_after_place_tasks),   # edges come from where the schedule says
)

Observer = Callable[[str, TaskPlan, TaskPlan], None]


def run_passes(plan: TaskPlan, context: Context, passes: tuple[Pass, ...] = PASSES, observe: Observer | None = None) -> TaskPlan:
    """Return the plan after all passes; `observe` is told (name, before, after) of each."""
    for step in passes:
        after = step.run(plan, context)
        step.verify(after)
        if observe is not None:
            observe(step.name, plan, after)
        plan = after
    return plan
