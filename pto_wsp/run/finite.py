"""Find and report faults of `check_finite`: elements that are NaN or infinite without a source that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pto_wsp.errors import NotFiniteError, PtoError
from pto_wsp.ir import kernel as k
from pto_wsp.ir.kernel import Reach
from pto_wsp.ir.plan import KernelUse, Submit, TaskPlan
from pto_wsp.ir.plan_walk import submits
from pto_wsp.ops.guards import guards_of
from pto_wsp.ops.rounding import Array
from pto_wsp.ops.whole import IndexFault
from pto_wsp.passes.kernel.check_finite import CHECKED_PASSES, FIRST_CHECK, checks_of
from pto_wsp.passes.kernel.context import context_of
from pto_wsp.passes.kernel.passes import run_kernel_passes
from pto_wsp.run.failures import Failure, PieceFault, task_error, task_name
from pto_wsp.run.record import RecordColumns
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """An element that is not finite, and the source elements of its elementwise operands."""

    row: int
    col: int
    value: float
    made_from: tuple[float, ...]


class FaultFound(Exception):
    """Ends a run of a kernel at a failed check."""

    def __init__(self, number: int, fault: Fault) -> None:
        super().__init__(number)
        self.number = number
        self.fault = fault


def checked_kernel(use: KernelUse) -> k.Kernel:
    """Return the kernel of a plan after its passes, with checks."""
    return run_kernel_passes(use.kernel, context_of(use), CHECKED_PASSES)


def check_value(number: int, value: Array, sources: Sequence[tuple[Array, Reach, bool]], kept: tuple[int, int]) -> None:
    """Raise FaultFound at the first element of the kept rows and columns, row by row, that no source explains.

    `sources`: (array, reach, whether it is a constant or scalar).
    """
    numbers = value.astype(np.float64)
    if np.isfinite(numbers[:kept[0], :kept[1]]).all():
        return
    nan_explained, inf_explained = np.zeros((2, *value.shape), bool)
    wide = [(array.astype(np.float64), reach, is_constant) for array, reach, is_constant in sources]
    for array, reach, is_constant in wide:
        nan_explained |= _reached(np.zeros(array.shape, bool) if is_constant else np.isnan(array), reach)
        inf_explained |= _reached(np.isinf(array) if is_constant else ~np.isfinite(array), reach)
    faults = np.argwhere(((np.isnan(numbers) & ~nan_explained) | (np.isinf(numbers) & ~inf_explained))[:kept[0], :kept[1]])
    if len(faults):
        row, col = (int(at) for at in faults[0])
        made_from = tuple(float(np.broadcast_to(array, value.shape)[row, col]) for array, reach, _ in wide[:2]
                          if reach is Reach.ELEMENT)
        raise FaultFound(number, Fault(row, col, float(numbers[row, col]), made_from))


def _reached(odd: Array, reach: Reach) -> Array:
    match reach:
        case Reach.ELEMENT:
            return odd
        case Reach.ROW:
            return np.asarray(odd.any(axis=1, keepdims=True))
        case Reach.COLUMN:
            return np.asarray(odd.any(axis=0, keepdims=True))
        case Reach.TURNED_ROW:
            return np.asarray(odd.any(axis=0, keepdims=True)).T
        case Reach.TURNED_COLUMN:
            return np.asarray(odd.any(axis=1, keepdims=True)).T
        case Reach.ALL:
            return np.asarray(odd.any(keepdims=True))


def native_error(plan: TaskPlan, columns: RecordColumns, result: Any) -> PtoError:
    """Return the error for a pto_execute_result with a failed task: a guard, a C body, or a check of floats."""
    position = result.failed_task - columns.first_task
    task = submits(plan)[int(columns.task_site[position])]
    kernel, fault = plan.kernels[task.kernel].kernel, result.fault
    if kernel.c_body is not None:
        return task_error(plan, columns, result.failed_task, Failure(result.failed_guard))
    if result.failed_guard < FIRST_CHECK:
        index_fault = (IndexFault(fault.row, fault.col, fault.value, fault.upper + 1)
                       if isinstance(guards_of(kernel)[result.failed_guard].stmt, k.Compute | k.Gather | k.Scatter)
                       else PieceFault(fault.row, fault.col, fault.lower, fault.upper))
        return task_error(plan, columns, result.failed_task, Failure(result.failed_guard, index_fault))
    check = checks_of(checked_kernel(plan.kernels[task.kernel]))[result.failed_guard]
    from_elements = [_double(bits) for source, bits in zip(check.sources, (fault.lower, fault.upper), strict=False)
                     if source.reach is Reach.ELEMENT]
    return finite_error(plan, task, columns.index_of(position), result.failed_guard,
                        Fault(fault.row, fault.col, _double(fault.value), tuple(from_elements)))


def _double(bits: int) -> float:
    return float(np.int64(bits).view(np.float64))


def finite_error(plan: TaskPlan, task: Submit, index: Sequence[int], number: int, fault: Fault) -> NotFiniteError:
    """Return the error for a failed check of a task."""
    check = checks_of(checked_kernel(plan.kernels[task.kernel]))[number]
    loaded = check.what.startswith("load ")
    value_text = f"{fault.value:g}"
    if fault.made_from and not loaded:
        value_text += f", from {' and '.join(f'{value:g}' for value in fault.made_from)}"
    verb = "brought" if loaded else "gave"
    return NotFiniteError(
        f"task {task_name(plan, task, index)}: `{check.what}` {verb} {fault.value:g} at row {fault.row}, column {fault.col}", check.span,
        expected="no NaN in what is loaded" if loaded else "a finite number, from numbers that are",
        found=value_text, help=None if loaded else "print what it was made from: pto.print(\"x\", x), in a @jit tt.print(\"x\", x)",
        notes=(f"the task was made at {task.span}",))
