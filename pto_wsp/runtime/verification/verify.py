"""`verify_artifact`: run an artifact and the interpreter on copies of the same arrays, and compare what they leave.

>>> print(verify_artifact(engine, bindings, Tolerance()))
2 tensors of 8 tasks are as NumPy has them
X  f32[8, 64]  the same
Y  f32[8, 64]  worst error 4.8e-07 of 7.9e-05 allowed, at [3, 17]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pto_wsp.errors import DisagreementError, PtoError, raise_all
from pto_wsp.plan.model import TaskPlan
from pto_wsp.runtime.bound.binding import Bindings
from pto_wsp.runtime.failures.errors import task_name
from pto_wsp.runtime.interpreter.run import Interpreter
from pto_wsp.runtime.native.run import Engine
from pto_wsp.runtime.stream.orchestrator import TaskInstance
from pto_wsp.runtime.verification.copies import copied
from pto_wsp.runtime.verification.last_writer import last_writer
from pto_wsp.runtime.verification.tolerance import Difference, Tolerance, difference
from pto_wsp.source import Span
from pto_wsp.types.dtype import DType
from pto_wsp.values import dataclass
from pto_wsp.verify.bodies import missing_bodies

_EXACT = Tolerance(0.0, 0.0)     # of memory that no task writes


@dataclass(frozen=True, slots=True)
class VerifiedTensor:
    """A tensor that tasks write, as the artifact left it. `worst`: the index of the element that used most of what it was `allowed`, and
    by how much it was off, its `error`; None where every element is the same."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    worst: tuple[int, ...] | None
    error: float
    allowed: float

    def __str__(self) -> str:
        said = "the same" if self.worst is None else f"worst error {self.error:.2g} of {self.allowed:.2g} allowed, at {list(self.worst)}"
        return f"{self.name}  {self.dtype}{list(self.shape)}  {said}"


@dataclass(frozen=True, slots=True)
class Verification:
    """What was compared; it is there where everything was within its tolerance. Printed, a tensor a line."""

    n_tasks: int
    tensors: tuple[VerifiedTensor, ...]

    def __str__(self) -> str:
        n = len(self.tensors)
        head = f"{n} tensor{'s' * (n != 1)} of {self.n_tasks} task{'s' * (self.n_tasks != 1)} {'are' if n != 1 else 'is'} as NumPy has "
        return "\n".join((head + ("them" if n != 1 else "it"), *map(str, self.tensors)))

    __repr__ = __str__


def verify_artifact(engine: Engine, bindings: Bindings, tolerance: Tolerance, *, check_finite: bool) -> Verification:
    """Run both and compare every bound tensor; neither the arrays nor the engine's last run are touched.

    Raises: R108 for what differs; K108 for a kernel without a meaning in NumPy; what a run raises, where both end with an error.
    """
    plan = engine.plan
    raise_all(missing_bodies((use.kernel for use in plan.kernels), "interp"))
    expected, found = copied(bindings), copied(bindings)
    meaning, artifact = Interpreter(plan, check_finite=check_finite), engine.apart()
    meaning.look_first = engine.look_first
    _same_end(plan, _failure(lambda: meaning.run(expected)), _failure(lambda: artifact.run(found)))
    written = {group for slot, group in zip(plan.tensors, bindings.groups, strict=True) if slot.writes}
    compared = [difference(a, b, slot.ref.dtype, tolerance if group in written else _EXACT)
                for slot, group, a, b in zip(plan.tensors, bindings.groups, found.arrays, expected.arrays, strict=True)]
    tasks = meaning.tasks
    if any(one.n_wrong for one in compared):
        raise _disagreement(plan, found, expected, compared, tasks)
    return Verification(len(tasks), tuple(
        VerifiedTensor(slot.ref.shown, slot.ref.dtype, array.shape, one.worst, one.error, one.allowed)
        for slot, array, one in zip(plan.tensors, found.arrays, compared, strict=True) if slot.writes and not slot.fresh))


def _failure(run: Callable[[], None]) -> PtoError | None:
    try:
        run()
    except PtoError as problem:
        return problem
    return None


def _same_end(plan: TaskPlan, meaning: PtoError | None, artifact: PtoError | None) -> None:
    """Raise what both end with, or R108 where one alone ends with an error."""
    if meaning is not None and artifact is not None:
        raise meaning
    failed = meaning or artifact
    if failed is not None:
        one, other = ("NumPy", "the artifact") if meaning is not None else ("the artifact", "NumPy")
        raise DisagreementError(f"`{plan.name}` fails in {one} and comes to its end in {other}", others=(failed,),
                                expected=failed.message if meaning is not None else "no error",
                                found="no error" if meaning is not None else failed.message)


def _disagreement(plan: TaskPlan, found: Bindings, expected: Bindings, compared: Sequence[Difference],
                  tasks: Sequence[TaskInstance]) -> DisagreementError:
    """Return the error about the wrong tensor whose task comes first: what others hold may follow from it."""
    wrong: list[tuple[int, int]] = []
    for slot, one in enumerate(compared):
        if one.first is not None:
            writer = last_writer(plan, expected, tasks, slot, one.first)
            wrong.append((-1 if writer is None else writer, slot))
    wrong.sort()
    writer, slot = wrong[0]
    one, name = compared[slot], plan.tensors[slot].ref.shown
    at = one.first or ()
    notes = [f"{one.n_wrong} of {one.n_elements} elements of `{name}` are off" + _worst(one)]
    notes += [f"`{plan.tensors[other].ref.shown}` differs as well, in {compared[other].n_wrong} of {compared[other].n_elements} elements"
              for _, other in wrong[1:]]
    span, also, help = _cause(plan, tasks, writer)
    who = "no task writes it"
    if writer >= 0:
        who = f"task {writer} `{task_name(plan, tasks[writer].submit, tasks[writer].index)}` is the last to write it"
    return DisagreementError(f"`{name}[{', '.join(map(str, at))}]` is not what NumPy has: {who}", span, also=also, notes=notes, help=help,
                             expected=_shown(expected, slot, at) + (f", within {one.first_allowed:.2g}" if one.first_allowed else ""),
                             found=_shown(found, slot, at))


def _worst(one: Difference) -> str:
    return f", the worst by {one.error:.3g} at {list(one.worst)}" if one.worst is not None and np.isfinite(one.error) else ""


def _shown(bindings: Bindings, slot: int, at: tuple[int, ...]) -> str:
    return str(bindings.arrays[slot][at])


def _cause(plan: TaskPlan, tasks: Sequence[TaskInstance], writer: int) -> tuple[Span | None, tuple[tuple[str, Span], ...], str]:
    """Return where the task was made, its kernel's own C body, and what to look at."""
    if writer < 0:
        return None, (), "compile(sanitize=True) finds the task that leaves its regions"
    submit = tasks[writer].submit
    kernel = plan.kernels[submit.kernel].kernel
    if kernel.c_body is not None:
        return submit.span, (("its own C body", kernel.c_body.span),), f"{kernel.name}.run(...) computes one task with the Python body"
    return submit.span, (), "compile(sanitize=True) finds races and elements that nobody wrote, verify_passes=True a wrong pass"
