"""The interpreter: run a plan with NumPy, task by task. It is the oracle, and needs no C compiler.

The main program runs in program order; the processes of a pipeline in an order that tokens and events allow, drawn by a seed (order.py).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import field
from itertools import combinations
from typing import Any, Protocol, TypeAlias

import numpy as np

from pto_wsp.artifact.build import load_runtime
from pto_wsp.errors import PtoError
from pto_wsp.plan.model import TaskPlan
from pto_wsp.plan.rules import FullWindow
from pto_wsp.runtime.bound.binding import Array, Bindings, Number
from pto_wsp.runtime.failures.errors import kernel_guard_error, outputs_error
from pto_wsp.runtime.failures.finite import FaultFound, checked_kernel, finite_error
from pto_wsp.runtime.failures.simulation import SimulationEnded, ended_error
from pto_wsp.runtime.interpreter.kernel import failure_of
from pto_wsp.runtime.interpreter.order import OrderRules, drawn_order, ends_pipeline, starts_pipeline
from pto_wsp.runtime.native.recorder import Recorder
from pto_wsp.runtime.native.run import LookFirst, slots_of
from pto_wsp.runtime.native.simulator import SimResult
from pto_wsp.runtime.prints import PrintKeeper, Prints, until
from pto_wsp.runtime.record.marks import MarkFlag
from pto_wsp.runtime.stream.orchestrator import Made, MarkInstance, PlacedView, Released, TaskInstance
from pto_wsp.runtime.stream.pipelines import enumerate_tasks
from pto_wsp.types.layout import TensorRef
from pto_wsp.values import dataclass

StreamNode: TypeAlias = "TaskInstance | MarkInstance | tuple[int, ...] | Made | Released"    # the tuple: a join of nodes


class _Tasks(Protocol):
    """What runs the tasks of a stream."""

    def run_task(self, number: int, task: TaskInstance, memory: Mapping[int, Array]) -> None:
        """Run a task; `number`: of the tasks in program order. Of a pipeline later ones may come before earlier ones."""

    def settle(self) -> None:
        """Raise what has failed first in program order: all that is earlier has run."""


class _Stream:
    """What the enumeration writes, in order; a node is its place here. Tasks run where the stream waits: those of the main program in
    order, those of a pipeline in an order that is drawn."""

    def __init__(self, plan: TaskPlan, bindings: Bindings, tasks: _Tasks | None = None, rules: OrderRules | None = None,
                 seed: int = 0, turn: Callable[[], None] | None = None) -> None:
        """`turn` is called in each turn of a loop and before each task, and may raise."""
        self.nodes: list[StreamNode] = []
        self.memory: dict[int, Array] = {}     # of tensors that bodies made and that are there yet
        self._plan = plan
        self._bindings = bindings
        self._tasks = tasks
        self._rules = rules
        self._rng = random.Random(seed)
        self._n_executed = 0
        self._in_pipeline = False
        self._slots: dict[int, int] = {}       # of tensors that bodies make
        self._numbers: list[int] = []          # of each node how many tasks are before it
        self._n_tasks = 0
        self._turn = turn

    def turn(self) -> None:
        if self._turn is not None:
            self._turn()

    def submit(self, task: TaskInstance) -> int:
        written = [arg for arg, place in enumerate(task.submit.places) if place.role.writes]
        for first, second in combinations(written, 2):
            if self._share(task.views[first], task.views[second]):
                raise outputs_error(self._plan, task.submit, task.index, first, second)
        return self._add(task)

    def join(self, nodes: tuple[int, ...]) -> int:
        return self._add(nodes)

    def mark(self, mark: MarkInstance) -> int:
        node = self._add(mark)
        if MarkFlag.NOW in mark.flags:
            self.catch_up()
        return node

    def make(self, made: Made) -> None:
        self._slots[made.fresh] = made.slot
        self._add(made)

    def release(self, released: Released) -> None:
        self._add(released)

    def array_of(self, fresh: int) -> Array:
        if fresh not in self.memory:       # its first use: of a pipeline's tensors those are there that are in use
            self.memory[fresh] = _undefined(self._plan.tensors[self._slots[fresh]].ref)
        return self.memory[fresh]

    def catch_up(self) -> None:
        """Execute what has been added since the last time."""
        while self._n_executed < len(self.nodes):
            if self._in_pipeline and self._rules is not None:
                first, stop = self._n_executed, self._end_of_pipeline()
                self._n_executed = stop
                for number in drawn_order(self.nodes, first, stop, self._rules, self._rng):
                    self._run(number)
                self._in_pipeline = stop == len(self.nodes)
            else:
                number = self._n_executed
                self._n_executed += 1
                self._in_pipeline = starts_pipeline(self.nodes[number])
                self._run(number)
            if self._tasks is not None:
                self._tasks.settle()

    def _end_of_pipeline(self) -> int:
        """Return where the main program goes on, of the nodes that are there."""
        return next((number for number in range(self._n_executed, len(self.nodes)) if ends_pipeline(self.nodes[number])), len(self.nodes))

    def _run(self, number: int) -> None:
        self.turn()
        node = self.nodes[number]
        match node:
            case Released(fresh):
                self.memory.pop(fresh, None)
            case TaskInstance(views=views):
                for view in views:
                    if view.fresh is not None:
                        self.array_of(view.fresh)
                if self._tasks is not None:
                    self._tasks.run_task(self._numbers[number], node, self.memory)

    def _share(self, first: PlacedView, second: PlacedView) -> bool:
        """Tell whether two regions have an element in common."""
        groups = self._bindings.groups
        if first.fresh != second.fresh or (first.fresh is None and groups[first.slot] != groups[second.slot]):
            return False
        one, other = (_region(view, _NOWHERE if view.fresh is not None else _address(self._bindings.arrays[view.slot]),
                              self._plan.tensors[view.slot].ref.dtype.nbytes) for view in (first, second))
        return bool(np.shares_memory(one, other))

    def _add(self, node: StreamNode) -> int:
        self.nodes.append(node)
        self._numbers.append(self._n_tasks)
        self._n_tasks += isinstance(node, TaskInstance)
        return len(self.nodes) - 1


def _undefined(ref: TensorRef) -> Array:
    """Return memory that shows who reads it before it was written: all bits set, which is NaN, -1 or true."""
    if ref.dtype.is_bool:
        return np.ones(ref.shape, np.bool_)
    return np.full((*ref.shape, ref.dtype.nbytes), 0xFF, np.uint8).view(ref.dtype.np)[..., 0]


def stream_of(plan: TaskPlan, bindings: Bindings) -> tuple[StreamNode, ...]:
    """Return what the plan's enumeration writes, in order; joins are tuples of nodes. No task runs.

    Raises: R104 for a check that does not hold, W205 for a task whose outputs overlap.
    """
    stream = _Stream(plan, bindings)
    enumerate_tasks(plan, bindings, stream)
    return tuple(stream.nodes)


class Interpreter:
    """Runs of one plan in NumPy. The stream is kept for the simulator, as the native engine keeps its record."""

    def __init__(self, plan: TaskPlan, *, check_finite: bool = False) -> None:
        self.plan = plan
        self._kernels = tuple(checked_kernel(use) if check_finite else use.kernel for use in plan.kernels)
        self._stream: tuple[StreamNode, ...] = ()
        self._bindings: Bindings | None = None
        self._recorder: Recorder | None = None
        self._prints = PrintKeeper()
        self._failed_task: int | None = None
        self.look_first: LookFirst | None = None
        self._is_cancelled = False

    def run(self, bindings: Bindings, order_seed: int = 0) -> None:
        """Run every task: where the plan waits those made so far, else when all are made. Of a pipeline in the order of `order_seed`.

        Raises: R101 for a task that failed, R105 for one that made a NaN or infinity (check_finite), of several the first in program
        order; R104 for a check that did not hold (no task has run then, but for those that were waited for).
        """
        self._recorder = None
        self._prints = PrintKeeper()
        tasks = _Run(self, bindings)
        writes = tuple(tuple(param.role.writes for param in use.kernel.memory_params) for use in self.plan.kernels)
        stream = _Stream(self.plan, bindings, tasks, OrderRules(self.plan.structure, bindings.groups, writes), order_seed,
                         self._turn)
        enumerate_tasks(self.plan, bindings, stream, lambda: tasks.n_run)
        self._stream = tuple(stream.nodes)
        self._bindings = bindings
        if self.look_first is not None:
            self.look_first(self.recorder, bindings)
        elif self.plan.rules.full_window is FullWindow.ABORT:
            self._told(keep_trace=False, n_run=tasks.n_run)
        stream.catch_up()

    def run_task(self, number: int, task: TaskInstance, bindings: Bindings, memory: Mapping[int, Array]) -> None:
        """Run one task; `number`: in program order.

        Raises: R101, R105.
        """
        kernel = self._kernels[task.submit.kernel]
        args: dict[str, Array | Number] = {
            param.name: placed_array(bindings.arrays[view.slot] if view.fresh is None else memory[view.fresh], view)
            for param, view in zip(kernel.memory_params, task.views, strict=True)
        }
        args |= {param.name: value for param, value in zip(kernel.scalar_params, task.scalars, strict=True)}
        try:
            with np.errstate(all="ignore"):
                failed = failure_of(kernel, args, self._prints.of_task(number, task.submit.site, task.index), self._turn)
        except FaultFound as found:
            raise finite_error(self.plan, task.submit, task.index, found.number, found.fault) from None
        if failed is not None:
            raise kernel_guard_error(self.plan, task.submit, task.index, failed)

    def forget_prints_behind(self, number: int) -> None:
        """Forget what tasks printed that program order has behind a task that failed."""
        self._failed_task = number

    def begin(self) -> None:
        """Forget a cancel() of an earlier run, before the next one starts."""
        self._is_cancelled = False

    def cancel(self) -> None:
        """Ask a run in another thread, or one that is about to start there, to stop: it ends with KeyboardInterrupt."""
        self._is_cancelled = True

    def _turn(self) -> None:
        if self._is_cancelled:
            raise KeyboardInterrupt

    def take_prints(self) -> Prints:
        """Return what the last run printed, once."""
        taken, self._prints = self._prints.prints(), PrintKeeper()
        failed, self._failed_task = self._failed_task, None
        return taken if failed is None else until(taken, failed)

    @property
    def tasks(self) -> tuple[TaskInstance, ...]:
        """The tasks of the last run, in program order."""
        return tuple(node for node in self._stream if isinstance(node, TaskInstance))

    @property
    def intermediate_bytes(self) -> int:
        """Nothing is said of the memory of tensors made in bodies: the interpreter has NumPy make them."""
        return 0

    @property
    def recorder(self) -> Recorder:
        """The last stream as a record of the runtime library, which needs a C compiler once.

        Raises: C101 when there is none.
        """
        if self._recorder is None:
            self._recorder = self.record(self.plan)
        return self._recorder

    def record(self, plan: TaskPlan) -> Recorder:
        """Return the last stream as a new record with the kinds of edges that `plan` infers."""
        return record_stream(plan, self._bindings, self._stream)

    def simulate(self, *, keep_trace: bool) -> SimResult:
        """Return the simulated times of the last stream.

        Raises: R111.
        """
        return self._told(keep_trace=keep_trace, n_run=0)

    def _told(self, *, keep_trace: bool, n_run: int) -> SimResult:
        """Return what a simulation finds; `n_run`: tasks that have run by now.

        Raises: R106 where the window has no room for a task, R111 where cycles do not fit 64 bits.
        """
        recorder = self.recorder
        try:
            return recorder.simulate(self.plan.rules, keep_trace=keep_trace)
        except SimulationEnded as ended:
            raise ended_error(self.plan, recorder.runtime, recorder.raw_columns(), ended, n_run) from None


class _Run:
    """The tasks of one run. After a failure only those run that are earlier in program order: they cannot depend on what failed."""

    def __init__(self, interpreter: Interpreter, bindings: Bindings) -> None:
        self.n_run = 0
        self._interpreter, self._bindings = interpreter, bindings
        self._failed: tuple[int, PtoError] | None = None

    def run_task(self, number: int, task: TaskInstance, memory: Mapping[int, Array]) -> None:
        if self._failed is not None and number > self._failed[0]:
            return
        try:
            self._interpreter.run_task(number, task, self._bindings, memory)
            self.n_run += 1
        except PtoError as problem:
            self._failed = number, problem

    def settle(self) -> None:
        if self._failed is not None:
            number, problem = self._failed
            self._interpreter.forget_prints_behind(number)
            raise problem


def record_stream(plan: TaskPlan, bindings: Bindings | None, stream: tuple[StreamNode, ...]) -> Recorder:
    """Write a stream into a record through the same sink that C orchestrators use."""
    runtime = load_runtime()
    recorder = Recorder(runtime, plan.rules, infer=plan.infer, max_tasks=max(1, len(stream)))
    if bindings is not None:
        writer = _RecordWriter(plan, bindings, runtime.ffi, runtime.lib, runtime.lib.pto_record_sink(recorder.raw))
        for node in stream:
            writer.write(node)
    return recorder


@dataclass(slots=True)
class _RecordWriter:
    """Writes the nodes of a stream, whose tasks have run, into a record."""

    plan: TaskPlan
    bindings: Bindings
    ffi: Any
    lib: Any
    sink: Any
    ids: list[int] = field(default_factory=list)

    def write(self, node: StreamNode) -> None:
        """Write the next node."""
        sink = self.sink
        match node:
            case TaskInstance():
                raw = self._task(node)
                self.ids.append(sink.submit(sink, raw[0]))
            case tuple():
                join = sink.join_open(sink)
                for member in node:
                    sink.join_add(sink, join, self.ids[member])
                self.ids.append(sink.join_close(sink, join, -1))
            case MarkInstance():
                raw = self._mark(node)
                self.ids.append(sink.mark(sink, raw[0]))
            case Made() | Released():
                self.ids.append(-1)     # no node

    def _task(self, task: TaskInstance) -> tuple[Any, ...]:
        """Return a pto_task and what must stay alive with it."""
        ffi, lib, submit = self.ffi, self.lib, task.submit
        use = self.plan.kernels[submit.kernel]
        args = ffi.new("pto_arg[]", max(1, len(task.views)))
        for raw, view, param in zip(args, task.views, use.kernel.memory_params, strict=False):
            kept = lib.PTO_KEPT if self.plan.tensors[view.slot].kept else 0
            self._bind(raw, view, (lib.PTO_READ if param.role.reads else 0) | (lib.PTO_WRITE | kept if param.role.writes else 0))
        slots = slots_of(task.scalars, [param.dtype.is_float for param in use.kernel.scalar_params])
        arrays = {name: ffi.new("int64_t[]", values or [0]) for name, values in (
            ("scalars", slots), ("index", list(task.index)), ("order", [self.ids[n] for n in task.order]),
            ("after", [self.ids[n] for n in task.after]))}
        raw_task = ffi.new("pto_task *", {
            "kernel": submit.kernel, "site": submit.site, "worker": task.worker, "cost": task.cost, "n_args": len(task.views),
            "n_scalars": len(slots), "n_index": len(task.index), "n_order": len(task.order), "n_after": len(task.after), "args": args,
            "stream": task.stream, "lane": task.lane, "pool": task.pool, "priority": task.priority, "position": task.position,
            "bytes": task.traffic, **arrays})
        return raw_task, args, arrays

    def _mark(self, mark: MarkInstance) -> tuple[Any, ...]:
        """Return a pto_mark and what must stay alive with it. What it is to wait for has run: nothing executes here."""
        ffi = self.ffi
        args = ffi.new("pto_arg[]", max(1, len(mark.reads)))
        for raw, view in zip(args, mark.reads, strict=False):
            self._bind(raw, view, self.lib.PTO_READ)
        arrays = {name: ffi.new("int64_t[]", [self.ids[n] for n in nodes] or [0])
                  for name, nodes in (("before", mark.before), ("order", mark.order))}
        raw_mark = ffi.new("pto_mark *", {
            "stream": mark.stream, "flags": mark.flags & ~MarkFlag.NOW, "why": mark.why, "stall": mark.stall, "site": mark.site,
            "n_before": len(mark.before), "n_order": len(mark.order), "n_args": len(mark.reads), "args": args, "delay": mark.delay,
            **arrays})
        return raw_mark, args, arrays

    def _bind(self, raw: Any, view: PlacedView, flags: int) -> None:
        if view.fresh is None:
            address, raw.buffer = _address(self.bindings.arrays[view.slot]), self.bindings.groups[view.slot]
        else:   # its memory is gone; a record needs to know what is apart, and nothing of it is touched
            address, raw.buffer = _NOWHERE, len(self.bindings.groups) + view.fresh
        raw.elem_bytes = self.plan.tensors[view.slot].ref.dtype.nbytes
        raw.data = self.ffi.cast("char *", address + view.offset * raw.elem_bytes)
        raw.extent, raw.stride, raw.flags = list(view.extent), list(view.stride), flags


_NOWHERE = 1 << 32   # as an address: offsets from it stay far from 0


class _Memory:
    """An address as NumPy understands one."""

    def __init__(self, address: int, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> None:
        self.__array_interface__ = {"version": 3, "data": (address, False), "shape": shape, "strides": strides,
                                    "typestr": f"|V{itemsize}"}


def placed_array(base: Array, view: PlacedView) -> Array:
    """Return the rank-2 array that a placed view describes, on the memory of `base`, which must outlive it."""
    if 0 in view.extent or base.size == 0:
        return np.zeros(view.extent, base.dtype)
    return _region(view, _address(base), base.itemsize).view(base.dtype)


def _region(view: PlacedView, base: int, itemsize: int) -> Array:
    """Return the elements of a placed view as raw bytes, without looking at them: `base` is the address of its tensor."""
    strides = (view.stride[0] * itemsize, view.stride[1] * itemsize)
    return np.asarray(_Memory(base + view.offset * itemsize, view.extent, strides, itemsize))


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])
