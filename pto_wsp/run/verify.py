"""Verify an artifact against the interpreter: run both on copies of the same arrays, and compare the results.

>>> print(verify_artifact(engine, bindings, Tolerance()))
2 tensors of 8 tasks are as NumPy has them
X  f32[8, 64]  the same
Y  f32[8, 64]  worst error 4.8e-07 of 7.9e-05 allowed, at [3, 17]

Tolerance: |found - expected| <= rtol * |expected| + atol. By default both are a number of units in the last place by dtype: `rtol` of the
element, `atol` of the tensor's largest element, because a sum that nearly cancels keeps the error of its terms. A value that occurs several
times and is right everywhere is a fill value (the -1e30 of a mask) and does not count as the largest. Integers and masks must be equal;
NaN equals NaN, an infinity equals itself, 0.0 equals -0.0.

If elements differ, the error names the last task in program order that writes the first wrong element.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from pto_wsp.check.forms import missing_bodies
from pto_wsp.errors import BindingError, DisagreementError, PtoError, raise_all
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.run.bound import Array, Bindings, byte_bounds, layout_of
from pto_wsp.run.failures import task_name
from pto_wsp.run.interpreter import Interpreter
from pto_wsp.run.native import Engine
from pto_wsp.run.orchestrator import PlacedView, TaskInstance
from pto_wsp.run.sanitize import MemoryBox, shared_addresses
from pto_wsp.source import Span, here
from pto_wsp.values import dataclass

_PAGE = 4096     # a copy has its original's offset in a page, so alignment effects are equal


# -- copies ------------------------------------------------------------------------------------------------------------
def copy_bindings(bindings: Bindings) -> Bindings:
    """Return equal bindings on new memory; overlapping arrays are copied together and overlap in the same way."""
    arrays = list(bindings.arrays)
    for group in set(bindings.groups):
        members = [k for k, own in enumerate(bindings.groups) if own == group and bindings.arrays[k].size]
        for k, copy in zip(members, _copied_together([bindings.arrays[k] for k in members]), strict=True):
            arrays[k] = copy
    return Bindings(tuple(arrays), bindings.symbols, bindings.groups, tuple(map(layout_of, arrays)))


def _copied_together(arrays: list[Array]) -> Iterable[Array]:
    if not arrays:
        return     # empty arrays, or allocated in bodies
    bounds = [byte_bounds(array) for array in arrays]
    low, high = min(first for first, _ in bounds), max(end for _, end in bounds)
    memory = np.empty(high - low + _PAGE, np.uint8)
    memory = memory[(low - int(memory.__array_interface__["data"][0])) % _PAGE:][:high - low]
    for array in arrays:
        offset = int(array.__array_interface__["data"][0]) - low
        copy: Array = np.ndarray(array.shape, array.dtype, memory, offset, array.strides)
        copy[...] = array
        copy.flags.writeable = array.flags.writeable
        yield copy


# -- writers -----------------------------------------------------------------------------------------------------------
def last_writer(plan: TaskPlan, bindings: Bindings, tasks: Sequence[TaskInstance], slot: int, index: tuple[int, ...]) -> int | None:
    """Return the number of the last task whose written regions contain an element, under any alias; None if there is none."""
    array = bindings.arrays[slot]
    element = MemoryBox(_address(array) + int(np.dot(index, array.strides)), (1, 1), (1, 1), array.itemsize)
    writes = [[k for k, param in enumerate(use.kernel.memory_params) if param.role.writes] for use in plan.kernels]
    for number in range(len(tasks) - 1, -1, -1):
        task = tasks[number]
        for view in (task.views[k] for k in writes[task.submit.kernel]):
            if view.fresh is None and bindings.groups[view.slot] == bindings.groups[slot]:
                region = _region(bindings.arrays[view.slot], view)
                if _may_hold(region, element.address) and shared_addresses(region, element).size:
                    return number
    return None


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _region(array: Array, view: PlacedView) -> MemoryBox:
    return MemoryBox(_address(array) + view.offset * array.itemsize, view.extent, view.stride, array.itemsize)


def _may_hold(region: MemoryBox, address: int) -> bool:
    """Tell whether an address is between a region's first and last byte."""
    if 0 in region.extent:
        return False
    reach = [(extent - 1) * stride * region.elem_bytes for extent, stride in zip(region.extent, region.stride, strict=True)]
    return sum(min(0, r) for r in reach) <= address - region.address < sum(max(0, r) for r in reach) + region.elem_bytes


# -- tolerances --------------------------------------------------------------------------------------------------------
# Units in the last place. Results differ in the order of additions, in products rounded once (FMA) or twice, and in functions: 8 ulp
# here (`ulp` in the op table), 4 in NumPy. Long sums and chains of tasks accumulate these errors, roughly by the root of their length.
# A half is computed in f32 and rounded when stored: ties that round the other way, over some tasks.
ULPS: Mapping[DType, int] = {dtype: 4 if dtype.is_half else 64 for dtype in DType if dtype.is_float}
_STORED_ULPS = 1     # fp8 is only stored: one such tie


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The allowed error: `rtol` relative to the element, `atol` absolute. None: by dtype."""

    rtol: float | None = None
    atol: float | None = None


def read_tolerance(rtol: object, atol: object) -> Tolerance:
    """Return the tolerance that a user gives.

    Raises: R102 for a value that is not a number >= 0.
    """
    for name, value in (("rtol", rtol), ("atol", atol)):
        is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if value is not None and not (is_number and 0 <= value < math.inf):  # type: ignore[operator]
            raise BindingError(f"verify() takes a number as {name}", here(), expected="a number >= 0, or None: by dtype", found=repr(value))
    return Tolerance(*(None if value is None else float(value) for value in (rtol, atol)))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two arrays.

    `worst`: the element that uses most of its allowance, with its `error` and `allowed`; None if all are equal.
    `first`: the first of `n_wrong` elements beyond their allowance; None if there are none.
    """

    n_elements: int
    n_wrong: int = 0
    first: tuple[int, ...] | None = None
    first_allowed: float = 0.0
    worst: tuple[int, ...] | None = None
    error: float = 0.0
    allowed: float = 0.0


