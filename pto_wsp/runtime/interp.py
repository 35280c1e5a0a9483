"""The interpreter: run a plan with NumPy, task by task in program order. It is the oracle, and needs no C compiler."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pto_wsp.artifact.build import load_runtime
from pto_wsp.plan.model import Submit, TaskPlan
from pto_wsp.runtime.binding import Array, Bindings, Number
from pto_wsp.runtime.failures import describe_check, kernel_guard_error
from pto_wsp.runtime.finite import FaultFound, checked_kernel, finite_error
from pto_wsp.runtime.kernel_interp import failure_of
from pto_wsp.runtime.marks import MarkFlag
from pto_wsp.runtime.native import Recorder, SimResult, slots_of
from pto_wsp.runtime.prints import PrintKeeper, Prints
from pto_wsp.runtime.stream import CheckFailed, MarkInstance, PlacedView, TaskInstance, enumerate_tasks

StreamNode = TaskInstance | MarkInstance | tuple[int, ...]    # the last: a join of nodes


@dataclass(slots=True)
class _Kept:
    """Tasks, marks and joins in the order in which they were made; a node is its place in it."""

    nodes: list[StreamNode] = field(default_factory=list)

    def submit(self, task: TaskInstance) -> int:
        self.nodes.append(task)
        return len(self.nodes) - 1

    def join(self, nodes: tuple[int, ...]) -> int:
        self.nodes.append(nodes)
        return len(self.nodes) - 1

    def mark(self, mark: MarkInstance) -> int:
        self.nodes.append(mark)
        return len(self.nodes) - 1


def stream_of(plan: TaskPlan, bindings: Bindings) -> tuple[StreamNode, ...]:
    """Return the plan's tasks and marks, and joins as tuples of nodes, in the order in which they are made.

    Raises: R104 for a check that does not hold.
    """
    kept = _Kept()
    try:
        enumerate_tasks(plan, bindings, kept)
    except CheckFailed as failed:
        raise describe_check(failed.failed, failed.found, failed.lower, failed.upper, failed.loops) from None
    return tuple(kept.nodes)


class Interpreter:
    """Runs of one plan in NumPy. The stream is kept for the simulator, as the native engine keeps its record."""

    def __init__(self, plan: TaskPlan, *, check_finite: bool = False) -> None:
        self.plan = plan
        self._kernels = tuple(checked_kernel(use) if check_finite else use.kernel for use in plan.kernels)
        self._stream: tuple[StreamNode, ...] = ()
        self._bindings: Bindings | None = None
        self._recorder: Recorder | None = None
        self._prints = PrintKeeper()

    def run(self, bindings: Bindings, order_seed: int = 0) -> None:
        """Run every task in program order, whatever `order_seed` says.

        Raises: R101 for a task that failed, R105 for one that made a NaN or infinity (check_finite), R104 for a check that did not
        hold (no task has run then).
        """
        del order_seed
        self._recorder = None
        self._stream = stream_of(self.plan, bindings)
        self._bindings = bindings
        self._prints = PrintKeeper()
        tasks = (node for node in self._stream if isinstance(node, TaskInstance))
        for number, task in enumerate(tasks):
            self._task(number, task, bindings)

    def _task(self, number: int, task: TaskInstance, bindings: Bindings) -> None:
        kernel = self._kernels[task.submit.kernel]
        args: dict[str, Array | Number] = {
            param.name: placed_array(bindings.arrays[view.slot], view)
            for param, view in zip(kernel.memory_params, task.views, strict=True)
        }
        args |= {param.name: value for param, value in zip(kernel.scalar_params, task.scalars, strict=True)}
        try:
            with np.errstate(all="ignore"):
                failed = failure_of(kernel, args, self._prints.of_task(number, task.submit.site, task.index))
        except FaultFound as found:
            raise finite_error(self.plan, task.submit, task.index, found.number, found.fault) from None
        if failed is not None:
            raise kernel_guard_error(self.plan, task.submit, task.index, failed)

    def cancel(self) -> None:
        """Do nothing: the interpreter runs in the caller's thread of Python and stops at its own interrupt."""

    def take_prints(self) -> Prints:
        """Return what the last run printed, once."""
        taken, self._prints = self._prints.prints(), PrintKeeper()
        return taken

    @property
    def recorder(self) -> Recorder:
        """The last stream as a record of the runtime library, which needs a C compiler once.

        Raises: C101 when there is none.
        """
        if self._recorder is None:
            self._recorder = record_stream(self.plan, self._bindings, self._stream)
        return self._recorder

    def simulate(self, *, keep_trace: bool) -> SimResult:
        """Return the simulated times of the last stream."""
        return self.recorder.simulate(self.plan.n_executors, self.plan.window, keep_trace=keep_trace)


