"""The part of compiling that all targets share: workload → plan → passes → static checks.

The checks are slots, contracts, bounds, outputs, deadlock, races, false order and memory; what they find goes to the manifest and to
`program.checks`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from pto_wsp.arch.model import Arch
from pto_wsp.check.bounds import check_bounds
from pto_wsp.check.capacity import intermediate_memory
from pto_wsp.check.deadlock import check_deadlock
from pto_wsp.check.forms import contract_errors, missing_bodies
from pto_wsp.check.outputs import check_exact, check_outputs
from pto_wsp.check.races.check import check_races, explicit_errors, false_order, unproved_warnings
from pto_wsp.check.ranks import check_parts_written
from pto_wsp.check.slots import slot_errors
from pto_wsp.check.verdict import Finding
from pto_wsp.errors import raise_all
from pto_wsp.ir.execution_rules import TaskField
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.ir.plan_text import print_plan
from pto_wsp.ir.plan_walk import submits
from pto_wsp.passes.context import Context
from pto_wsp.passes.lower import lower
from pto_wsp.passes.passes import PlanPass
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


def check_plan(lowered: TaskPlan, plan: TaskPlan, arrays: Mapping[int, np.ndarray], intermediates: frozenset[int],
               arch: Arch, *, exact: bool = False, sanitize: bool = False) -> tuple[Finding, ...]:
    """Return what is proved and what is left to the run. `lowered`: the plan before its passes, of which one drops checks by which
    races are judged; `arrays`: what tensors hold now, by their ids; `intermediates`: the ids of those for results between tasks.

    `exact`: edges come from equal regions alone, so none may overlap in part; `sanitize`: runs look for races themselves.
    Warns of each pair of tasks in different processes that is not proved to be free of races.

    Raises: what has a counterexample, all errors of a step together.
    """
    raise_all((*slot_errors(plan), *contract_errors(plan)))
    lanes = {task.site: task.lane for task in submits(plan)} if TaskField.LANE in plan.rules.columns else {}
    races = check_races(replace(lowered, structure=plan.structure), arrays, lanes)
    findings = (*check_bounds(plan), *check_outputs(lowered, arrays), *check_deadlock(plan), *races.findings, *false_order(lowered),
                *check_parts_written(plan, intermediates), *intermediate_memory(plan, intermediates, arch),
                *(check_exact(lowered, arrays) if exact else ()))
    raise_all([finding.error for finding in findings if finding.error is not None])
    if not plan.infer:
        raise_all(explicit_errors(races))
    if not sanitize:
        for text, span in unproved_warnings(races):
            warnings.warn_explicit(text, UserWarning, span.file, span.line)
    return findings