def difference(found: Array, expected: Array, dtype: DType, tolerance: Tolerance) -> Difference:
    """Compare two arrays of equal shape and dtype."""
    with np.errstate(all="ignore"):
        at = np.argwhere((found != expected) & ~(np.not_equal(found, found) & np.not_equal(expected, expected)))     # two NaNs are equal
        if not len(at):
            return Difference(found.size)
        places = tuple(at.T)
        got, want = found[places].astype(np.float64), expected[places].astype(np.float64)
        error = np.where(np.isnan(got - want), np.inf, np.abs(got - want))
        allowed = _allowed(want, found, expected, dtype, tolerance)
        wrong = np.flatnonzero(~(error <= allowed)) if dtype.is_real else np.arange(len(at))
        share = np.where(allowed > 0, error / allowed, np.inf)
        worst = int(np.argmax(np.where(share == share.max(), error, -1.0)))
    first = int(wrong[0]) if len(wrong) else None
    return Difference(found.size, len(wrong), None if first is None else _index(at[first]), 0.0 if first is None else float(allowed[first]),
                      _index(at[worst]), float(error[worst]), float(allowed[worst]))


def _allowed(want: Array, found: Array, expected: Array, dtype: DType, tolerance: Tolerance) -> Array:
    """Return the allowance of each of the elements `want` of `expected`; 0 for integers, NaN and infinities."""
    if not dtype.is_real:
        return np.zeros(len(want))
    limits: np.finfo[Any] = ml_dtypes.finfo(dtype.np)  # type: ignore[no-untyped-call]
    unit = ULPS.get(dtype, _STORED_ULPS) * float(limits.eps)
    rtol = unit if tolerance.rtol is None else tolerance.rtol
    atol = tolerance.atol
    if atol is None:
        atol = max(unit * _largest(found, expected), float(limits.smallest_subnormal))
    return np.where(np.isfinite(want), rtol * np.abs(want) + atol, 0.0)


def _largest(found: Array, expected: Array) -> float:
    """Return the largest finite number of a tensor that is not a fill value."""
    values, at, counts = np.unique(np.abs(expected.astype(np.float64)), return_inverse=True, return_counts=True)
    is_right = np.bincount(at.ravel(), (found == expected).ravel(), len(values)) == counts
    left = values[np.isfinite(values) & ~(is_right & (counts > 1))]
    return float(left.max()) if len(left) else 0.0


def _index(row: Array) -> tuple[int, ...]:
    return tuple(int(k) for k in row)


# -- the comparison ----------------------------------------------------------------------------------------------------
_EXACT = Tolerance(0.0, 0.0)     # for memory that no task writes


@dataclass(frozen=True, slots=True)
class VerifiedTensor:
    """A tensor that tasks write, as the artifact left it.

    `worst`: the index of the element that used most of its allowance, with its `error` and `allowed`; None if every element is equal.
    """

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
    """A successful comparison; prints one tensor per line."""

    n_tasks: int
    tensors: tuple[VerifiedTensor, ...]

    def __str__(self) -> str:
        n = len(self.tensors)
        head = f"{n} tensor{'s' * (n != 1)} of {self.n_tasks} task{'s' * (self.n_tasks != 1)} {'are' if n != 1 else 'is'} as NumPy has "
        return "\n".join((head + ("them" if n != 1 else "it"), *map(str, self.tensors)))

    __repr__ = __str__


def verify_artifact(engine: Engine, bindings: Bindings, tolerance: Tolerance, *, check_finite: bool) -> Verification:
    """Run the artifact and the interpreter, and compare every bound tensor; the user's arrays and the engine's last run stay untouched.

    Raises: R108 for a difference; K108 for a kernel without a Python body; the error of the run, if both end with one.
    """
    plan = engine.plan
    raise_all(missing_bodies((use.kernel for use in plan.kernels), "interp"))
    expected, found = copy_bindings(bindings), copy_bindings(bindings)
    oracle: Interpreter = (engine.oracle or (lambda finite: Interpreter(plan, check_finite=finite)))(check_finite)
    artifact = engine.apart()
    oracle.look_first = engine.look_first
    _same_end(plan, _failure(lambda: oracle.run(expected)), _failure(lambda: artifact.run(found)))
    written = {group for slot, group in zip(plan.tensors, bindings.groups, strict=True) if slot.writes}
    compared = [difference(a, b, slot.ref.dtype, tolerance if group in written else _EXACT)
                for slot, group, a, b in zip(plan.tensors, bindings.groups, found.arrays, expected.arrays, strict=True)]
    tasks = oracle.tasks
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
    """Raise the error that both runs end with, or R108 if only one ends with an error."""
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
    """Return the error for the wrong tensor whose writing task comes first; other differences may follow from that one."""
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
    """Return the task's line, the lines of its kernel's C body, and advice."""
    if writer < 0:
        return None, (), "compile(sanitize=True) finds the task that leaves its regions"
    submit = tasks[writer].submit
    kernel = plan.kernels[submit.kernel].kernel
    if kernel.c_body is not None:
        return submit.span, (("its own C body", kernel.c_body.span),), f"{kernel.name}.run(...) computes one task with the Python body"
    return submit.span, (), "compile(sanitize=True) finds races and elements that nobody wrote, verify_passes=True a wrong pass"
