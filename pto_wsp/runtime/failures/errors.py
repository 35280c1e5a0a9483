"""Turn what failed in a run into the user's error: which task, which line, which numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from pto_wsp.errors import CalendarError, OverlappingOutputsError, PtoError, RunBoundsError, TaskFailedError
from pto_wsp.expr.kernel_walk import guards_of
from pto_wsp.plan.model import CheckKind, Submit, TaskPlan
from pto_wsp.plan.numbering import NumberedCheck, numbered_checks
from pto_wsp.plan.outputs import outputs_clash
from pto_wsp.plan.schedule.keys import SCHEDULE_CHECKS, schedule_error
from pto_wsp.plan.walk import submits
from pto_wsp.runtime.failures.guard_text import Failure, describe
from pto_wsp.runtime.record.columns import RecordColumns
from pto_wsp.source import Span, argument_span
from pto_wsp.types.scalar import Const, Scalar, Var, is_unsigned
from pto_wsp.types.scalar_text import print_scalar
from pto_wsp.types.view import print_view
from pto_wsp.wording import counted


def task_name(plan: TaskPlan, task: Submit, index: Sequence[int]) -> str:
    """Return a task as people read it: `attn[b=1, t=0]`, or `attn` without indices; those that are plain numbers stay so."""
    parts = [str(value) if label.lstrip("-").isdigit() else f"{label}={value}"
             for label, value in zip(task.labels, index, strict=False)]
    name = plan.kernels[task.kernel].kernel.name
    return f"{name}[{', '.join(parts)}]" if parts else name


class TaskNames(Sequence[str]):
    """The names of a record's tasks, each made when it is asked for: a record may hold a million."""

    def __init__(self, plan: TaskPlan, columns: RecordColumns) -> None:
        self._plan, self._columns, self._sites = plan, columns, submits(plan)

    def __len__(self) -> int:
        return self._columns.n_tasks

    def of_kernel(self, name: str) -> list[int]:
        """Return the tasks of the kernels of a name."""
        kernels = [number for number, use in enumerate(self._plan.kernels) if use.kernel.name == name]
        found: list[int] = np.flatnonzero(np.isin(self._columns.task_kernel, kernels)).tolist()
        return found

    def index_of(self, task: int) -> tuple[int, ...]:
        """Return the indices of a task."""
        return self._columns.index_of(task)

    def span_of(self, task: int) -> Span:
        """Return where the workload makes a task."""
        return self._sites[int(self._columns.task_site[task])].span

    @overload
    def __getitem__(self, task: int) -> str: ...

    @overload
    def __getitem__(self, task: slice) -> Sequence[str]: ...

    def __getitem__(self, task: int | slice) -> str | Sequence[str]:
        if isinstance(task, slice):
            return [self[k] for k in range(*task.indices(len(self)))]
        if not 0 <= task < len(self):
            raise IndexError(task)
        return task_name(self._plan, self._sites[int(self._columns.task_site[task])], self._columns.index_of(task))


def bounds_error(plan: TaskPlan, ffi: Any, guard: Any, n_run: int) -> PtoError:
    """Return the error for the orchestrator's check that failed after `n_run` tasks had run."""
    if guard == ffi.NULL:
        return RunBoundsError("a check failed")
    numbered = numbered_checks(plan)[guard.guard]
    return describe_check(numbered, guard.found, guard.lower, guard.upper, [guard.index[k] for k in range(guard.n_index)],
                          n_run)


