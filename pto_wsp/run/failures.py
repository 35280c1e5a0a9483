"""Render failures of a run as the user's errors: which task, which line, which numbers.

Sources of failures are guards of kernels, checks of the orchestrator, C bodies, overlapping outputs, the simulator (a window without room,
cycles beyond 64 bits), and pipelines that are stuck. Both executors use the same functions, so their texts agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np

from pto_wsp.check.deadlock import advice, stuck_error
from pto_wsp.check.skeleton import Budget, Leaf, Number, Outcome, Skeletons, Uncountable
from pto_wsp.errors import CalendarError, CyclesError, OverlappingOutputsError, PtoError, RunBoundsError, TaskFailedError, WindowError
from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir.channels import Stuck
from pto_wsp.ir.execution_rules import FullWindow, WindowUnit
from pto_wsp.ir.flow import Pipeline, walk
from pto_wsp.ir.plan import CheckKind, PlanPipeline, Submit, TaskPlan, outputs_clash
from pto_wsp.ir.plan_walk import NumberedCheck, numbered_checks, submits
from pto_wsp.ir.scalar import Const, Scalar, Var, is_unsigned, print_scalar
from pto_wsp.ir.view import print_view
from pto_wsp.ir.waits import has_waits
from pto_wsp.ops.guards import Guard, guards_of
from pto_wsp.ops.whole import IndexFault
from pto_wsp.passes.schedule_keys import SCHEDULE_CHECKS, schedule_error
from pto_wsp.run.bound import Bindings
from pto_wsp.run.record import RecordColumns
from pto_wsp.source import Span, argument_span
from pto_wsp.values import dataclass
from pto_wsp.wording import counted


# -- guards of kernels -------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class PieceFault:
    """The start of a piece outside its region, and the last row and column at which it may start."""

    row: int
    col: int
    last_row: int
    last_col: int


@dataclass(frozen=True, slots=True)
class Failure:
    """The number of a failed guard, and the index or piece outside its range."""

    guard: int
    fault: IndexFault | PieceFault | None = None


@dataclass(frozen=True, slots=True)
class ErrorParts:
    """The parts of a user's error: what failed, what was expected, what was found."""

    what: str
    expected: str
    found: str | None


def describe(guard: Guard, fault: IndexFault | PieceFault | None) -> ErrorParts:
    """Return what a failed guard means to the user."""
    index = fault if isinstance(fault, IndexFault) else None
    match guard.stmt:
        case k.Load() | k.Store():
            return _piece(f"{guard.what} lies outside the region that is bound", fault if isinstance(fault, PieceFault) else None)
        case k.Item():
            return _element(f"{guard.what} lies outside the tile", fault if isinstance(fault, PieceFault) else None)
        case k.WritePart():
            return _element(f"{guard.what} leaves the buffer", fault if isinstance(fault, PieceFault) else None)
        case k.Compute():
            return _outside(guard, index)
        case k.Gather() | k.Scatter() if index is not None and index.row < 0:
            columns = f"columns {index.col} .. {index.col + index.value - 1}"
            return ErrorParts(f"{guard.what}: columns outside the region that is bound", f"columns inside 0 .. {index.extent - 1}", columns)
        case k.Gather() | k.Scatter():
            return _outside(guard, index)


def _outside(guard: Guard, index: IndexFault | None) -> ErrorParts:
    if index is not None and guard.counts and index.col == 0 and -index.extent <= index.value < 0 and "gather" not in guard.span.text:
        return ErrorParts("elements are missing", "for an extreme, at least one element along the axis; for a topk, k",
                          f"{-index.value} too few")
    allowed = "an index inside" if index is None else f"0 .. {index.extent - 1}" if index.extent else "none: nothing is there"
    index_text = None if index is None else f"{index.value}, at row {index.row} and column {index.col} of the index"
    return ErrorParts(f"{guard.what}: an index lies outside", allowed, index_text)


def _element(what: str, fault: PieceFault | None) -> ErrorParts:
    if fault is None:
        return ErrorParts(what, "a row and a column inside", None)
    return ErrorParts(what, f"row 0 .. {fault.last_row}, column 0 .. {fault.last_col}", f"row {fault.row}, column {fault.col}")


