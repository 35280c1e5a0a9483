"""Run one rank's part of a plan in this process, with the copies of other ranks over MPI.

Every process makes the same tasks in the same order and runs its own: a copy between two ranks is a send on one and a receive on the other,
at its place in program order. A send never waits, so ranks cannot wait for each other in a circle. Tasks run one after another, in NumPy
or by the compiled kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from pto_wsp.errors import MeshError, PeerError, PtoError, RankDifferenceError, TaskFailedError
from pto_wsp.ir import kernel as k
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.mesh import Mesh
from pto_wsp.ir.plan import Submit, TaskPlan
from pto_wsp.ir.plan_walk import submits
from pto_wsp.ops.guards import guards_of
from pto_wsp.ops.whole import IndexFault
from pto_wsp.run.bound import Array, Bindings
from pto_wsp.run.failures import Failure, PieceFault, kernel_guard_error, task_name
from pto_wsp.run.interpreter import Interpreter, placed_array
from pto_wsp.run.native import Engine, slots_of
from pto_wsp.run.orchestrator import PlacedView, TaskInstance
from pto_wsp.run.peers import Peers
from pto_wsp.run.prints import has_prints
from pto_wsp.source import Span, here
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class TensorRanks:
    """What a user's array is to ranks. `free`: axes of the mesh along which each rank has a copy of it; `cut`: ranks have parts."""

    free: tuple[int, ...] = ()
    cut: bool = False


