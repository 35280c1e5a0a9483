"""Check that every part that ranks read of a tensor of the program is written on its rank: a collective sums or copies no undefined term.

    for r in P(mesh):
        with P.when(r < 2):
            k[r](X.on(r), Y.on(r))
    allreduce(Y)                       # on a mesh of 3: rank 2 has no term

Ranks, bounds and conditions of numbers and loop variables are evaluated; where a run decides, a write counts and a read does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any, TypeAlias

from pto_wsp.check.verdict import Finding, Verdict
from pto_wsp.errors import WorkloadStructureError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.flow import Choice, Do, Fresh, Loop, Sequence
from pto_wsp.ir.plan import Place, Submit, TaskPlan
from pto_wsp.ir.scalar import Number, Scalar, Var
from pto_wsp.values import dataclass
from pto_wsp.wording import counted

_MOST_STEPS = 1 << 14       # tasks that are looked at; of larger programs nothing is said

Values: TypeAlias = Mapping[Var, int]


class BeyondSteps(Exception):
    """There are more iterations than are looked at."""


@dataclass(slots=True, eq=False)
class _PartUse:
    """The ranks whose parts of a tensor are written, and the ranks whose parts are read, each with a task."""

    written: dict[int, Submit]
    read: dict[int, Submit]
    anywhere: bool = False      # a run decides on which rank it is written


def check_parts_written(plan: TaskPlan, intermediates: Set[int]) -> tuple[Finding, ...]:
    """Return a finding for each tensor of a program over ranks: the parts that are read are written, or an error names a rank's.

    `intermediates`: the ids of the tensors for results between tasks.
    """
    if not plan.rules.n_ranks:
        return ()
    found: dict[int, _PartUse] = {}
    try:
        for task, values, certain in tasks_of_ranks(plan):
            _note(task, values, certain, found)
    except BeyondSteps:
        return ()
    findings = []
    for number, ranks in found.items():
        slot = plan.tensors[number]
        missing = sorted(ranks.read.keys() - ranks.written.keys())
        if not slot.is_between_tasks(intermediates) or ranks.anywhere or not ranks.written:
            continue
        check = f"parts of `{slot.ref.shown}` on each rank"
        findings.append(Finding(check, Verdict.COUNTEREXAMPLE, f"rank {missing[0]}", _error(slot.ref.shown, missing, ranks)) if missing
                        else Finding(check, Verdict.PROVED, "those that are read are written"))
    return tuple(findings)


def _error(shown: str, missing: list[int], ranks: _PartUse) -> WorkloadStructureError:
    name = shown.removesuffix("_ranks")
    written = sorted(ranks.written)
    listed = ", ".join(map(str, written[:6])) + ", …" * (len(written) > 6)
    return WorkloadStructureError(f"`{name}` is read of rank {missing[0]}, and nobody writes it there", ranks.read[missing[0]].span,
                           expected="a part that is written on every rank of which it is read",
                           found=f"tasks that write it on {counted(len(written), 'rank')}: {listed}",
                           also=(("it is written here", ranks.written[written[0]].span),),
                           help="call the kernel on every rank; a rank without a term of a sum writes zeros")


def _note(task: Submit, values: Values, certain: bool, found: dict[int, _PartUse]) -> None:
    if task.on is None:
        return
    rank = value_of(task.on.rank, values)
    source = rank if task.on.source is None else value_of(task.on.source, values)
    for place in task.places:
        ranks = found.setdefault(place.slot, _PartUse({}, {}))
        if place.role.writes:
            if rank is None:
                ranks.anywhere = True
            else:
                ranks.written.setdefault(int(rank), task)
        if place.role.reads and certain and source is not None and _has_elements(place, values):
            of = rank if place.role.writes else source
            if of is not None:
                ranks.read.setdefault(int(of), task)


def tasks_of_ranks(plan: TaskPlan) -> Iterator[tuple[Submit, Values, bool]]:
    """Yield the tasks of a plan with the values of the loop variables, and whether it is certain that they run.

    Raises: BeyondSteps when there are more than are looked at.
    """
    for steps, found in enumerate(_tasks(plan.body, {}, True)):
        if steps > _MOST_STEPS:
            raise BeyondSteps
        yield found


def _has_elements(place: Place, values: Values) -> bool:
    """Tell whether a view certainly has an element."""
    return all((extent := value_of(one, values)) is not None and extent > 0 for one in place.extent)


def _tasks(item: Any, values: Values, certain: bool) -> Iterator[tuple[Submit, Values, bool]]:
    """Yield the tasks of an item with the values of the loop variables, and whether it is certain that they run."""
    match item:
        case Sequence(items):
            for inner in items:
                yield from _tasks(inner, values, certain)
        case Do(leaf):
            yield leaf, values, certain
        case Loop(var=var, body=body):
            bounds = [value_of(bound, values) for bound in (item.start, item.stop, item.step)]
            if None in bounds:
                yield from _tasks(body, values, False)
                return
            start, stop, step = (int(bound) for bound in bounds if bound is not None)
            for at in range(start, stop, step):
                yield from _tasks(body, {**values, var: at}, certain)
        case Choice(branches, otherwise):
            still = certain
            for branch in branches:
                holds = value_of(branch.condition, values)
                if holds is None:
                    still = False
                    yield from _tasks(branch.body, values, False)
                elif holds:
                    yield from _tasks(branch.body, values, still)
                    return
            yield from _tasks(otherwise, values, still)
        case Fresh():
            return
        case _:
            raise BeyondSteps      # processes and events: what runs is not followed here


def value_of(node: Scalar, values: Values) -> Number | None:
    """Return the number that a scalar is; None where a run decides. Extents of tensors are those declared."""
    if any(not isinstance(leaf, s.Const | s.DimOf) and leaf not in values for leaf in s.leaves(node)):
        return None

    def number(leaf: Scalar) -> Number:
        return leaf.tensor.shape[leaf.dim] if isinstance(leaf, s.DimOf) else values[leaf]  # type: ignore[index]

    return s.evaluate(node, number)