def _piece(what: str, fault: PieceFault | None) -> ErrorParts:
    if fault is None:
        return ErrorParts(what, "rows and columns inside the view, or valid=... for a piece that may be short", None)
    limits = [f"{name} 0 .. {last}" if last >= 0 else f"{-last} fewer {name}s"
              for name, last in (("row", fault.last_row), ("column", fault.last_col))]
    return ErrorParts(what, f"a piece at {limits[0]}, {limits[1]}, or valid=... for one that may be short",
                     f"row {fault.row}, column {fault.col}")


# -- names of tasks ----------------------------------------------------------------------------------------------------
def task_name(plan: TaskPlan, task: Submit, index: Sequence[int]) -> str:
    """Return a task's name for users: `attn[b=1, t=0]`, or `attn` without indices, and the user's label: `attn[b=1, t=0] (layer 3)`.

    A constant index is shown without a name.
    """
    return _name_pattern(plan, task, len(index)) % tuple(index[:len(task.labels)])


def plain_name(plan: TaskPlan, task: Submit, index: Sequence[int]) -> str:
    """Return a task's name for users without the label."""
    return _name_pattern(plan, task, len(index), with_label=False) % tuple(index[:len(task.labels)])


def _name_pattern(plan: TaskPlan, task: Submit, n_indices: int, *, with_label: bool = True) -> str:
    """Return the name of a call's tasks with `%d` for each index."""
    parts = ["%d" if label.lstrip("-").isdigit() else f"{_literal(label)}=%d" for label in task.labels[:n_indices]]
    name = _literal(plan.kernels[task.kernel].kernel.name)
    label = f" ({_literal(task.label)})" if task.label and with_label else ""
    return (f"{name}[{', '.join(parts)}]" if parts else name) + label


def _literal(text: str) -> str:
    return text.replace("%", "%%")


def index_name(place: int, label: str) -> str:
    """Return the name of the column of an index: its label, for a constant its place."""
    return f"index_{place}" if label.lstrip("-").isdigit() else label


_MOST_NAMED = 20     # names that the text of a record's names has


