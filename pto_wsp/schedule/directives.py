"""Define the policies of dispatch, timing and the task graph.

Each policy is data: it can be printed, compared, and written to and read from JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np

from pto_wsp.calls import NamedMembers, NoValues, user_calls
from pto_wsp.errors import PolicyValueError
from pto_wsp.records import After, Field
from pto_wsp.schedule.keys import KeyLike, trace_key, trace_keys
from pto_wsp.schedule.policy import Count, Executors, Key, PerMillisecond, Policy, key_code, shown_value
from pto_wsp.schedule.support import Directive, enforced, recorded, refused
from pto_wsp.source import here

# What acts in simulated time alone says so.
_IN_TIME = "in simulated time; host threads take ready tasks as they come, and results are the same"
_HOME = enforced("each task has its home in simulated time; host threads run those of one home together")
_PLACES = recorded("kernel_config.py asks for so many threads of control processors; which of them hands out a task, and on which core it "
                   "runs, is the runtime's choice")
_QUEUES = recorded("the runtime has its own queues of ready tasks, one for each kind of core")
_AT_ONCE = enforced("a task may run once it is submitted")


# -- dispatch ----------------------------------------------------------------------------------------------------------
class RoundRobin(Policy):
    """Dispatch by the submission index modulo n."""

    spelled: ClassVar[Mapping[str, str]] = {"round_robin": "DispatchPolicy.round_robin({num_aicpus})"}
    said_as: ClassVar[str] = "dispatch.{0.kind}"
    entries: ClassVar[tuple[Directive, ...]] = (Directive("dispatch.round_robin", enforced(f"each task has its home {_IN_TIME}"), _PLACES),)
    kind: Literal["round_robin"] = "round_robin"
    kind_is_class = True
    num_aicpus: Executors


class Affinity(Policy):
    """Dispatch by the key modulo n: tasks with equal keys share an executor."""

    spelled: ClassVar[Mapping[str, str]] = {"affinity": "DispatchPolicy.affinity({key}, {num_aicpus})"}
    said_as: ClassVar[str] = "dispatch.{0.kind}"
    entries: ClassVar[tuple[Directive, ...]] = (Directive("dispatch.affinity", _HOME, _PLACES),)
    kind: Literal["affinity"] = "affinity"
    kind_is_class = True
    key: Key
    num_aicpus: Executors


class Hash(Policy):
    """Dispatch by FNV-1a-64 of the key's 8 little-endian bytes, modulo n."""

    spelled: ClassVar[Mapping[str, str]] = {"hash": "DispatchPolicy.hash({key}, {num_aicpus})"}
    said_as: ClassVar[str] = "dispatch.{0.kind}"
    entries: ClassVar[tuple[Directive, ...]] = (Directive("dispatch.hash", _HOME, _PLACES),)
    kind: Literal["hash"] = "hash"
    kind_is_class = True
    key: Key
    num_aicpus: Executors


class DispatchBy(Policy):
    """Dispatch by fn(t) modulo n."""

    spelled: ClassVar[Mapping[str, str]] = {"dispatch_by": "DispatchPolicy.dispatch_by({key}, {num_aicpus})"}
    said_as: ClassVar[str] = "dispatch.{0.kind}"
    entries: ClassVar[tuple[Directive, ...]] = (Directive("dispatch.dispatch_by", _HOME, _PLACES),)
    kind: Literal["dispatch_by"] = "dispatch_by"
    kind_is_class = True
    key: Key
    num_aicpus: Executors


class DispatchSteal(Policy):
    """Dispatch from one queue that all executors share; n defaults to the number of AICPUs of the arch."""

    spelled: ClassVar[Mapping[str, str]] = {"work_steal": "DispatchPolicy.work_steal({num_aicpus})"}
    said_as: ClassVar[str] = "dispatch.{0.kind}"
    entries: ClassVar[tuple[Directive, ...]] = (
        Directive("dispatch.work_steal", enforced(f"executors share one queue {_IN_TIME}"), _PLACES),)
    kind: Literal["work_steal"] = "work_steal"
    kind_is_class = True
    num_aicpus: Executors | None = None


Dispatch = Annotated[RoundRobin | Affinity | Hash | DispatchBy | DispatchSteal, Field(discriminator="kind")]


