"""The static checks of a plan: slots, contracts, bounds, outputs, deadlock, races, false order, memory.

What they find goes to the manifest and to `program.checks`.
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
from pto_wsp.check.forms import contract_errors
from pto_wsp.check.outputs import check_exact, check_outputs
from pto_wsp.check.races.check import check_races, explicit_errors, false_order, unproved_warnings
from pto_wsp.check.ranks import check_parts_written
from pto_wsp.check.slots import slot_errors
from pto_wsp.check.verdict import Finding
from pto_wsp.errors import raise_all
from pto_wsp.ir.execution_rules import TaskField
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.ir.plan_walk import submits


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
