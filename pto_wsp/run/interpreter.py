"""Run a plan in NumPy, task by task: the oracle that every other executor is compared with. Needs no C compiler.

The main program runs in program order. In a pipeline, kernels may run in any order that structure, tokens, credits and events allow, drawn
by a seed. Data edges between tasks of one process hold too; data edges between processes do not, because they follow the one interleaving
of the task stream and would hide races. A pipeline without races has the same result in all of these orders.

Within a process, tasks on the same buffer keep their order. If the schedule has no structural edges, each process keeps its whole program
order, because a token's predecessors are then unknown: the result is the workload's, whatever the schedule.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import combinations
from typing import Any, Protocol, TypeAlias

import numpy as np

from pto_wsp.artifact.build import load_runtime
from pto_wsp.errors import PtoError
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.mesh import SOURCE_RANK
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.run.bound import Array, Bindings, Number
from pto_wsp.run.failures import SimulationEnded, ended_error, kernel_guard_error, outputs_error
from pto_wsp.run.finite import FaultFound, checked_kernel, finite_error
from pto_wsp.run.kernel_interpreter import failure_of
from pto_wsp.run.native import LookFirst, slots_of
from pto_wsp.run.orchestrator import Made, MarkInstance, PlacedView, Released, TaskInstance
from pto_wsp.run.pipelines import enumerate_tasks
from pto_wsp.run.prints import PrintKeeper, Prints, until
from pto_wsp.run.record import MarkFlag
from pto_wsp.run.simulator import Recorder, SimResult
from pto_wsp.values import dataclass

# -- the order of a pipeline -------------------------------------------------------------------------------------------
_STAYS = (0.0, 0.5, 0.9)     # probability that the next task is of the same process, which lets one run far ahead


def starts_pipeline(node: object) -> bool:
    """Tell whether the nodes after this node of the stream belong to a pipeline's processes."""
    return isinstance(node, MarkInstance) and node.stream == 0 and MarkFlag.RESTS in node.flags


def ends_pipeline(node: object) -> bool:
    """Tell, for a node inside a pipeline, whether the main program continues there."""
    return isinstance(node, MarkInstance) and node.stream == 0


@dataclass(frozen=True, slots=True)
class OrderRules:
    """The facts about a plan and a run that determine which orders are legal.

    `structure`: edges keep program order. `groups`: by tensor slot; equal numbers share memory. `writes`: for each kernel, which memory
    parameters are written.
    """

    structure: bool
    groups: Sequence[int]
    writes: Sequence[tuple[bool, ...]]


def drawn_order(nodes: Sequence[object], first: int, stop: int, rules: OrderRules, rng: random.Random) -> Iterator[int]:
    """Yield the nodes `first` .. `stop` - 1 in a random topological order. Nodes other than tasks come as early as possible.

    Invariant: `pending` counts the predecessors of each node not yet yielded; `ready` has the tasks without any, by stream.
    """
    pending = [0] * (stop - first)
    successors: list[list[int]] = [[] for _ in pending]
    for node, before in _edges(nodes, first, stop, rules):
        for earlier in before:
            successors[earlier - first].append(node)
        pending[node - first] = len(before)
    ready: dict[int, list[int]] = {}
    immediate = [node for node in range(first, stop) if not pending[node - first]]
    stays, stream = rng.choice(_STAYS), -1
    while True:
        while immediate:
            node = immediate.pop()
            task = nodes[node]
            if isinstance(task, TaskInstance):
                ready.setdefault(task.stream, []).append(node)
                continue
            yield node
            immediate += _newly_ready(node - first, first, successors, pending)
        if not ready:
            return
        if stream not in ready or rng.random() >= stays:
            stream = rng.choice(sorted(ready))
        tasks = ready[stream]
        node = tasks.pop(rng.randrange(len(tasks)))
        if not tasks:
            del ready[stream]
        yield node
        immediate += _newly_ready(node - first, first, successors, pending)


def _newly_ready(done: int, first: int, behind: list[list[int]], pending: list[int]) -> list[int]:
    free = []
    for node in behind[done]:
        pending[node - first] -= 1
        if not pending[node - first]:
            free.append(node)
    return free