def describe_check(numbered: NumberedCheck, found: int, lower: int, upper: int, loops: Sequence[int], n_run: int) -> PtoError:
    """Return the error for a check that did not hold: what, where, in which iteration, and whether tasks had run before."""
    check = numbered.check
    where = ", ".join(f"{var.name} = {value}" for var, value in zip(numbered.loops, loops, strict=False))
    notes = (*((f"in the iteration {where}",) if where else ()),
             *((_ran_before(n_run),) if n_run else ()))
    allowed = f"{lower} .. {upper}" if lower != upper else str(lower)
    if check.kind in SCHEDULE_CHECKS:
        return schedule_error(check, found, upper, notes, shown_value(check.value, found))
    if check.kind is CheckKind.CALENDAR:
        return CalendarError(f"the calendar has {counted(upper + 1, 'row')}, and the run has more tasks", check.span,
                             expected="a row for each task, in submission order", found=f"task {found}", notes=notes)
    if check.kind is CheckKind.EXTENT:
        allowed = ">= 0"
    elif upper < lower:
        allowed = "nothing: it is empty"
    advice = {
        CheckKind.INDEX: "bind tensors that are large enough, or bound the loop",
        CheckKind.TILE: "bind tensors with the extents declared, or use .clip(...) for a block that may be short",
        CheckKind.ELEMENT: "bind a tensor with an entry for every iteration",
        CheckKind.EXTENT: "lengths are >= 0",
        CheckKind.RESHAPE: "bind an array with the extents and strides declared, or copy it",
    }[check.kind]
    return RunBoundsError(f"{check.kind.value}: `{check.subject}`", argument_span(check.span, check.param), expected=allowed,
                          found=shown_value(check.value, found), help=advice, notes=notes)


def _ran_before(n_run: int) -> str:
    return f"{counted(n_run, 'task')} made before it had run, and what {'they' if n_run > 1 else 'it'} wrote stays"


def shown_value(value: Scalar, found: int) -> str:
    """Return the number found, with the expression that gave it unless that is a plain variable or number; `found` is signed."""
    found = found % (1 << 64) if is_unsigned(value) else found
    return str(found) if isinstance(value, Const | Var) else f"{print_scalar(value)} = {found}"


def task_error(plan: TaskPlan, columns: RecordColumns, failed_task: int, failure: Failure) -> TaskFailedError:
    """Return the error for a task that failed: in a guard of its kernel, or by the word of the kernel's own body."""
    position = failed_task - columns.first_task
    task = submits(plan)[int(columns.task_site[position])]
    own = plan.kernels[task.kernel].kernel.c_body
    if own is not None:
        return TaskFailedError(f"task {task_name(plan, task, columns.index_of(position))} failed: its own C body returned "
                               f"{failure.guard + 1}", own.span, expected="return 0", notes=(f"the task was made at {task.span}",))
    return kernel_guard_error(plan, task, columns.index_of(position), failure)


def kernel_guard_error(plan: TaskPlan, task: Submit, index: Sequence[int], failure: Failure) -> TaskFailedError:
    """Return the error for a guard of the kernel of a task."""
    guard = guards_of(plan.kernels[task.kernel].kernel)[failure.guard]
    said = describe(guard, failure.fault)
    return TaskFailedError(f"task {task_name(plan, task, index)} failed: {said.what}", guard.span, expected=said.expected, found=said.found,
                           notes=(f"the task was made at {task.span}",))


def outputs_error(plan: TaskPlan, task: Submit, index: Sequence[int], first: int, second: int) -> OverlappingOutputsError:
    """Return the error for a task of which two arguments, by number, are written and share elements."""
    names = [plan.kernels[task.kernel].kernel.memory_params[arg].name for arg in (first, second)]
    places = [task.places[arg] for arg in (first, second)]
    what = f"elements of `{plan.tensors[places[0].slot].ref.shown}`" if places[0].slot == places[1].slot else \
        f"memory of `{plan.tensors[places[0].slot].ref.shown}` and `{plan.tensors[places[1].slot].ref.shown}`"
    return outputs_clash(f"task {task_name(plan, task, index)}", task.span, (names[0], names[1]),
                         (print_view(places[0].view), print_view(places[1].view)), what)


def clash_error(plan: TaskPlan, clash: Any) -> OverlappingOutputsError:
    """Return the error for a pto_clash."""
    task = next(task for task in submits(plan) if task.site == clash.site)
    return outputs_error(plan, task, tuple(clash.index)[:clash.n_index], clash.first_arg, clash.second_arg)


def replay_text(seed: int) -> str:
    """Return how a run in an order of its own is repeated."""
    return f"program.replay({seed:#x})"


def with_seed(error: PtoError, seed: int) -> PtoError:
    """Return the error with the seed of the run that it ended."""
    error.notes += (f"seed {seed:#x}: {replay_text(seed)} repeats the order of this run",)
    return error