@user_calls()
class DispatchPolicy(NoValues):
    """Construct the policies that select each task's home executor."""

    @staticmethod
    def round_robin(num_aicpus: int) -> RoundRobin:
        """Return a policy that selects the submission index mod `num_aicpus`."""
        return RoundRobin(num_aicpus=num_aicpus)

    @staticmethod
    def affinity(key: KeyLike, num_aicpus: int = 4) -> Affinity:
        """Return a policy that selects the key mod `num_aicpus`."""
        return Affinity(key=trace_key(key, "affinity"), num_aicpus=num_aicpus)

    @staticmethod
    def hash(key: KeyLike, num_aicpus: int = 4) -> Hash:
        """Return a policy that selects FNV-1a-64 of the key, mod `num_aicpus`."""
        return Hash(key=trace_key(key, "hash"), num_aicpus=num_aicpus)

    @staticmethod
    def dispatch_by(fn: KeyLike, num_aicpus: int = 4) -> DispatchBy:
        """Return a policy that selects fn(t) mod `num_aicpus`."""
        return DispatchBy(key=trace_key(fn, "dispatch_by"), num_aicpus=num_aicpus)

    @staticmethod
    def work_steal(num_aicpus: int | None = None) -> DispatchSteal:
        """Return a policy with one queue that all executors share."""
        return DispatchSteal(num_aicpus=num_aicpus)


_STREAM = (enforced("edges order the tasks of a stream, for host threads and in simulated time alike"),
           refused("tasks of a stream would not run in the order of their submission"))
# Said with a number, and with a key: they have no class.
STREAMS = (Directive("streams", *_STREAM), Directive("stream_by", *_STREAM))


# -- timing ------------------------------------------------------------------------------------------------------------
@user_calls()
class Timing(Policy):
    """When submitted tasks are released; `TimingPolicy` constructs the values."""

    spelled: ClassVar[Mapping[str, str]] = {
        "immediate": "TimingPolicy.immediate",
        "batched": "TimingPolicy.batched({n})",
        "interleaved": "TimingPolicy.interleaved({n})",
        "rate_limit": "TimingPolicy.rate_limit({tasks_per_ms})",
    }
    said_as: ClassVar[str] = "timing.{0.kind}"
    entries: ClassVar[tuple[Directive, ...]] = (
        Directive("timing.immediate", _AT_ONCE, enforced("a task is submitted when its turn comes")),
        *(Directive(f"timing.{kind}", enforced(f"tasks are released {_IN_TIME}"),
                    recorded("the runtime releases tasks as soon as it has them")) for kind in ("batched", "interleaved", "rate_limit")),
    )
    kind: Literal["immediate", "batched", "interleaved", "rate_limit"] = "immediate"
    n: Count | None = None
    tasks_per_ms: PerMillisecond | None = None
    needs: ClassVar[dict[str, str]] = {"batched": "n", "interleaved": "n", "rate_limit": "tasks_per_ms"}

    def __call__(self) -> Timing:
        """Return the policy itself, so that `TimingPolicy.immediate()` works like the other policies.

        Raises: S102 for any policy but `immediate`.
        """
        if self != Timing():
            raise PolicyValueError("a timing policy is no function", here(), expected=repr(self), found=f"{self!r}()",
                                   help="leave the second pair of brackets out")
        return self


class _Immediate:
    """Construct `TimingPolicy.immediate` at each access."""

    def __get__(self, instance: object, owner: type) -> Timing:
        return Timing()


@user_calls()
class TimingPolicy(NoValues):
    """Construct the policies for releasing submitted tasks: immediate, batched(n), interleaved(k) or rate_limit(tasks_per_ms)."""

    immediate = _Immediate()

    @staticmethod
    def batched(n: int) -> Timing:
        """Return a policy that releases n tasks at a time."""
        return Timing(kind="batched", n=n)

    @staticmethod
    def interleaved(k: int) -> Timing:
        """Return a policy that releases tasks of k streams in turn."""
        return Timing(kind="interleaved", n=k)

    @staticmethod
    def rate_limit(tasks_per_ms: float) -> Timing:
        """Return a policy that releases at most `tasks_per_ms` tasks per millisecond."""
        return Timing(kind="rate_limit", tasks_per_ms=tasks_per_ms)


# -- task graph --------------------------------------------------------------------------------------------------------
WindowUnit: TypeAlias = Literal["tasks", "bytes", "entries", "edges", "ready"]


class WindowMode(Enum, metaclass=NamedMembers):
    """What happens to a task when the window is full."""

    STALL = "stall"
    ABORT = "abort"
    BENCHMARK = "benchmark"

    def __repr__(self) -> str:
        return f"WindowMode.{self.name}"