def _edges(nodes: Sequence[object], first: int, stop: int, rules: OrderRules) -> Iterator[tuple[int, set[int]]]:
    """Yield each node with its predecessors from `first` on."""
    last: dict[int, int] = {}                                          # stream -> its last node
    written: dict[tuple[int, int], int] = {}                           # (stream, buffer) -> the last task that wrote it
    read: dict[tuple[int, int], list[int]] = {}                        # (stream, buffer) -> the tasks that have read since
    users: dict[int, list[int]] = {}                                   # tensor allocated in a body -> its users
    for number in range(first, stop):
        node = nodes[number]
        before: set[int] = set()
        match node:
            case TaskInstance():
                before.update(node.order, node.after)
                for view, writes in zip(node.views, rules.writes[node.submit.kernel], strict=True):
                    if view.fresh is not None:
                        users.setdefault(view.fresh, []).append(number)
                    key = (node.stream, rules.groups[view.slot] if view.fresh is None else -1 - view.fresh)
                    if key in written:
                        before.add(written[key])
                    if writes:
                        before.update(read.pop(key, ()))
                        written[key] = number
                    else:
                        read.setdefault(key, []).append(number)
            case MarkInstance():
                before.update(node.before, node.order)
            case Released(fresh):
                before.update(users.get(fresh, ()))
            case Made():
                pass
            case tuple():
                before.update(node)
            case _:
                raise AssertionError(f"{node} in a stream")
        if isinstance(node, TaskInstance | MarkInstance) and not rules.structure:
            if node.stream in last:
                before.add(last[node.stream])
            last[node.stream] = number
        before.discard(number)
        yield number, {earlier for earlier in before if earlier >= first}


# -- the stream --------------------------------------------------------------------------------------------------------
StreamNode: TypeAlias = "TaskInstance | MarkInstance | tuple[int, ...] | Made | Released"    # a tuple is a join of nodes


class _TaskRunner(Protocol):
    """Runs the tasks of a stream."""

    def run_task(self, number: int, task: TaskInstance, memory: Mapping[int, Array]) -> None:
        """Run a task; `number`: its position in program order. In a pipeline, later tasks may run before earlier ones."""

    def settle(self) -> None:
        """Raise the first failure in program order; all earlier tasks have run."""


class _TaskStream:
    """The nodes that the enumeration writes, numbered by position.

    Tasks run when the stream waits: those of the main program in order, those of a pipeline in a drawn order.
    """

    def __init__(self, plan: TaskPlan, bindings: Bindings, tasks: _TaskRunner | None = None, rules: OrderRules | None = None,
                 seed: int = 0, tick: Callable[[], None] | None = None) -> None:
        """Create a stream. `tick` is called in each loop iteration and before each task, and may raise."""
        self.nodes: list[StreamNode] = []
        self.memory: dict[int, Array] = {}     # memory of live tensors allocated in bodies
        self._plan = plan
        self._bindings = bindings
        self._tasks = tasks
        self._rules = rules
        self._rng = random.Random(seed)
        self._n_executed = 0
        self._in_pipeline = False
        self._made: dict[int, Made] = {}       # by the number of a tensor allocated in a body
        self._numbers: list[int] = []          # for each node the number of tasks before it
        self._n_tasks = 0
        self._tick = tick

    def tick(self) -> None:
        if self._tick is not None:
            self._tick()

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
        self._made[made.fresh] = made
        self._add(made)

    def release(self, released: Released) -> None:
        self._add(released)

    def array_of(self, fresh: int) -> Array:
        if fresh not in self.memory:       # allocated at first use, so that only tensors in use take memory
            made = self._made[fresh]
            self.memory[fresh] = _undefined_memory(made.shape, self._plan.tensors[made.slot].ref.dtype)
        return self.memory[fresh]

    def catch_up(self) -> None:
        """Run the nodes added since the last call."""
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
        """Return the number of the node at which the main program continues, or the end of the stream so far."""
        return next((number for number in range(self._n_executed, len(self.nodes)) if ends_pipeline(self.nodes[number])), len(self.nodes))

    def _run(self, number: int) -> None:
        self.tick()
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
        """Tell whether two regions have a common element."""
        groups = self._bindings.groups
        if first.fresh != second.fresh or (first.fresh is None and groups[first.slot] != groups[second.slot]):
            return False
        first_region, second_region = (_region(view, _NOWHERE if view.fresh is not None else _address(self._bindings.arrays[view.slot]),
                                               self._plan.tensors[view.slot].ref.dtype.nbytes) for view in (first, second))
        return bool(np.shares_memory(first_region, second_region))

    def _add(self, node: StreamNode) -> int:
        self.nodes.append(node)
        self._numbers.append(self._n_tasks)
        self._n_tasks += isinstance(node, TaskInstance)
        return len(self.nodes) - 1


def _undefined_memory(shape: tuple[int, ...], dtype: DType) -> Array:
    """Return memory that exposes reads before writes: all bits set, which is NaN, -1 or true."""
    if dtype.is_bool:
        return np.ones(shape, np.bool_)
    return np.full((*shape, dtype.nbytes), 0xFF, np.uint8).view(dtype.np)[..., 0]