def record_stream(plan: TaskPlan, bindings: Bindings | None, stream: tuple[StreamNode, ...]) -> Recorder:
    """Write a stream into a record through the same sink that C orchestrators use."""
    runtime = load_runtime()
    ffi, lib = runtime.ffi, runtime.lib
    recorder = Recorder(runtime, window=plan.window, infer=plan.infer, max_tasks=max(1, len(stream)))
    sink = lib.pto_record_sink(recorder.raw)
    ids: list[int] = []
    for node in stream:
        if isinstance(node, TaskInstance):
            assert bindings is not None
            raw = _raw_task(ffi, lib, plan, node, bindings, ids)
            ids.append(sink.submit(sink, raw[0]))
        elif isinstance(node, MarkInstance):
            raw = _raw_mark(ffi, lib, node, bindings, ids)
            ids.append(sink.mark(sink, raw[0]))
        else:
            join = sink.join_open(sink)
            for member in node:
                sink.join_add(sink, join, ids[member])
            ids.append(sink.join_close(sink, join, -1))
    return recorder


def _raw_task(ffi: Any, lib: Any, plan: TaskPlan, task: TaskInstance, bindings: Bindings, ids: list[int]) -> tuple[Any, ...]:
    """Return a pto_task and what must stay alive with it."""
    submit: Submit = task.submit
    use = plan.kernels[submit.kernel]
    args = ffi.new("pto_arg[]", max(1, len(task.views)))
    for raw, view, param in zip(args, task.views, use.kernel.memory_params, strict=False):
        _place(ffi, raw, view, bindings)
        raw.flags = (lib.PTO_READ if param.role.reads else 0) | (lib.PTO_WRITE if param.role.writes else 0)
    slots = slots_of(task.scalars, [param.dtype.is_float for param in use.kernel.scalar_params])
    arrays = {name: ffi.new("int64_t[]", values or [0]) for name, values in (
        ("scalars", slots), ("index", list(task.index)), ("order", [ids[n] for n in task.order]),
        ("after", [ids[n] for n in task.after]))}
    raw_task = ffi.new("pto_task *", {
        "kernel": submit.kernel, "site": submit.site, "worker": task.worker, "cost": task.cost, "n_args": len(task.views),
        "n_scalars": len(slots), "n_index": len(task.index), "n_order": len(task.order), "n_after": len(task.after), "args": args,
        "stream": task.stream, **arrays})
    return raw_task, args, arrays


def _place(ffi: Any, raw: Any, view: PlacedView, bindings: Bindings) -> None:
    array = bindings.arrays[view.slot]
    raw.data = ffi.cast("char *", array.__array_interface__["data"][0] + view.offset * array.itemsize)
    raw.extent, raw.stride = list(view.extent), list(view.stride)
    raw.buffer, raw.elem_bytes = bindings.groups[view.slot], array.itemsize


def _raw_mark(ffi: Any, lib: Any, mark: MarkInstance, bindings: Bindings | None, ids: list[int]) -> tuple[Any, ...]:
    """Return a pto_mark and what must stay alive with it. What it is to wait for has run: nothing executes here."""
    args = ffi.new("pto_arg[]", max(1, len(mark.reads)))
    for raw, view in zip(args, mark.reads, strict=False):
        assert bindings is not None
        _place(ffi, raw, view, bindings)
        raw.flags = lib.PTO_READ
    arrays = {name: ffi.new("int64_t[]", [ids[n] for n in nodes] or [0])
              for name, nodes in (("before", mark.before), ("order", mark.order))}
    raw_mark = ffi.new("pto_mark *", {
        "stream": mark.stream, "flags": mark.flags & ~MarkFlag.NOW, "why": mark.why, "stall": mark.stall, "site": mark.site,
        "n_before": len(mark.before), "n_order": len(mark.order), "n_args": len(mark.reads), "args": args, "delay": mark.delay, **arrays})
    return raw_mark, args, arrays


class _Memory:
    """An address as NumPy understands one."""

    def __init__(self, address: int, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> None:
        self.__array_interface__ = {"version": 3, "data": (address, False), "shape": shape, "strides": strides,
                                    "typestr": f"|V{itemsize}"}


def placed_array(base: Array, view: PlacedView) -> Array:
    """Return the rank-2 array that a placed view describes, on the memory of `base`, which must outlive it."""
    if 0 in view.extent or base.size == 0:
        return np.zeros(view.extent, base.dtype)
    address = base.__array_interface__["data"][0] + view.offset * base.itemsize
    strides = (view.stride[0] * base.itemsize, view.stride[1] * base.itemsize)
    raw = np.asarray(_Memory(address, view.extent, strides, base.itemsize))
    return raw.view(base.dtype)