def _windows() -> Iterator[Directive]:
    full = {
        WindowMode.STALL: enforced("a stream waits for room in simulated time; for host threads, tensors that bodies make use the memory "
                                   "of those that a window has let go"),
        WindowMode.ABORT: enforced("tasks are simulated before a kernel runs, and a run without room for one ends there"),
        WindowMode.BENCHMARK: enforced("tasks without room are counted in stats.window, and nothing waits"),
    }
    for unit, ring in (("tasks", "task ring"), ("bytes", "heap"), ("entries", "map"), ("edges", "pool of dependencies"),
                       ("ready", "queue of ready tasks")):
        for mode, host in full.items():
            yield Directive(f"task_graph.window.{unit}.{mode.value}", host,
                            recorded(f"the runtime's {ring} stalls when it is full; it sets the size, and LAUNCH in kernel_config.py "
                                     "says this one") if mode is WindowMode.STALL else
                            refused("the runtime only stalls: it neither ends the run nor counts"))


@user_calls()
class TaskWindow(Policy):
    """A bound on what a stream has in flight, in one unit.

    Tasks, bytes (of intermediates that tasks write), entries (arguments in memory) and edges (predecessors) are those of tasks that are
    submitted and not retired: a ring whose slots are freed in order. Of unit "ready": tasks that are ready and not running.
    """

    said_as: ClassVar[str] = "task_graph.window.{0.unit}.{0.mode.value}"
    entries: ClassVar[tuple[Directive, ...]] = tuple(_windows())
    size: Count
    unit: WindowUnit = "tasks"
    mode: WindowMode = WindowMode.STALL
    positional: ClassVar[tuple[str, ...]] = ("size", "unit", "mode")

    if TYPE_CHECKING:
        def __init__(self, size: int, unit: WindowUnit = "tasks", mode: WindowMode = WindowMode.STALL) -> None: ...


def _one_of_a_unit(windows: tuple[TaskWindow, ...]) -> tuple[TaskWindow, ...]:
    units = [window.unit for window in windows]
    if len(windows) < 2 or len(set(units)) < len(units):
        raise ValueError("at least two windows, each of a unit of its own")
    return windows


Windows = Annotated[tuple[TaskWindow, ...], After(_one_of_a_unit)]
_UNITS: tuple[str, ...] = get_args(WindowUnit)


def by_unit(windows: Sequence[TaskWindow]) -> TaskWindow | tuple[TaskWindow, ...]:
    """Return windows in the order of their units; one alone as itself."""
    ordered = tuple(sorted(windows, key=lambda window: _UNITS.index(window.unit)))
    return ordered[0] if len(ordered) == 1 else ordered


_INFERRED = refused("the runtime infers edges from overlapping views and cannot be told not to")


@user_calls()
class Deps(Policy):
    """Where edges come from: overlapping regions, exact tensor matches, the workload's structure, or structure and regions."""

    spelled: ClassVar[Mapping[str, str]] = {
        "exact": "Deps.infer_tensor_map_exact()",
        "overlap": "Deps.infer_bytes_overlap()",
        "explicit": "Deps.explicit()",
        "hybrid": "Deps.hybrid()",
    }
    said_as: ClassVar[str] = "task_graph.deps.{0.kind}"
    entries: ClassVar[tuple[Directive, ...]] = (
        Directive("task_graph.deps.exact", enforced("edges come from equal regions; that none overlap in part is proved, or refused"),
                  _INFERRED),
        Directive("task_graph.deps.overlap", enforced("edges come from regions that share an element, and from after="),
                  enforced("the runtime infers reads and writes after writes, the package names the rest")),
        Directive("task_graph.deps.explicit",
                  enforced("edges come from structure alone; what it leaves open is proved to be apart"), _INFERRED),
        Directive("task_graph.deps.hybrid", enforced("edges come from structure and from regions that share an element"),
                  enforced("as overlap, and program order is named where data does not give it")),
    )
    kind: Literal["exact", "overlap", "explicit", "hybrid"] = "overlap"

    @staticmethod
    def infer_tensor_map_exact() -> Deps:
        """Return a policy that adds edges between accesses to equal regions."""
        return Deps(kind="exact")

    @staticmethod
    def infer_bytes_overlap() -> Deps:
        """Return a policy that adds edges between accesses that share a byte, and edges from after= (the default of .task_graph)."""
        return Deps(kind="overlap")

    @staticmethod
    def explicit() -> Deps:
        """Return a policy that adds edges only from the workload's structure."""
        return Deps(kind="explicit")

    @staticmethod
    def hybrid() -> Deps:
        """Return a policy that adds edges from structure and from overlapping regions (the default without .task_graph)."""
        return Deps(kind="hybrid")