class RecordNames(Sequence[str]):
    """The names of a record's tasks, made on demand: a record may have a million."""

    def __init__(self, plan: TaskPlan, columns: RecordColumns) -> None:
        self._plan, self._columns, self._sites = plan, columns, submits(plan)

    def __repr__(self) -> str:
        shown = [self[task] for task in range(min(len(self), _MOST_NAMED))]
        more = len(self) - len(shown)
        return f"({', '.join(map(repr, shown))}{f', … {more:,} more' if more else ',' * (len(shown) == 1)})"

    def __len__(self) -> int:
        return self._columns.n_tasks

    @property
    def sites(self) -> tuple[Submit, ...]:
        """The calls of the workload that make tasks."""
        return self._sites

    def kernel_of(self, site: int) -> str:
        """Return the name of the kernel of a call."""
        return self._plan.kernels[self._sites[site].kernel].kernel.name

    def kernels(self) -> list[str]:
        """Return the kernel's name of each task."""
        names = [use.kernel.name for use in self._plan.kernels]
        return [names[kernel] for kernel in self._columns.task_kernel.tolist()]

    def of_kernel(self, name: str) -> list[int]:
        """Return the tasks of all kernels with this name."""
        kernels = [number for number, use in enumerate(self._plan.kernels) if use.kernel.name == name]
        tasks: list[int] = np.flatnonzero(np.isin(self._columns.task_kernel, kernels)).tolist()
        return tasks

    def of_label(self, label: str) -> list[int]:
        """Return the tasks with this label."""
        sites = [number for number, submit in enumerate(self._sites) if submit.label == label]
        tasks: list[int] = np.flatnonzero(np.isin(self._columns.task_site, sites)).tolist() if label and sites else []
        return tasks

    def plain(self, task: int) -> str:
        """Return the name of a task without its label."""
        return plain_name(self._plan, self._sites[int(self._columns.task_site[task])], self._columns.index_of(task))

    def index_of(self, task: int) -> tuple[int, ...]:
        """Return the indices of a task."""
        return self._columns.index_of(task)

    def span_of(self, task: int) -> Span:
        """Return the workload's line that makes a task."""
        return self._sites[int(self._columns.task_site[task])].span

    def __iter__(self) -> Iterator[str]:
        """Yield all names; those of one call are made together."""
        names = np.empty(len(self), object)
        for task, at, columns in self.by_site():
            named = columns[:len(task.labels)]
            rows = zip(*(column.tolist() for column in named), strict=True) if named else ((),) * len(at)
            pattern = _name_pattern(self._plan, task, len(columns))
            names[at] = [pattern % row for row in rows]
        yield from names.tolist()

    def index_columns(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return the tasks' indices by name, and `label` if a task has one.

        A column is int64, or float64 with NaN where tasks have no such index. A constant index is named by its place: `index_0`.
        """
        found: dict[str, np.ndarray[Any, Any]] = {}
        has: dict[str, np.ndarray[Any, Any]] = {}
        for task, at, columns in self.by_site():
            if task.label:
                found.setdefault("label", np.full(len(self), "", object))[at] = task.label
            for place, (name, column) in enumerate(zip(task.labels, columns, strict=False)):
                known = index_name(place, name)
                found.setdefault(known, np.zeros(len(self), np.int64))[at] = column
                has.setdefault(known, np.zeros(len(self), np.bool_))[at] = True
        return {name: np.where(has[name], column, np.nan) if name in has and not has[name].all() else column
                for name, column in found.items()}

    def site_numbers(self) -> np.ndarray[Any, Any]:
        """Return the number of each task's call in `sites`."""
        return self._columns.task_site

    def indices_of(self, site: int, at: np.ndarray[Any, Any]) -> tuple[tuple[str, ...], np.ndarray[Any, Any]]:
        """Return the names of the bracket indices of a call, and the indices of its tasks `at`: [tasks, indices]."""
        columns, labels = self._columns, self._sites[site].labels
        begin = columns.index_begin[at]
        n_indices = min(len(labels), int(columns.index_begin[at[0] + 1] - begin[0])) if len(at) else 0
        index = np.stack([columns.index[begin + k] for k in range(n_indices)], 1) if n_indices else np.zeros((len(at), 0))
        return tuple(labels[:n_indices]), index.astype(np.int64)

    def by_site(self) -> Iterator[tuple[Submit, np.ndarray[Any, Any], tuple[np.ndarray[Any, Any], ...]]]:
        """Yield each call of the workload that made tasks: the call, its tasks, and a column for each bracket index."""
        columns = self._columns
        order = np.argsort(columns.task_site, kind="stable")
        sites, first = np.unique(columns.task_site[order], return_index=True)
        for site, at in zip(sites.tolist(), np.split(order, first[1:]), strict=False):
            begin = columns.index_begin[at]
            n_indices = int(columns.index_begin[at[0] + 1] - begin[0])
            yield self._sites[site], at, tuple(columns.index[begin + k] for k in range(n_indices))

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


# -- checks and tasks --------------------------------------------------------------------------------------------------
def bounds_error(plan: TaskPlan, ffi: Any, guard: Any, n_run: int) -> PtoError:
    """Return the error for the orchestrator's failed check. `n_run`: the number of tasks that had run."""
    if guard == ffi.NULL:
        return RunBoundsError("a check failed")
    numbered = numbered_checks(plan)[guard.guard]
    return describe_check(numbered, guard.found, guard.lower, guard.upper, [guard.index[k] for k in range(guard.n_index)],
                          n_run)


def describe_check(numbered: NumberedCheck, found: int, lower: int, upper: int, loops: Sequence[int], n_run: int) -> PtoError:
    """Return the error for a failed check: the condition, the line, the iteration, and whether tasks had run before."""
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
    if check.kind is CheckKind.ROWS:
        return RunBoundsError(check.subject, check.span, expected=f"at most {upper}", found=f"{found}", notes=notes,
                              help="rows of counts are the ranks that send, columns the ranks that receive, at most capacity= rows")
    if check.kind is CheckKind.EXTENT:
        allowed = ">= 0"
    elif upper < lower:
        allowed = "nothing: it is empty"
    advice = {
        CheckKind.INDEX: "bind tensors that are large enough, or bound the loop",
        CheckKind.TILE: "bind tensors with the extents declared, or use .clip(...) for a block that may be short",
        CheckKind.ELEMENT: "bind a tensor with an entry for every iteration",
        CheckKind.EXTENT: "lengths are >= 0",
        CheckKind.SIZE: "maximum(0, n) makes none where n is negative",
        CheckKind.RANK: "write (r + 1) % n for the next rank of a ring",
        CheckKind.RESHAPE: "bind an array with the extents and strides declared, or copy it",
    }[check.kind]
    return RunBoundsError(f"{check.kind.value}: `{check.subject}`", argument_span(check.span, check.param), expected=allowed,
                          found=shown_value(check.value, found), help=advice, notes=notes)


def _ran_before(n_run: int) -> str:
    return f"{counted(n_run, 'task')} made before it had run, and what {'they' if n_run > 1 else 'it'} wrote stays"


def shown_value(value: Scalar, found: int) -> str:
    """Return the value as text, with its expression unless that is a variable or constant. `found`: the signed 64-bit value."""
    found = found % (1 << 64) if is_unsigned(value) else found
    return str(found) if isinstance(value, Const | Var) else f"{print_scalar(value)} = {found}"


def task_error(plan: TaskPlan, columns: RecordColumns, failed_task: int, failure: Failure) -> TaskFailedError:
    """Return the error for a failed task: a guard of its kernel, or the return code of its C body."""
    position = failed_task - columns.first_task
    task = submits(plan)[int(columns.task_site[position])]
    own = plan.kernels[task.kernel].kernel.c_body
    if own is not None:
        return TaskFailedError(f"task {task_name(plan, task, columns.index_of(position))} failed: its own C body returned "
                               f"{failure.guard + 1}", own.span, expected="return 0", notes=(f"the task was made at {task.span}",))
    return kernel_guard_error(plan, task, columns.index_of(position), failure)


def kernel_guard_error(plan: TaskPlan, task: Submit, index: Sequence[int], failure: Failure) -> TaskFailedError:
    """Return the error for a failed guard of a task's kernel."""
    guard = guards_of(plan.kernels[task.kernel].kernel)[failure.guard]
    said = describe(guard, failure.fault)
    return TaskFailedError(f"task {task_name(plan, task, index)} failed: {said.what}", guard.span, expected=said.expected, found=said.found,
                           notes=(f"the task was made at {task.span}",))


def outputs_error(plan: TaskPlan, task: Submit, index: Sequence[int], first: int, second: int) -> OverlappingOutputsError:
    """Return the error for a task with two written arguments (given by number) that share elements."""
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
    """Return the call that repeats a run with this seed."""
    return f"program.replay({seed:#x})"


def with_seed(error: PtoError, seed: int) -> PtoError:
    """Add the run's seed to an error and return the error."""
    error.notes += (f"seed {seed:#x}: {replay_text(seed)} repeats the order of this run",)
    return error


# -- the simulator -----------------------------------------------------------------------------------------------------
class SimulationEnded(Exception):
    """The simulator stopped at a task, given by its number in the stream; -1: at no particular task."""

    def __init__(self, task: int) -> None:
        super().__init__(f"ended at task {task}")
        self.task = task


class WindowFull(SimulationEnded):
    """The window of a unit has no room for the task. `need`: what the task takes; `taken`: the most that was taken at a time."""

    def __init__(self, task: int, unit: WindowUnit, need: int, taken: int) -> None:
        super().__init__(task)
        self.unit, self.need, self.taken = unit, need, taken


class CyclesOverflow(SimulationEnded):
    """A sum of cycles exceeds 64 bits."""


def ended_error(plan: TaskPlan, raw: Any, ended: SimulationEnded, n_run: int = 0) -> WindowError | CyclesError:
    """Return the user's error. `raw`: the record's pto_columns, which may no longer have the task of a long stream."""
    return _window_error(plan, raw, ended, n_run) if isinstance(ended, WindowFull) else _cycles_error(plan, raw, ended)


def _cycles_error(plan: TaskPlan, raw: Any, ended: SimulationEnded) -> CyclesError:
    task = ended.task - raw.first_task
    message, expected, help = "simulated cycles do not fit 64 bits", f"sums below {1 << 63}", "give costs in a larger unit"
    if ended.task < 0 or not 0 <= task < raw.n_tasks:
        at = f" at task {ended.task} of the stream" if ended.task >= 0 else ""
        return CyclesError(message + at, None, expected=expected, help=help)
    submit = submits(plan)[raw.task_site[task]]
    index = [raw.index[k] for k in range(raw.index_begin[task], raw.index_begin[task + 1])]
    return CyclesError(f"{message} at task {task_name(plan, submit, index)}", submit.span, expected=expected, help=help)


def _window_error(plan: TaskPlan, raw: Any, full: WindowFull, n_run: int) -> WindowError:
    window, task = plan.rules.window_of(full.unit), full.task - raw.first_task
    notes = (f"{counted(n_run, 'task')} had run before: the stream depends on what they compute",) if n_run else ()
    ends = f"; WindowMode.{window.full.name} ends the run" if window.full is FullWindow.ABORT else ""
    if not 0 <= task < raw.n_tasks:
        return WindowError(f"task {full.task} of the stream found no room in the window", None, expected=f"room in a {window.text}",
                           found=f"up to {full.taken} taken{ends}", help=_HELP, notes=notes)
    submit = submits(plan)[raw.task_site[task]]
    index = [raw.index[k] for k in range(raw.index_begin[task], raw.index_begin[task + 1])]
    return WindowError(f"task {task_name(plan, submit, index)} found no room in the window", submit.span,
                       expected=f"room for {full.unit.amount(full.need)} in a {window.text}",
                       found=f"up to {full.taken} taken{ends}", help=_HELP, notes=notes)


_HELP = "give the window more room; WindowMode.STALL waits, WindowMode.BENCHMARK counts and goes on"


# -- stuck pipelines ---------------------------------------------------------------------------------------------------
_BUDGET = 20_000


def run_stuck_error(plan: TaskPlan, rows: Sequence[Stuck], bindings: Bindings) -> PtoError:
    """Return the error for a stuck pipeline, with depths that would have sufficed for these bindings.

    Without depths if the processes read what tasks compute, because another run would read other values.
    """
    pipeline = _pipeline_of(plan, rows[0].stream)
    if pipeline is None or has_waits(plan):
        return stuck_error(plan, rows)
    skeletons = Skeletons(plan, bound_leaf(plan, bindings), Budget(_BUDGET))
    return stuck_error(plan, rows, *advice(skeletons, pipeline, Outcome(tuple(rows), {})))


def bound_leaf(plan: TaskPlan, bindings: Bindings) -> Leaf:
    """Return the function that evaluates symbols, extents and elements as bound.

    Raises (when called): NotKnown for variables of the main program.
    """
    slots = {slot.ref.id: k for k, slot in enumerate(plan.tensors)}
    symbols = {symbol.id: bindings.symbols[k] for k, symbol in enumerate(plan.symbols)}

    def leaf(node: s.Scalar) -> Number:
        match node:
            case s.SymbolRef(_, symbol):
                return symbols[symbol]
            case s.DimOf(tensor, dim) if not plan.tensors[slots[tensor.id]].fresh:
                return int(bindings.arrays[slots[tensor.id]].shape[dim])
            case s.Element(tensor, index) if not plan.tensors[slots[tensor.id]].fresh:
                read: Number = bindings.arrays[slots[tensor.id]][tuple(int(s.evaluate(i, leaf)) for i in index)].item()
                return read
            case _:
                raise Uncountable(print_scalar(node))

    return leaf


def _pipeline_of(plan: TaskPlan, stream: int) -> PlanPipeline | None:
    for item in walk(plan.body):
        if isinstance(item, Pipeline):
            for process in item.processes:
                if process.stream <= stream < process.stream + process.replicas:
                    return item
    return None
