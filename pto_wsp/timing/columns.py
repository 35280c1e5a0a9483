"""Evaluate a schedule's expressions for all tasks of a record at once, as NumPy columns.

A column is an array with one element per task, or a 0-d array that holds for all tasks. `RecordedTasks` gives columns as views of the
record's memory, without copies. `columnar` replaces, in a plan, the expressions of bracket indices, extents and scalars by the recorded
values: `X[b, lens[b]:...]` may depend on data that tasks have changed since, the recorded extent does not. `task_fields` then evaluates
what a schedule assigns to each task: worker, cost, lane, pool, priority, position, traffic.

>>> evaluate_columns(add(Var("b", 0), Const(1)), {Var("b", 0): np.arange(3)}.get)
array([1, 2, 3])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from pto_wsp.artifact.build import Runtime
from pto_wsp.errors import ProgramStateError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.execution_rules import TaskField as Kept
from pto_wsp.ir.flow import Pipeline, Send, leaves, walk
from pto_wsp.ir.mesh import ranks_of_task
from pto_wsp.ir.plan import Check, Precondition, Submit, TaskPlan
from pto_wsp.ir.plan_walk import NumberedCheck, map_submits, submits
from pto_wsp.ir.scalar import COMPARISONS, Number, Op, print_scalar, wrap_i64
from pto_wsp.run.bound import Bindings
from pto_wsp.run.failures import describe_check
from pto_wsp.run.record import MarkFlag
from pto_wsp.source import here
from pto_wsp.values import dataclass

Column: TypeAlias = "np.ndarray[Any, Any]"
Leaf: TypeAlias = Callable[[s.Scalar], "Column | None"]

_FNV_START, _FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
TURNS_AT_A_TIME = 1 << 20


# -- expressions -------------------------------------------------------------------------------------------------------
class UnknownColumn(Exception):
    """A part of an expression has no column."""

    def __init__(self, node: s.Scalar) -> None:
        super().__init__(print_scalar(node))
        self.node = node


def evaluate_columns(node: s.Scalar, leaf: Leaf) -> Column:
    """Return the column of `node`: int64, float64 or bool. The counterpart of `ir.scalar.evaluate` for all tasks.

    `leaf` is asked for each node, outermost first, and returns None if the node has no column as a whole. Both sides of a `Select` are
    evaluated for all tasks.
    Raises: UnknownColumn for a leaf without a column.
    """
    with np.errstate(all="ignore"):
        return _value(node, leaf)


def _value(node: s.Scalar, leaf: Leaf) -> Column:
    column = constant(node.value) if isinstance(node, s.Const) else leaf(node)
    if column is not None:
        if column.dtype.kind in "iu" and (column.astype(np.int64) < 0).any() and s.is_unsigned(node):
            raise UnknownColumn(node)     # columns are signed
        return column
    match node:
        case s.Unary(op, value):
            return _unary(op, _value(value, leaf))
        case s.Binary(op, lhs, rhs):
            return _binary(op, _value(lhs, leaf), _value(rhs, leaf))
        case s.Select(condition, then, other):
            kind = s.scalar_dtype(node).np.type
            return np.where(_value(condition, leaf), _value(then, leaf).astype(kind), _value(other, leaf).astype(kind))
        case s.Sum():
            return _sum(node, leaf)
        case _:
            raise UnknownColumn(node)


def constant(value: Number) -> Column:
    """Return a number as a 0-d column."""
    return np.asarray(value if isinstance(value, bool | float) else np.int64(wrap_i64(value)))


def _unary(op: Op, value: Column) -> Column:
    if op is Op.NEG:
        return np.negative(value if value.dtype == np.float64 else value.astype(np.int64))
    return np.invert(value if value.dtype == np.bool_ else value.astype(np.int64))


def _binary(op: Op, lhs: Column, rhs: Column) -> Column:
    if op in COMPARISONS:
        return _COMPARE[op](lhs, rhs)
    if op in (Op.AND, Op.OR):
        if lhs.dtype != np.bool_ or rhs.dtype != np.bool_:
            lhs, rhs = lhs.astype(np.int64), rhs.astype(np.int64)
        return lhs & rhs if op is Op.AND else lhs | rhs
    if op is Op.DIV or np.float64 in (lhs.dtype, rhs.dtype):
        return _FLOAT[op](lhs.astype(np.float64), rhs.astype(np.float64))
    left, right = lhs.astype(np.int64), rhs.astype(np.int64)
    if op is Op.HASHMOD:
        return _hash_mod(left, right)
    if op in (Op.FLOORDIV, Op.MOD):    # NumPy's results for a zero divisor and for overflow are the defined ones
        return np.floor_divide(left, right) if op is Op.FLOORDIV else np.remainder(left, right)
    return _INTEGER[op](left, right)


def _hash_mod(key: Column, modulus: Column) -> Column:
    """Return the FNV-1a-64 hash of the key's 8 little-endian bytes, modulo `modulus`; a negative modulus behaves as in Python."""
    bits = key.view(np.uint64)
    state: Any = np.broadcast_to(_FNV_START, bits.shape)
    for byte in range(8):
        state = (state ^ ((bits >> np.uint64(8 * byte)) & np.uint64(0xFF))) * _FNV_PRIME
    rest: Column = np.remainder(state, np.abs(modulus).view(np.uint64)).view(np.int64)    # a zero modulus gives 0
    return np.where((modulus < 0) & (rest != 0), rest + modulus, rest)


