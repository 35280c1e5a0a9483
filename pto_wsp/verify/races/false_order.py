"""False order: what a workload orders although nothing asks for it. A hint, never an error: it costs time and no correctness.

An ordered loop whose iterations touch different elements could be an unordered one, and an `after=` between tasks that touch nothing in
common could go.
"""

from __future__ import annotations

from collections.abc import Iterator

from pto_wsp.plan.model import Item, Loop, SetSlot, Submit, TaskPlan
from pto_wsp.plan.waits.communication import communicates
from pto_wsp.plan.walk import items_in, items_of, submits
from pto_wsp.types import scalar as s
from pto_wsp.verify.races.accesses import Access
from pto_wsp.verify.races.contests import accesses_of, contests_of
from pto_wsp.verify.races.filters import is_apart, pairs_of
from pto_wsp.verify.races.question import Data, Pair, Question, data_of
from pto_wsp.verify.verdict import Finding, Verdict

_CHECK = "false order"


def false_order(plan: TaskPlan) -> tuple[Finding, ...]:
    """Return a hint for each ordered loop and each `after=` that is proved to order nothing that has to be."""
    data = data_of(plan, {})
    return (*_loops(plan, data), *_handles(plan, data))


def _loops(plan: TaskPlan, data: Data) -> Iterator[Finding]:
    needed: dict[int, bool] = {}
    for contest in contests_of(plan, ordered=True):
        node = contest.node
        if not needed.get(id(node)):
            needed[id(node)] = any(not _apart(pair, data) for pair in pairs_of(contest, data))
    for item in items_of(plan):
        if isinstance(item, Loop) and needed.get(id(item)) is False and _runs_again(item) and not _has_other_order(item):
            yield Finding(_CHECK, Verdict.LINT,
                          f"P.seq over {item.known_var.name} at {item.span.short}: its iterations touch different elements, P would do")


def _runs_again(loop: Loop) -> bool:
    """Tell whether a loop may have two iterations."""
    match loop.start, loop.stop, loop.step:
        case s.Const(start), s.Const(stop), s.Const(step):
            return int(stop) - int(start) > int(step)
        case _:
            return True


def _has_other_order(item: Item) -> bool:
    """Tell whether iterations hand something on beside elements: slots, tokens, events."""
    return communicates(item) or any(isinstance(inner, SetSlot) for inner in items_in(item))


def _handles(plan: TaskPlan, data: Data) -> Iterator[Finding]:
    waiting = [task for task in submits(plan) if task.after]
    if not waiting:
        return
    made = {task.handle: task for task in submits(plan)}
    accesses = accesses_of(plan)
    for task in waiting:
        for handle in task.after:
            maker = made.get(handle)
            if maker is not None and all(_apart(pair, data) for pair in _between(accesses[maker.site], accesses[task.site])):
                yield Finding(_CHECK, Verdict.LINT, f"after= at {task.span.short}: {_kernel(plan, task)} and {_kernel(plan, maker)} at "
                              f"{maker.span.short} touch nothing in common")


def _between(ours: tuple[Access, ...], theirs: tuple[Access, ...]) -> Iterator[Pair]:
    for first in ours:
        for second in theirs:
            if first.slot == second.slot and (first.role.writes or second.role.writes):
                shared = 0
                for one, other in zip(first.levels, second.levels, strict=False):
                    if one is not other:
                        break
                    shared += 1
                yield Pair(first, second, shared, None)


def _apart(pair: Pair, data: Data) -> bool:
    return is_apart(Question(pair, data, pinned=False))


def _kernel(plan: TaskPlan, task: Submit) -> str:
    return plan.kernels[task.kernel].kernel.name
