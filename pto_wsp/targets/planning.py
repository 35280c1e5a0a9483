"""The part of compiling that all targets share: workload → plan → passes → checks."""

from __future__ import annotations

from pto_wsp.check.forms import missing_bodies
from pto_wsp.check.verdict import Finding
from pto_wsp.errors import raise_all
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.ir.plan_text import print_plan
from pto_wsp.passes.context import Context
from pto_wsp.passes.lower import lower
from pto_wsp.passes.passes import PlanPass
from pto_wsp.targets.checks import check_plan
from pto_wsp.targets.dumps import observer
from pto_wsp.targets.request import CompileRequest
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan behind its passes, the same before them, and what is proved of it."""

    plan: TaskPlan
    lowered: TaskPlan
    findings: tuple[Finding, ...]


def make_plan(request: CompileRequest, passes: tuple[PlanPass, ...], cache_bytes: int | None = None) -> Planned:
    """Return the plan of a workload, checked. `cache_bytes`: of the caches that the code will run with, None where nobody knows.

    Raises: what the passes raise, K107 and K108 for kernels without a body for the target, and what the checks refute.
    """
    lowered = lower(request.workload)
    plan = run_plan_passes(request, lowered, passes, cache_bytes)
    raise_all(missing_bodies((use.kernel for use in plan.kernels), request.target))
    findings = check_plan(lowered, plan, request.arrays, request.intermediates, request.arch,
                          exact=request.enforced.deps.kind == "exact", sanitize=request.options.sanitize)
    return Planned(plan, lowered, findings)


def run_plan_passes(request: CompileRequest, lowered: TaskPlan, passes: tuple[PlanPass, ...], cache_bytes: int | None) -> TaskPlan:
    """Return a plan behind its passes.

    Raises: what the passes raise.
    """
    context = Context(request.schedule, request.arch, cache_bytes, request.enforced, request.options.overheads, request.intermediates)
    return request.runner.run(lowered, context, passes, observer(request.dumps, "", print_plan) if request.options.dump else None)
