"""Memory of intermediates: what the tensors take that a workload makes for results between tasks, as a function of the window.

Those made outside of loops are there for the whole run. One made in a body is another each time, and lives from its first task to its
last; a task is in the window until it has run, and each live tensor has a task that has not, so no more are alive than the window has
places, nor than are made. That is an upper bound: what a run needs is at most that.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from pto_wsp.arch.model import Arch
from pto_wsp.errors import IntermediatesError
from pto_wsp.plan.model import Choice, Fresh, Item, Loop, Sequence, Sides, TaskPlan
from pto_wsp.plan.walk import inner_items
from pto_wsp.source import UNKNOWN, Span
from pto_wsp.types.layout import TensorRef
from pto_wsp.types.scalar import Const
from pto_wsp.values import dataclass
from pto_wsp.verify.verdict import Finding, Verdict

_CHECK = "memory of intermediates"


@dataclass(frozen=True, slots=True)
class Part:
    """A tensor for results between tasks: how many of it are alive at most, None where nothing bounds that."""

    ref: TensorRef
    span: Span
    count: int | None

    @property
    def size_bytes(self) -> int:
        """What one of it takes."""
        return prod(self.ref.shape) * self.ref.dtype.nbytes

    def __str__(self) -> str:
        times = "" if self.count == 1 else "any number of " if self.count is None else f"{self.count} × "
        return f"{times}{self.ref.shown} of {self.size_bytes}"


def intermediate_memory(plan: TaskPlan, intermediates: frozenset[int], arch: Arch) -> tuple[Finding, ...]:
    """Return how much the intermediates of a plan take at most; `intermediates`: the ids of tensors that were made for that.

    The finding has an error where that is more than the arch's global memory.
    """
    parts = tuple(_parts(plan, intermediates))
    if not parts:
        return ()
    shown = ", ".join(map(str, parts))
    window = f"window {plan.rules.task_window}" if plan.rules.task_window else "no window"
    if any(part.count is None for part in parts):
        return (Finding(_CHECK, Verdict.NOT_PROVED, f"bytes: {shown}; {window}, and how many there are is known at run time"),)
    total = sum(part.size_bytes * (part.count or 0) for part in parts)
    limit = next((memory.usable_bytes for memory in arch.memories if memory.name == "GM"), None)
    if limit is None or total <= limit:
        return (Finding(_CHECK, Verdict.PROVED, f"at most {total} bytes: {shown}; {window}"),)
    if sum(part.size_bytes for part in parts) <= limit:       # an upper bound: they need not all be alive at once
        return (Finding(_CHECK, Verdict.NOT_PROVED, f"at most {total} bytes: {shown}; {window}; {arch.name} has {limit}"),)
    error = IntermediatesError(f"results between tasks take {total} bytes, more than {arch.name} has", parts[0].span,
                               expected=f"at most {limit} bytes of global memory", found=f"{shown} bytes",
                               help="make smaller tensors, or in a body what only its tasks use")
    return (Finding(_CHECK, Verdict.COUNTEREXAMPLE, f"{total} bytes: {shown}; {window}", error),)


def _parts(plan: TaskPlan, intermediates: frozenset[int]) -> Iterator[Part]:
    for slot in plan.tensors:
        if slot.ref.id in intermediates and not slot.fresh:
            yield Part(slot.ref, UNKNOWN, 1)

    def walk(item: Item, turns: int | None) -> Iterator[Part]:
        match item:
            case Fresh(number):
                alive = min((bound for bound in (turns, plan.rules.task_window or None) if bound is not None), default=None)
                yield Part(plan.tensors[number].ref, item.span, alive)
            case Loop(start=Const(start), stop=stop, step=Const(step), body=body):
                last = stop.value if isinstance(stop, Const) else None
                here = None if last is None else max(0, -(-(int(last) - int(start)) // int(step)))
                yield from walk(body, None if turns is None or here is None else turns * here)
            case _:
                inside = turns if isinstance(item, Sequence | Sides | Choice) else None      # else tokens say how often
                for inner in inner_items(item):
                    yield from walk(inner, inside)

    yield from walk(plan.body, 1)