def _sum(node: s.Sum, leaf: Leaf) -> Column:
    """Return the column of a sum: groups of tasks, whose iterations are evaluated side by side."""
    start, stop, step = (np.atleast_1d(_value(bound, leaf).astype(np.int64)) for bound in (node.start, node.stop, node.step))
    inner = [column for column in (_known(part, leaf) for part in _parts(node.body, node.var, leaf)) if column is not None]
    shape = np.broadcast_shapes(start.shape, stop.shape, step.shape, *(column.shape for _, column in inner))
    start, stop, step = (np.broadcast_to(bound, shape) for bound in (start, stop, step))
    count = np.maximum(0, np.where(step > 0, -((start - stop) // step), -((stop - start) // -step)))
    kind = s.scalar_dtype(node.body).np.type
    total = np.zeros(shape, np.float64 if kind is np.float64 else np.int64)
    if not count.any():
        return total
    ends = np.cumsum(count)
    first = 0
    while first < len(ends):      # invariant: total[:first] is done; a group has at most _TURNS_AT_A_TIME iterations, or one task
        done = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, done + TURNS_AT_A_TIME, side="right")))
        total[first:last] = _sum_iterations(node, leaf, inner, slice(first, last), start, step, count, shape)
        first = last
    return total


def _sum_iterations(node: s.Sum, leaf: Leaf, inner: list[tuple[s.Scalar, Column]], at: slice, start: Any, step: Any, count: Any,
           shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return the sums of the tasks `at`, with all their iterations side by side."""
    counts = count[at]
    n = int(counts.sum())
    begins = np.cumsum(counts) - counts
    iteration = np.arange(n) - np.repeat(begins, counts)
    value = np.repeat(start[at], counts) + iteration * np.repeat(step[at], counts)
    spread = {part: np.repeat(np.broadcast_to(column, shape)[at], counts) for part, column in inner}

    def here(part: s.Scalar) -> Column | None:
        return value if part == node.var else spread.get(part)

    body = np.broadcast_to(_value(node.body, here), (n,))
    sums = np.zeros(len(counts), np.float64 if body.dtype == np.float64 else np.int64)
    np.add.at(sums, np.repeat(np.arange(len(counts)), counts), body)
    return sums


def _parts(node: s.Scalar, var: s.Var, leaf: Leaf) -> tuple[s.Scalar, ...]:
    """Return the outermost parts of a sum's body that have a column independent of the sum's variable."""
    if node == var:
        return ()
    if not isinstance(node, s.Const) and leaf(node) is not None:
        return (node,)
    return tuple(dict.fromkeys(part for child in s.children(node) for part in _parts(child, var, leaf)))


def _known(part: s.Scalar, leaf: Leaf) -> tuple[s.Scalar, Column] | None:
    column = leaf(part)
    return None if column is None else (part, column)


_COMPARE: Mapping[Op, Callable[[Column, Column], Column]] = {
    Op.EQ: np.equal, Op.NE: np.not_equal, Op.LT: np.less, Op.LE: np.less_equal, Op.GT: np.greater, Op.GE: np.greater_equal,
}
_INTEGER: Mapping[Op, Callable[[Column, Column], Column]] = {
    Op.ADD: np.add, Op.SUB: np.subtract, Op.MUL: np.multiply, Op.MIN: np.minimum, Op.MAX: np.maximum,
}
_FLOAT: Mapping[Op, Callable[[Column, Column], Column]] = {
    **_INTEGER, Op.DIV: np.divide, Op.FLOORDIV: np.floor_divide, Op.MOD: np.remainder,
}


# -- tasks of a record -------------------------------------------------------------------------------------------------
class RecordedTasks:
    """The tasks of a record as columns. `raw`: the record's pto_columns, valid until the record changes."""

    def __init__(self, runtime: Runtime, raw: Any, plan: TaskPlan, bindings: Bindings) -> None:
        self.runtime, self.raw, self.plan, self.bindings = runtime, raw, plan, bindings
        self.n_tasks, self.n_nodes, self.n_edges = int(raw.n_tasks), int(raw.n_nodes), int(raw.n_edges)
        self.slots = {slot.ref.id: k for k, slot in enumerate(plan.tensors)}
        self.symbols = {symbol.id: constant(value) for symbol, value in zip(plan.symbols, bindings.symbols, strict=True)}

    def view(self, name: str, count: int, dtype: Any) -> np.ndarray[Any, Any]:
        """Return a column of the record as a view of its memory."""
        pointer = getattr(self.raw, name)
        if count == 0 or pointer == self.runtime.ffi.NULL:
            return np.zeros(count, dtype)
        return np.frombuffer(self.runtime.ffi.buffer(pointer, count * np.dtype(dtype).itemsize), dtype)

    @cached_property
    def sites(self) -> tuple[tuple[Submit, np.ndarray[Any, Any] | slice], ...]:
        """Each call of the workload, with the tasks it made."""
        of_task = self.view("task_site", self.n_tasks, np.int32)
        by_site = {task.site: task for task in submits(self.plan)}
        present = np.unique(of_task).tolist()
        if len(present) == 1:
            return ((by_site[present[0]], slice(None)),)
        order = np.argsort(of_task, kind="stable")
        bounds = np.searchsorted(of_task[order], [*present, len(by_site)])
        return tuple((by_site[site], order[bounds[k]:bounds[k + 1]]) for k, site in enumerate(present))

    def numbers(self, at: np.ndarray[Any, Any] | slice) -> np.ndarray[Any, Any]:
        """Return the positions of the selected tasks in the record."""
        return np.arange(self.n_tasks)[at]

    def leaves(self) -> Iterator[tuple[Submit, np.ndarray[Any, Any] | slice, SiteColumns]]:
        """Yield each call of the workload, its tasks, and their columns."""
        for task, at in self.sites:
            yield task, at, self._columns_of(task, at)

    def _columns_of(self, task: Submit, at: np.ndarray[Any, Any] | slice) -> SiteColumns:
        if task.site not in self._by_site:
            self._by_site[task.site] = SiteColumns(self, task, at)
        return self._by_site[task.site]

    @cached_property
    def _by_site(self) -> dict[int, SiteColumns]:
        return {}

    @cached_property
    def streams(self) -> np.ndarray[Any, Any]:
        """The stream of each task."""
        return self.view("task_stream", self.n_tasks, np.int32)

    @cached_property
    def first_streams(self) -> Mapping[int, int]:
        """By site of a process: the stream of its first replica."""
        return {task.site: process.stream for item in walk(self.plan.body) if isinstance(item, Pipeline) for process in item.processes
                for task in leaves(process.body)}

    @cached_property
    def index_begin(self) -> np.ndarray[Any, Any]:
        """Offsets of each task's indices in `index`."""
        return self.view("index_begin", self.n_tasks + 1, np.int64)

    @cached_property
    def index(self) -> np.ndarray[Any, Any]:
        """The indices of all tasks, concatenated."""
        return self.view("index", int(self.index_begin[-1]), np.int64)

    @cached_property
    def arg_begin(self) -> np.ndarray[Any, Any]:
        """Offsets of each task's memory arguments in `args`."""
        return self.view("arg_begin", self.n_tasks + 1, np.int64)

    @cached_property
    def args(self) -> np.ndarray[Any, Any]:
        """The memory arguments of all tasks: the field `extent` of pto_arg."""
        ffi = self.runtime.ffi
        dtype = np.dtype({"names": ["extent"], "formats": [(np.int64, (2,))], "offsets": [ffi.offsetof("pto_arg", "extent")],
                          "itemsize": ffi.sizeof("pto_arg")})
        return self.view("args", int(self.arg_begin[-1]), dtype)

    @cached_property
    def scalar_begin(self) -> np.ndarray[Any, Any]:
        """Offsets of each task's scalar arguments in `scalars`."""
        return self.view("scalar_begin", self.n_tasks + 1, np.int64)

    @cached_property
    def scalars(self) -> np.ndarray[Any, Any]:
        """The scalar arguments of all tasks, as 64-bit slots."""
        return self.view("scalars", int(self.scalar_begin[-1]), np.int64)


class SiteColumns:
    """The columns of the tasks of one call; a `leaf` of `evaluate_columns`."""

    def __init__(self, tasks: RecordedTasks, task: Submit, at: np.ndarray[Any, Any] | slice) -> None:
        self._tasks, self._task, self._at = tasks, task, at
        self._known: dict[s.Scalar, Column] = {}
        self._indices = {node: k for k, node in reversed(tuple(enumerate(task.index)))}
        params = tasks.plan.kernels[task.kernel].kernel
        self._places = {param.name: k for k, param in enumerate(params.memory_params)}
        self._values = {param.name: (k, param.dtype) for k, param in enumerate(params.scalar_params)}

    def __call__(self, node: s.Scalar) -> Column | None:
        """Return the column of a node that the record has as a whole; None otherwise."""
        column = self._known.get(node)
        if column is None:
            column = self._column(node)
            if column is not None:
                self._known[node] = column
        return column

    def loops_of(self, number: int) -> dict[s.Var, int]:
        """Return the values of one task's recorded loop variables."""
        place = int(np.flatnonzero(self._tasks.numbers(self._at) == number)[0])
        columns = ((var, self(var)) for var in self._task.loops)
        return {var: int(column[place]) for var, column in columns if column is not None}

    def _column(self, node: s.Scalar) -> Column | None:
        tasks, at = self._tasks, self._at
        if node in self._indices:
            index: Column = tasks.index[tasks.index_begin[:-1][at] + self._indices[node]]
            return index
        match node:
            case s.TaskIndex():
                return np.arange(tasks.raw.first_task, tasks.raw.first_task + tasks.n_tasks)[at]
            case s.ReplicaIndex():
                return tasks.streams[at].astype(np.int64) - tasks.first_streams.get(self._task.site, 0)
            case s.SymbolRef(_, symbol):
                return tasks.symbols.get(symbol)
            case s.DimOf(tensor, dim):
                return self._of_array(tensor.id, lambda array: int(array.shape[dim]))
            case s.StrideOf(tensor, dim):
                return self._of_array(tensor.id, lambda array: int(array.strides[dim]) // array.itemsize)
            case s.ParamExtent(name, dim):
                extent: Column = tasks.args["extent"][tasks.arg_begin[:-1][at] + self._places[name], dim]
                return extent
            case s.ParamScalar(name):
                k, dtype = self._values[name]
                slots: Column = tasks.scalars[tasks.scalar_begin[:-1][at] + k]
                return slots.view(np.float64) if dtype.is_float else slots != 0 if dtype.is_bool else slots
            case _:
                return None

    def _of_array(self, tensor: int, number: Any) -> Column | None:
        slot = self._tasks.slots.get(tensor)
        if slot is None or self._tasks.plan.tensors[slot].fresh:
            return None
        return constant(number(self._tasks.bindings.arrays[slot]))


# -- what a schedule assigns -------------------------------------------------------------------------------------------
def columnar(plan: TaskPlan) -> TaskPlan:
    """Return the plan with `BracketIndex`, `ParamExtent` and `ParamScalar` in place of the expressions of recorded values."""
    return map_submits(plan, lambda task: _columnar(plan, task))


def _columnar(plan: TaskPlan, task: Submit) -> Submit:
    kernel = plan.kernels[task.kernel].kernel
    places = tuple(replace(place, extent=(s.ParamExtent(param.name, 0), s.ParamExtent(param.name, 1)))
                   for param, place in zip(kernel.memory_params, task.places, strict=True))
    scalars = tuple(replace(value, value=s.ParamScalar(param.name, param.dtype))
                    for param, value in zip(kernel.scalar_params, task.scalars, strict=True))
    index = tuple(node if isinstance(node, s.Var | s.Const) else s.BracketIndex(k) for k, node in enumerate(task.index))
    return replace(task, index=index, places=places, scalars=scalars, note=Precondition())


Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class TaskFields:
    """int64 columns with one number per task; None if the schedule assigns nothing."""

    worker: Array
    cost: Array
    lane: Array | None = None
    pool: Array | None = None
    priority: Array | None = None
    position: Array | None = None
    traffic: Array | None = None
    ranks: Array | None = None


_KEPT: dict[Kept, tuple[str, Callable[[Submit], s.Scalar]]] = {
    Kept.LANE: ("lane", lambda task: task.lane), Kept.POOL: ("pool", lambda task: task.pool),
    Kept.PRIORITY: ("priority", lambda task: task.priority), Kept.POSITION: ("position", lambda task: task.position),
    Kept.BYTES: ("traffic", lambda task: task.traffic), Kept.RANKS: ("ranks", lambda task: ranks_of_task(task.on)),
}


def task_fields(tasks: RecordedTasks, plan: TaskPlan) -> TaskFields:
    """Return the fields that `plan` (the record's plan under some schedule and arch) assigns to the tasks.

    Raises: R103 if a number depends on data that tasks compute and the record does not have.
    """
    by_site = {task.site: task for task in submits(plan)}
    _check_keys(tasks, by_site)
    kept = {name: _column(tasks, by_site, of, name) for column, (name, of) in _KEPT.items()
            if column in plan.rules.columns and not (plan.calendar and column is Kept.POSITION)}
    if plan.calendar:       # the checks guarantee a row for each task; there may be more rows
        worker, position = np.array(plan.calendar, np.int64)[:tasks.n_tasks].T
        kept["position"] = np.ascontiguousarray(position)
        return TaskFields(np.ascontiguousarray(worker), _column(tasks, by_site, lambda task: task.cost, "cost"), **kept)
    worker = _column(tasks, by_site, lambda task: task.worker, "worker")
    return TaskFields(worker, _column(tasks, by_site, lambda task: task.cost, "cost"), **kept)


def _check_keys(tasks: RecordedTasks, said: dict[int, Submit]) -> None:
    """Evaluate the checks of keys for all tasks.

    Raises: the error of the first task in submission order, as a run would.
    """
    first: tuple[int, Check, SiteColumns, int, int, int] | None = None
    for task, at, columns in tasks.leaves():
        for check in said[task.site].note.checks:
            value, lower, upper = (np.broadcast_to(_evaluated(tasks, task, part, "key", columns), tasks.numbers(at).shape)
                                   for part in (check.value, check.lower, check.upper))
            wrong = np.flatnonzero((value < lower) | (value > upper))
            if len(wrong) and (first is None or tasks.numbers(at)[wrong[0]] < first[0]):
                k = wrong[0]
                first = int(tasks.numbers(at)[k]), check, columns, int(value[k]), int(lower[k]), int(upper[k])
    if first is not None:
        number, check, columns, value_found, lower_bound, upper_bound = first
        loops = columns.loops_of(number)
        raise describe_check(NumberedCheck(0, check, tuple(loops)), value_found, lower_bound, upper_bound, tuple(loops.values()), 0)


def _column(tasks: RecordedTasks, said: dict[int, Submit], of: Callable[[Submit], s.Scalar], name: str) -> Array:
    out = np.empty(tasks.n_tasks, np.int64)
    for task, at, columns in tasks.leaves():
        out[at] = _evaluated(tasks, task, of(said[task.site]), name, columns)
    return out


def _evaluated(tasks: RecordedTasks, task: Submit, node: s.Scalar, name: str, columns: SiteColumns) -> Array:
    try:
        return evaluate_columns(node, columns)
    except UnknownColumn as unknown:
        kernel = tasks.plan.kernels[task.kernel].kernel.name
        is_symbol = isinstance(unknown.node, s.SymbolRef)
        raise ProgramStateError(f"the {name} of `{kernel}` cannot be found again: it depends on `{unknown}`", here(),
                                expected="a symbol that the run had a value for" if is_symbol else
                                "what the recorded stream knows: loop variables, extents, scalars and symbols",
                                found=print_scalar(node), help="compile it under that schedule and run it") from None


def mark_delays(tasks: RecordedTasks, plan: TaskPlan) -> Array | None:
    """Return the delay in cycles of each mark under `plan`; None if no mark has a delay."""
    n = int(tasks.raw.n_marks)
    latency = {item.site: plan.channels[item.channel] for item in walk(plan.body) if isinstance(item, Send)}
    delays = tasks.view("mark_delay", n, np.int64)
    if not any(channel.latency for channel in latency.values()) and not delays.any():
        return None
    sites, flags = tasks.view("mark_site", n, np.int32), tasks.view("mark_flags", n, np.uint8)
    new = delays.copy()
    for site, channel in latency.items():   # at depth 0 the token is the mark that blocks the sender
        holds = (flags & MarkFlag.BLOCKS.value) != 0
        new[(sites == site) & (holds if channel.depth == 0 else ~holds)] = channel.latency
    return new