@user_calls()
class Pools(Policy):
    """What an executor is: an AICPU (single), a core of the task's unit (by_exec_unit), or a member of the pool of a key (custom)."""

    spelled: ClassVar[Mapping[str, str]] = {
        "single": "Pools.single()",
        "by_exec_unit": "Pools.by_exec_unit()",
        "custom": "Pools.custom({key})",
    }
    said_as: ClassVar[str] = "task_graph.pools.{0.kind}"
    entries: ClassVar[tuple[Directive, ...]] = (
        Directive("task_graph.pools.single", enforced(f"each AICPU is one executor {_IN_TIME}"),
                  recorded("a task runs on any core of its unit")),
        Directive("task_graph.pools.by_exec_unit", enforced(f"a task runs on a core of its unit {_IN_TIME}"),
                  enforced("a task runs on a core of its unit")),
        Directive("task_graph.pools.custom", enforced(f"a task runs in the pool that its key names {_IN_TIME}"),
                  recorded("a task runs on any core of its unit")),
    )
    kind: Literal["single", "by_exec_unit", "custom"] = "single"
    key: Key | None = None
    needs: ClassVar[dict[str, str]] = {"custom": "key"}

    @staticmethod
    def single() -> Pools:
        """Return a policy in which each AICPU is one executor."""
        return Pools()

    @staticmethod
    def by_exec_unit() -> Pools:
        """Return a policy in which a task runs on a core of its unit, among the cores of its AICPU."""
        return Pools(kind="by_exec_unit")

    @staticmethod
    def custom(fn: KeyLike) -> Pools:
        """Return a policy in which a task runs in the pool that fn(t) selects."""
        return Pools(kind="custom", key=trace_key(fn, "Pools.custom"))


@user_calls()
class ReadyPolicy(Policy):
    """Which ready task starts first: fifo, work_steal (an idle executor takes tasks of others), or priority(fn)."""

    spelled: ClassVar[Mapping[str, str]] = {
        "fifo": "ReadyPolicy.fifo()",
        "work_steal": "ReadyPolicy.work_steal()",
        "priority": "ReadyPolicy.priority({key})",
    }
    said_as: ClassVar[str] = "task_graph.ready.{0.kind}"
    entries: ClassVar[tuple[Directive, ...]] = (
        *(Directive(f"task_graph.ready.{kind}", enforced(f"an executor takes ready tasks in this order {_IN_TIME}"), _QUEUES)
          for kind in ("fifo", "work_steal")),
        Directive("task_graph.ready.priority", enforced("the highest goes first, in simulated time and for host threads alike"), _QUEUES),
    )
    kind: Literal["fifo", "work_steal", "priority"] = "fifo"
    key: Key | None = None
    needs: ClassVar[dict[str, str]] = {"priority": "key"}

    @staticmethod
    def fifo() -> ReadyPolicy:
        """Return a policy that starts the task with the earliest ready time, then the one submitted first."""
        return ReadyPolicy()

    @staticmethod
    def work_steal() -> ReadyPolicy:
        """Return a policy like fifo in which an idle executor takes ready tasks of others."""
        return ReadyPolicy(kind="work_steal")

    @staticmethod
    def priority(fn: KeyLike) -> ReadyPolicy:
        """Return a policy that starts the task with the highest fn(t)."""
        return ReadyPolicy(kind="priority", key=trace_key(fn, "ReadyPolicy.priority"))