def stream_of(plan: TaskPlan, bindings: Bindings) -> tuple[StreamNode, ...]:
    """Return the nodes that the plan's enumeration writes, in order; joins are tuples of nodes. No task runs.

    Raises: R104 for a failed check, W205 for a task with overlapping outputs.
    """
    stream = _TaskStream(plan, bindings)
    enumerate_tasks(plan, bindings, stream)
    return tuple(stream.nodes)


# -- runs --------------------------------------------------------------------------------------------------------------
class Interpreter:
    """Runs one plan in NumPy. Keeps the stream for the simulator, as the native engine keeps its record."""

    def __init__(self, plan: TaskPlan, *, check_finite: bool = False) -> None:
        self.plan = plan
        self._check_finite = check_finite
        self._kernels = tuple(checked_kernel(use) if check_finite else use.kernel for use in plan.kernels)
        self._stream: tuple[StreamNode, ...] = ()
        self._bindings: Bindings | None = None
        self._recorder: Recorder | None = None
        self._prints = PrintKeeper()
        self._failed_task: int | None = None
        self.look_first: LookFirst | None = None
        self.runs_all = True      # False: runs make every task, and run those alone that the plan waits for
        self._is_cancelled = False
        self._going_on: tuple[_TaskRun, _TaskStream] | None = None      # of the run that goes on, or the last one

    def apart(self) -> Interpreter:
        """Return an interpreter of the same plan, whose runs do not affect this one."""
        interpreter = Interpreter(self.plan, check_finite=self._check_finite)
        interpreter.look_first = self.look_first
        return interpreter

    def to_look_at(self, bindings: Bindings) -> Interpreter:
        """Return the interpreter whose record shows the last run, which was one of these bindings."""
        del bindings
        return self

    def let_go(self) -> None:
        """Drop the arrays and the tasks of the last run, which cannot be looked at any more."""
        self._stream, self._bindings, self._going_on = (), None, None

    def n_run(self) -> int:
        """Return the number of tasks completed in the run that goes on, or in the last one; any thread may ask."""
        return 0 if self._going_on is None else self._going_on[0].n_run

    def n_made(self) -> int:
        """Return the number of tasks made so far."""
        return 0 if self._going_on is None else sum(isinstance(node, TaskInstance) for node in list(self._going_on[1].nodes))

    def run(self, bindings: Bindings, order_seed: int = 0) -> None:
        """Run every task: at each wait of the plan the tasks made so far, the others at the end.

        `order_seed`: draws the order of a pipeline's kernels.

        Raises: R101 for a failed task, R105 for a task that computed NaN or infinity (check_finite), both the first in program order; R104
        for a failed check (then no task has run, except those before a wait).
        """
        self._recorder = None
        self._prints = PrintKeeper()
        tasks = _TaskRun(self, bindings)
        writes = tuple(tuple(param.role.writes for param in use.kernel.memory_params) for use in self.plan.kernels)
        stream = _TaskStream(self.plan, bindings, tasks, OrderRules(self.plan.structure, bindings.groups, writes), order_seed,
                         self._tick)
        self._going_on = (tasks, stream)
        enumerate_tasks(self.plan, bindings, stream, lambda: tasks.n_run)
        self._stream = tuple(stream.nodes)
        self._bindings = bindings
        if self.look_first is not None:
            self.look_first(self.recorder, bindings)
        elif self.plan.rules.may_abort:
            self._told(keep_trace=False, n_run=tasks.n_run)
        if self.runs_all:
            stream.catch_up()

    def run_task(self, number: int, task: TaskInstance, bindings: Bindings, memory: Mapping[int, Array]) -> None:
        """Run one task; `number`: its position in program order.

        Raises: R101 for a failed guard, R105 for a fault of check_finite.
        """
        kernel = self._kernels[task.submit.kernel]
        args: dict[str, Array | Number] = {
            param.name: placed_array(bindings.arrays[view.slot] if view.fresh is None else memory[view.fresh], view)
            for param, view in zip(kernel.memory_params, task.views, strict=True)
        }
        args |= {param.name: value for param, value in zip(kernel.scalar_params, task.scalars, strict=True)}
        try:
            with np.errstate(all="ignore"):
                failed = failure_of(kernel, args, self._prints.of_task(number, task.submit.site, task.index), self._tick)
        except FaultFound as found:
            raise finite_error(self.plan, task.submit, task.index, found.number, found.fault) from None
        if failed is not None:
            raise kernel_guard_error(self.plan, task.submit, task.index, failed)

    def forget_prints_behind(self, number: int) -> None:
        """Drop the prints of tasks that follow the failed task `number` in program order."""
        self._failed_task = number

    def begin(self) -> None:
        """Clear an earlier cancel() before the next run starts."""
        self._is_cancelled = False

    def cancel(self) -> None:
        """Ask a run in another thread, running or about to start, to stop with KeyboardInterrupt."""
        self._is_cancelled = True

    def _tick(self) -> None:
        if self._is_cancelled:
            raise KeyboardInterrupt

    def take_prints(self) -> Prints:
        """Return what the last run printed, once."""
        prints, self._prints = self._prints.prints(), PrintKeeper()
        failed, self._failed_task = self._failed_task, None
        return prints if failed is None else until(prints, failed)

    @property
    def tasks(self) -> tuple[TaskInstance, ...]:
        """The tasks of the last run, in program order."""
        return tuple(node for node in self._stream if isinstance(node, TaskInstance))

    @property
    def intermediate_bytes(self) -> int:
        """Always 0: NumPy allocates the tensors of bodies, and their memory is not measured."""
        return 0

    @property
    def recorder(self) -> Recorder:
        """The last stream as a record of the runtime library; compiles the library if needed.

        Raises: C101 if there is no C compiler.
        """
        if self._recorder is None:
            self._recorder = self.record(self.plan)
        return self._recorder

    def record(self, plan: TaskPlan) -> Recorder:
        """Return the last stream as a new record with the kinds of edges that `plan` infers."""
        return record_stream(plan, self._bindings, self._stream)

    def simulate(self, *, keep_trace: bool) -> SimResult:
        """Return the simulated times of the last stream.

        Raises: R106 if a task does not fit the window, R111 if cycles exceed 64 bits.
        """
        return self._told(keep_trace=keep_trace, n_run=0)

    def _told(self, *, keep_trace: bool, n_run: int) -> SimResult:
        """Return the result of a simulation. `n_run`: the number of tasks run so far, for the error.

        Raises: R106 if a task does not fit the window, R111 if cycles exceed 64 bits.
        """
        recorder = self.recorder
        try:
            return recorder.simulate(self.plan.rules, keep_trace=keep_trace)
        except SimulationEnded as ended:
            raise ended_error(self.plan, recorder.raw_columns(), ended, n_run) from None