class RankRunner(Interpreter):
    """Runs the tasks of this process's rank."""

    def __init__(self, plan: TaskPlan, mesh: Mesh, peers: Peers, tensors: Mapping[int, TensorRanks], collectives: Mapping[Span, str],
                 engine: Engine | None = None, *, check_finite: bool = False) -> None:
        """Create a runner. `tensors`: by slot; `collectives`: the name of the collective at a line; `engine`: runs kernels natively.

        Raises: M102 for plans whose tasks depend on what this rank does not have.
        """
        super().__init__(plan, check_finite=check_finite)
        self.mesh, self.peers, self._tensors, self._collectives = mesh, peers, tensors, collectives
        self._compiled = None if engine is None else _CompiledKernels(plan, engine)
        self.sent = np.zeros(peers.n, np.int64)       # bytes of copies to each rank, in the last run
        self._at = tuple(int(one) for one in mesh.coordinates(peers.rank) if isinstance(one, int))
        _refuse(plan, tensors, peers.most_tag)

    @property
    def rank(self) -> int:
        """The rank of this process."""
        return int(self.peers.rank)

    def apart(self) -> Interpreter:
        """Refuse: runs apart would send messages of their own.

        Raises: M102.
        """
        raise _only_in_one_process("a program over MPI runs as a whole")

    def run(self, bindings: Bindings, order_seed: int = 0) -> None:
        """Run this rank's tasks. On each rank: the error of one rank ends the run of all.

        Raises: M106 for a failure of another rank, M107 for ranks that differ, and the errors of a run.
        """
        peers = self.peers
        if peers.closed:
            raise PeerError("the program is closed, as a run over MPI has failed", here(), help="compile it again, on every rank")
        self.sent[:] = 0
        peers.turn, peers.where, peers.span = self._turn, f"the run of `{self.plan.name}`", here()
        try:
            peers.agree(f"run of {self.plan.name}", _facts(self.plan, bindings))
            super().run(bindings, order_seed)
            peers.where, peers.span = f"the end of the run of `{self.plan.name}`", here()
            peers.end_sends()
            peers.exchange(f"end of {self.plan.name}", "")
        except RankDifferenceError:      # all ranks have found it
            peers.closed = True
            raise
        except BaseException as problem:
            peers.report(problem)
            raise

    def run_task(self, number: int, task: TaskInstance, bindings: Bindings, memory: Mapping[int, Array]) -> None:
        """Run one task, or this rank's side of a copy; nothing for a task of other ranks.

        Raises: R101 for a failed guard, M106 where a message does not come.
        """
        target = task.views[-1]
        ranks = self._tensors.get(target.slot) if target.fresh is None else None
        if ranks is not None and ranks.free and task.rank == task.source:
            if task.rank == self._first_of_copies(ranks.free):
                self._run_own(number, self._own_copy(task, ranks.free, bindings), bindings, memory)
        elif task.source in (-1, task.rank):
            if task.rank == self.rank:
                self._run_own(number, task, bindings, memory)
        elif task.source == self.rank:
            part = self._part(task, 0, bindings, memory)
            if part.size:
                self.sent[task.rank] += part.nbytes
                self.peers.send(task.rank, task.submit.site, part.tobytes())
        elif task.rank == self.rank:
            part = self._part(task, 1, bindings, memory)
            if part.size:
                self._say_where(task)
                data = self.peers.receive(task.source, task.submit.site, part.nbytes)
                part[...] = np.frombuffer(data, part.dtype).reshape(part.shape)

    def _run_own(self, number: int, task: TaskInstance, bindings: Bindings, memory: Mapping[int, Array]) -> None:
        if self._compiled is None:
            super().run_task(number, task, bindings, memory)
        else:
            self._compiled.run(task, bindings, memory)

    def _say_where(self, task: TaskInstance) -> None:
        span = task.submit.span
        collective = self._collectives.get(span)
        self.peers.span = span
        self.peers.where = f"`{collective or 'copy'}`, {span}: copy from rank {task.source} to rank {task.rank}"

    def _part(self, task: TaskInstance, which: int, bindings: Bindings, memory: Mapping[int, Array]) -> Array:
        """Return the source (0) or the target (1) of a copy, as many elements as both have."""
        view = task.views[which]
        rows, cols = (min(one) for one in zip(task.views[0].extent, task.views[1].extent, strict=True))
        base = bindings.arrays[view.slot] if view.fresh is None else memory[view.fresh]
        return placed_array(base, replace(view, extent=(rows, cols)))

    # -- arrays that every rank has a copy of --------------------------------------------------------------------------

    def _first_of_copies(self, free: tuple[int, ...]) -> int:
        """Return the first rank of those that have copies of what this one has a copy of: in one process, the array takes its copy."""
        return self._rank_at([0 if axis in free else one for axis, one in enumerate(self._at)])

    def _rank_at(self, at: list[int]) -> int:
        rank = 0
        for one, size in zip(at, self.mesh.shape, strict=True):
            rank = rank * size + one
        return rank

    def _own_copy(self, task: TaskInstance, free: tuple[int, ...], bindings: Bindings) -> TaskInstance:
        """Return the task that copies the first rank's copy to the array, with this rank's own copy."""
        copy = 0
        for axis in free:
            copy = copy * self.mesh.shape[axis] + self._at[axis]
        source, target = task.views
        copies = bindings.arrays[source.slot]
        return replace(task, views=(replace(source, offset=source.offset + copy * (copies.strides[0] // copies.itemsize)), target))


def _refuse(plan: TaskPlan, tensors: Mapping[int, TensorRanks], most_tag: int) -> None:
    """Refuse what a process with one rank's data cannot decide.

    Raises: M102.
    """
    if plan.n_streams > 1 or plan.channels:
        raise _only_in_one_process("processes and channels do not run over MPI")
    for number, slot in enumerate(plan.tensors):
        if slot.scalars and (slot.writes or slot.fresh or tensors.get(number, TensorRanks()).cut):
            raise MeshError(f"the tasks depend on elements of `{slot.ref.shown}`, which a rank does not have before it makes them", here(),
                            expected="conditions, bounds and offsets of symbols and replicated arrays that no task writes",
                            found="a tensor that tasks write" if slot.writes else "a tensor that is cut",
                            help="compile without comm=, in one process")
    if plan.n_sites > most_tag:
        raise MeshError("the workload has more calls than MPI has tags", here(), expected=f"at most {most_tag}", found=f"{plan.n_sites}")
    for task in submits(plan):
        use = plan.kernels[task.kernel].kernel
        if task.on is not None and task.on.crosses and len(use.memory_params) != 2:
            raise MeshError("a task between two ranks is no copy", task.span)


def _only_in_one_process(problem: str) -> MeshError:
    return MeshError(problem, here(), help="compile without comm=, in one process")


def _facts(plan: TaskPlan, bindings: Bindings) -> dict[str, bytes | str]:
    """Return what all ranks must have alike before a run: shapes, values of symbols, and arrays that decide which tasks there are."""
    facts: dict[str, bytes | str] = {}
    for slot, array in zip(plan.tensors, bindings.arrays, strict=True):
        if not slot.fresh:
            facts[f"the shape of `{slot.ref.shown}`"] = repr(array.shape)
        if slot.scalars:
            facts[f"the elements of `{slot.ref.shown}`, which decide which tasks there are"] = array.tobytes()
    for symbol, value in zip(plan.symbols, bindings.symbols, strict=True):
        facts[f"the value of `{symbol.name}`"] = repr(value)
    return facts


# -- compiled kernels --------------------------------------------------------------------------------------------------
class _CompiledKernels:
    """Calls the kernels of an artifact, one task at a time."""

    def __init__(self, plan: TaskPlan, engine: Engine) -> None:
        if has_prints(plan):
            raise MeshError("kernels that print do not run compiled over MPI", here(),
                            help='leave the prints out, or compile(target="interp")')
        self._plan = plan
        self._ffi, self._lib = engine.runtime.ffi, engine.runtime.lib
        self._engine = engine            # keeps the library open
        self._table = engine.artifact.table
        most = max((int(self._table.kernels[number].scratch_bytes) for number in range(self._table.n_kernels)), default=0)
        self._memory = np.empty(most + 128, np.uint8)
        address = int(self._memory.__array_interface__["data"][0])
        self._scratch = self._ffi.cast("char *", -(-address // 64) * 64)
        self._cancel = self._ffi.new("int32_t *")
        self._context = self._ffi.new("pto_context *", {"cancel": self._cancel})

    def run(self, task: TaskInstance, bindings: Bindings, memory: Mapping[int, Array]) -> None:
        """Run a task.

        Raises: R101 for a failed guard.
        """
        kernel = self._plan.kernels[task.submit.kernel].kernel
        args = self._ffi.new("pto_arg[]", max(1, len(task.views)))
        regions: list[tuple[Array, k.Role]] = []
        for raw, view, param in zip(args, task.views, kernel.memory_params, strict=False):
            base = bindings.arrays[view.slot] if view.fresh is None else memory[view.fresh]
            self._bind(raw, view, base, self._plan.tensors[view.slot].ref.dtype, param.role)
            regions.append((placed_array(base, view), param.role))
        for number, (region, role) in enumerate(regions):      # an argument that another one overwrites is copied before the kernel runs
            if role.reads and any(other != number and writes.writes and np.shares_memory(region, written)
                                  for other, (written, writes) in enumerate(regions)):
                args[number].flags |= self._lib.PTO_STAGE
        scalars = self._ffi.new("int64_t[]", slots_of(task.scalars, [param.dtype.is_float for param in kernel.scalar_params]) or [0])
        code = int(self._table.kernels[task.submit.kernel].entry(args, scalars, self._scratch, self._context))
        if code:
            raise self._failed(task.submit, task.index, code - 1)

    def _bind(self, raw: Any, view: PlacedView, base: Array, dtype: DType, role: k.Role) -> None:
        raw.data = self._ffi.cast("char *", int(base.__array_interface__["data"][0]) + view.offset * dtype.nbytes)
        raw.extent, raw.stride = list(view.extent), list(view.stride)
        raw.buffer, raw.elem_bytes = view.slot, dtype.nbytes
        raw.flags = (self._lib.PTO_READ if role.reads else 0) | (self._lib.PTO_WRITE if role.writes else 0)

    def _failed(self, submit: Submit, index: tuple[int, ...], guard: int) -> PtoError:
        kernel, fault = self._plan.kernels[submit.kernel].kernel, self._context.fault
        if kernel.c_body is not None:
            return TaskFailedError(f"task {task_name(self._plan, submit, index)} failed: its own C body returned {guard + 1}", kernel.span,
                                   expected="return 0", notes=(f"the task was made at {submit.span}",))
        where = (IndexFault(fault.row, fault.col, fault.value, fault.upper + 1)
                 if isinstance(guards_of(kernel)[guard].stmt, k.Compute | k.Gather | k.Scatter)
                 else PieceFault(fault.row, fault.col, fault.lower, fault.upper))
        return kernel_guard_error(self._plan, submit, index, Failure(guard, where))