@user_calls()
class StartPolicy(Policy):
    """When execution starts: with the first task, after orchestration, or once n tasks are submitted."""

    spelled: ClassVar[Mapping[str, str]] = {
        "after_orchestration": "StartPolicy.after_orchestration()",
        "threshold": "StartPolicy.threshold({n})",
    }
    said_as: ClassVar[str] = "task_graph.start.{0.kind}"
    entries: ClassVar[tuple[Directive, ...]] = (
        Directive("task_graph.start.immediate", _AT_ONCE, _AT_ONCE),
        *(Directive(f"task_graph.start.{kind}", enforced(f"the first task waits {_IN_TIME}"),
                    recorded("when the first task runs is the runtime's choice")) for kind in ("after_orchestration", "threshold")),
    )
    kind: Literal["immediate", "after_orchestration", "threshold"] = "immediate"
    n: Count | None = None
    needs: ClassVar[dict[str, str]] = {"threshold": "n"}

    @staticmethod
    def after_orchestration() -> StartPolicy:
        """Return a policy that starts execution when all tasks are submitted."""
        return StartPolicy(kind="after_orchestration")

    @staticmethod
    def threshold(n: int) -> StartPolicy:
        """Return a policy that starts execution when n tasks are submitted."""
        return StartPolicy(kind="threshold", n=n)


@user_calls()
class TracePolicy(Policy):
    """What a task costs in simulated time: the cycles of the arch model (none), or cost_fn(t) (cycles)."""

    spelled: ClassVar[Mapping[str, str]] = {"none": "TracePolicy.none()", "cycles": "TracePolicy.cycles({key})"}
    said_as: ClassVar[str] = "task_graph.trace.{0.kind}"
    entries: ClassVar[tuple[Directive, ...]] = (
        Directive("task_graph.trace.none", enforced("a task takes the cycles that the arch model gives"), enforced("nothing is simulated")),
        Directive("task_graph.trace.cycles", enforced("a task takes the cycles that its key gives, in simulated time"),
                  recorded("cycles are of simulated time, and the device has real ones")),
    )
    kind: Literal["none", "cycles"] = "none"
    key: Key | None = None
    needs: ClassVar[dict[str, str]] = {"cycles": "key"}

    @staticmethod
    def none() -> TracePolicy:
        """Return a policy that uses the cycles of the arch model."""
        return TracePolicy()

    @staticmethod
    def cycles(cost_fn: KeyLike) -> TracePolicy:
        """Return a policy in which each task takes cost_fn(t) cycles."""
        return TracePolicy(kind="cycles", key=trace_key(cost_fn, "TracePolicy.cycles"))


@user_calls()
class SpatialMap(Policy):
    """Where tasks sit on a grid of cores: `row` and `column` are keys. Without them task k sits on core k, row by row and round again."""

    said_as: ClassVar[str] = "spatial_map"
    entries: ClassVar[tuple[Directive, ...]] = (
        Directive("spatial_map", enforced("a task runs on its core, and what another core needs of it arrives later by the steps between "
                                          f"them, {_IN_TIME}"),
                  refused("the runtime chooses the core of each task, and knows no distance between cores")),)

    grid: tuple[Executors, Executors]
    row: Key | None = None
    column: Key | None = None

    @staticmethod
    def of(grid: Sequence[int] | np.ndarray[Any, Any], place: KeyLike | None = None) -> SpatialMap:
        """Return the map for a grid of so many rows and columns; `place`: a function `t -> (row, column)`.

        Raises: S102 for a value that is not a grid; S103 for a function that cannot be traced.
        """
        extents = grid.tolist() if isinstance(grid, np.ndarray) else grid
        if not isinstance(extents, Sequence) or isinstance(extents, str | bytes) or len(extents) != 2:
            raise PolicyValueError("this is no grid", here(), expected="rows and columns of at least 1, such as (4, 6)",
                                   found=shown_value(grid))
        if place is None:
            return SpatialMap(grid=tuple(extents))
        row, column = trace_keys(place, "spatial_map", 2)
        return SpatialMap(grid=tuple(extents), row=row, column=column)

    @property
    def n_cores(self) -> int:
        """The number of cores of the grid."""
        return self.grid[0] * self.grid[1]

    def __repr__(self) -> str:
        return f"SpatialMap.of({self.said})"

    @property
    def said(self) -> str:
        """What `of` is called with, as code."""
        if self.row is None or self.column is None:
            return repr(self.grid)
        return f"{self.grid!r}, lambda t: ({key_code(self.row.node)}, {key_code(self.column.node)})"


class TaskGraph(Policy):
    """The policies and bounds of the data-driven graph. A field that is None has its default."""

    deps: Deps | None = None
    window: TaskWindow | Windows | None = None
    pools: Pools | None = None
    ready: ReadyPolicy | None = None
    start: StartPolicy | None = None
    trace: TracePolicy | None = None

    @property
    def windows(self) -> tuple[TaskWindow, ...]:
        """The windows, by unit."""
        return self.window if isinstance(self.window, tuple) else () if self.window is None else (self.window,)