class _TaskRun:
    """The tasks of one run. After a failure only earlier tasks in program order still run; they cannot depend on the failed task."""

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


# -- records -----------------------------------------------------------------------------------------------------------
def record_stream(plan: TaskPlan, bindings: Bindings | None, stream: tuple[StreamNode, ...]) -> Recorder:
    """Return a record of a stream, written through the sink that C orchestrators use."""
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
        """Return a pto_task and the buffers that must outlive its use."""
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
            "bytes": task.traffic, "ranks": 0 if submit.on is None else task.rank + 1 + SOURCE_RANK * (task.source + 1), **arrays})
        return raw_task, args, arrays

    def _mark(self, mark: MarkInstance) -> tuple[Any, ...]:
        """Return a pto_mark and the buffers that must outlive its use.

        The mark's NOW flag is dropped, because its predecessors have run.
        """
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
        else:   # its memory is freed; the record needs distinct regions only, and never reads them
            address, raw.buffer = _NOWHERE, len(self.bindings.groups) + view.fresh
        raw.elem_bytes = self.plan.tensors[view.slot].ref.dtype.nbytes
        raw.data = self.ffi.cast("char *", address + view.offset * raw.elem_bytes)
        raw.extent, raw.stride, raw.flags = list(view.extent), list(view.stride), flags


_NOWHERE = 1 << 32   # a fake address, far from 0 for all offsets


class _RawMemory:
    """An address range with NumPy's array interface."""

    def __init__(self, address: int, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> None:
        self.__array_interface__ = {"version": 3, "data": (address, False), "shape": shape, "strides": strides,
                                    "typestr": f"|V{itemsize}"}


def placed_array(base: Array, view: PlacedView) -> Array:
    """Return the rank-2 array of a placed view on the memory of `base`, which must outlive the array."""
    if 0 in view.extent or base.size == 0:
        return np.zeros(view.extent, base.dtype)
    return _region(view, _address(base), base.itemsize).view(base.dtype)


def _region(view: PlacedView, base: int, itemsize: int) -> Array:
    """Return the elements of a placed view as raw bytes, without reading them. `base`: the address of its tensor."""
    return memory_at(base + view.offset * itemsize, view.extent, view.stride, itemsize)


def memory_at(address: int, extent: tuple[int, int], stride: tuple[int, int], itemsize: int) -> Array:
    """Return memory as a matrix of raw elements, without reading them; steps are in elements. Its owner must outlive the matrix."""
    return np.asarray(_RawMemory(address, extent, (stride[0] * itemsize, stride[1] * itemsize), itemsize))


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])
