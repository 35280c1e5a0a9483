"""Check regions that tasks write: exact regions across tasks, and the outputs of a single task.

`Deps.infer_tensor_map_exact()` adds edges only between tasks with equal regions. A partial overlap would leave two tasks unordered, so the
plan must prove that any two written regions are equal or disjoint, for all sizes that a run may bind.

Two outputs of one task must not share an element, because the order of the task's stores would decide the result. Views of one tensor are
decided here; the run checks what depends on its bindings, including two tensors bound to one array.

>>> k(x=X, y=B[0:4], z=B[2:6])    # y and z are both written: W205
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from types import MappingProxyType

import numpy as np

from pto_wsp.check.races.accesses import SiteAccess, Touched, accesses_of, touched_of
from pto_wsp.check.races.decide import Apart, NotProved, decide
from pto_wsp.check.races.filters import pairs_among
from pto_wsp.check.races.question import Data, Pair, data_of
from pto_wsp.check.races.witness import Witness
from pto_wsp.check.verdict import Finding, Verdict
from pto_wsp.errors import UnprovedOrderError
from pto_wsp.ir.plan import TaskPlan, outputs_clash
from pto_wsp.ir.plan_walk import submits
from pto_wsp.ir.view import print_view
from pto_wsp.source import Span

_MOST_ERRORS = 3


def check_exact(plan: TaskPlan, arrays: Mapping[int, np.ndarray] = MappingProxyType({})) -> tuple[Finding, ...]:
    """Return a finding for each tensor that tasks write: regions are proved equal or disjoint, or an error names two of them.

    `arrays`: current contents of tensors, by the id of their TensorRef; an example takes the lengths of rows from them.
    """
    data, touched = data_of(plan, arrays), touched_of(plan)
    findings: list[Finding] = []
    for number, slot in enumerate(plan.tensors):
        if slot.writes:
            findings.extend(_of_tensor(slot.ref.shown, touched[number], data))
    return tuple(findings)


def _of_tensor(name: str, touched: Touched, data: Data) -> Iterator[Finding]:
    check = f"exact regions of `{name}`"
    errors = 0
    contracts: dict[str, None] = {}
    for pair in pairs_among(touched.accesses, touched.depth, data):
        match decide(pair, data, in_part=True):
            case Apart(relied_on):
                contracts.update((f"{contract.value} {table.shown}", None) for table in relied_on for contract in table.contracts)
            case Witness() as witness:
                errors += 1
                yield Finding(check, Verdict.COUNTEREXAMPLE, _views(pair), _error(name, pair, _overlap(witness)))
            case NotProved(reason):
                errors += 1
                yield Finding(check, Verdict.NOT_PROVED, f"{_views(pair)}: {reason}",
                              _error(name, pair, f"{_views(pair)}, which are not proved to be: {reason}"))
        if errors == _MOST_ERRORS:
            break
    if not errors:
        needed = f", given {', '.join(contracts)}" if contracts else ""
        yield Finding(check, Verdict.PROVED, f"any two are equal or share no element{needed}")


def _views(pair: Pair) -> str:
    first, second = (print_view(access.view) for access in pair.accesses)
    return f"{first} and {second}" if pair.first is not pair.second else f"{first} of two tasks"


def _overlap(witness: Witness) -> str:
    """Return text that names two partially overlapping regions, their iterations, and the shared elements."""
    sides = [f"{print_view(access.view)}{f' where {where}' if (where := witness.iteration(side)) else ''}"
             for side, access in enumerate(witness.pair.accesses)]
    values = f", for example with {', '.join(f'{key} = {value}' for key, value in witness.given.items())}" if witness.given else ""
    return f"{sides[0]} and {sides[1]} overlap in part: they share {witness.elements}{values}"


def _error(name: str, pair: Pair, found: str) -> UnprovedOrderError:
    first, second = pair.accesses
    return UnprovedOrderError(
        f"Deps.infer_tensor_map_exact() needs a proof that any two regions of `{name}` are equal or apart", first.span, found=found,
        also=() if first.span == second.span else ((f"{second.verb} here", second.span),),
        help="cut it into pieces of one size, or take Deps.infer_bytes_overlap(), which orders what overlaps in part")


def check_outputs(plan: TaskPlan, arrays: Mapping[int, np.ndarray] = MappingProxyType({})) -> tuple[Finding, ...]:
    """Return a finding for each pair of outputs of one call on the same tensor.

    `arrays`: current contents of tensors, by the id of their TensorRef; an example takes the lengths of rows from them.
    """
    by_site = accesses_of(plan)
    data: Data | None = None
    findings: list[Finding] = []
    for task in submits(plan):
        written = [access for access in by_site[task.site] if access.role.writes]
        for first, second in combinations(written, 2):
            if first.slot == second.slot:
                data = data or data_of(plan, arrays)
                findings.append(_of_pair(plan.kernels[task.kernel].kernel.name, task.span, first, second, data))
    return tuple(findings)


def _of_pair(kernel: str, span: Span, first: SiteAccess, second: SiteAccess, data: Data) -> Finding:
    check = f"outputs `{first.param}` and `{second.param}` of {kernel} at {span.short}"
    match decide(Pair(first, second, len(first.levels), None), data):
        case Apart():
            return Finding(check, Verdict.PROVED, "they share no element")
        case NotProved(reason):
            return Finding(check, Verdict.NOT_PROVED, reason)
        case Witness() as witness if witness.given:      # the run decides: other numbers may leave the outputs disjoint
            return Finding(check, Verdict.NOT_PROVED, f"both are {witness.elements} {_where(witness)}")
        case Witness() as witness:
            views = print_view(first.view), print_view(second.view)
            error = outputs_clash(f"`{kernel}`", span, (first.param, second.param), views, witness.elements,
                                  (f"for example {_where(witness)}",) * bool(witness.iteration(0)))
            return Finding(check, Verdict.COUNTEREXAMPLE, f"both are {witness.elements}", error)


def _where(witness: Witness) -> str:
    values = ", ".join(f"{key} = {value}" for key, value in witness.given.items())
    return f"where {', '.join(part for part in (witness.iteration(0), values) if part)}"
