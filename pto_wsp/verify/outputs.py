"""Outputs of one task: parameters that it writes share no element, or the order of its stores would decide what lasts.

Views of one tensor are proved apart here, or shown to overlap. What depends on what a run binds, two tensors on one array among it, is
looked at by the run before a task runs.

>>> k(x=X, y=B[0:4], z=B[2:6])    # y and z are both written: W205
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from types import MappingProxyType

import numpy as np

from pto_wsp.plan.model import TaskPlan
from pto_wsp.plan.outputs import outputs_clash
from pto_wsp.plan.walk import submits
from pto_wsp.source import Span
from pto_wsp.types.view import print_view
from pto_wsp.verify.races.accesses import Access
from pto_wsp.verify.races.contests import accesses_of
from pto_wsp.verify.races.decide import Apart, Open, decide
from pto_wsp.verify.races.question import Data, Pair, data_of
from pto_wsp.verify.races.witness import Witness
from pto_wsp.verify.verdict import Finding, Verdict


def check_outputs(plan: TaskPlan, arrays: Mapping[int, np.ndarray] = MappingProxyType({})) -> tuple[Finding, ...]:
    """Return a finding for each call with several outputs on one tensor.

    `arrays`: what tensors hold now, by the id of their TensorRef: lengths of rows are read from there for an example.
    """
    by_site = accesses_of(plan)
    data: Data | None = None
    found: list[Finding] = []
    for task in submits(plan):
        written = [access for access in by_site[task.site] if access.role.writes]
        for first, second in combinations(written, 2):
            if first.slot == second.slot:
                data = data or data_of(plan, arrays)
                found.append(_of_pair(plan.kernels[task.kernel].kernel.name, task.span, first, second, data))
    return tuple(found)


def _of_pair(kernel: str, span: Span, first: Access, second: Access, data: Data) -> Finding:
    check = f"outputs `{first.param}` and `{second.param}` of {kernel} at {span.short}"
    match decide(Pair(first, second, len(first.levels), None), data):
        case Apart():
            return Finding(check, Verdict.PROVED, "they share no element")
        case Open(reason):
            return Finding(check, Verdict.NOT_PROVED, reason)
        case Witness() as witness if witness.given:      # the run looks: other numbers may leave them apart
            return Finding(check, Verdict.NOT_PROVED, f"both are {witness.elements} {_where(witness)}")
        case Witness() as witness:
            views = print_view(first.view), print_view(second.view)
            error = outputs_clash(f"`{kernel}`", span, (first.param, second.param), views, witness.elements,
                                  (f"for example {_where(witness)}",) * bool(witness.iteration(0)))
            return Finding(check, Verdict.COUNTEREXAMPLE, f"both are {witness.elements}", error)


def _where(witness: Witness) -> str:
    given = ", ".join(f"{key} = {value}" for key, value in witness.given.items())
    return f"where {', '.join(part for part in (witness.iteration(0), given) if part)}"
