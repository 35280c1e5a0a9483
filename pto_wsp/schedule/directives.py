"""The policies: dispatch, timing, task graph. Each is data: printable, comparable, a JSON round trip."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np

from pto_wsp.errors import PolicyValueError
from pto_wsp.records import Field
from pto_wsp.schedule.keys import KeyLike, trace_key
from pto_wsp.schedule.policy import Count, Executors, Key, PerMillisecond, Policy, shown_value
from pto_wsp.source import here


class RoundRobin(Policy):
    """Submission index mod n."""

    kind: Literal["round_robin"] = "round_robin"
    kind_is_class = True
    num_aicpus: Executors


class Affinity(Policy):
    """Key mod n: tasks of one key share an executor."""

    kind: Literal["affinity"] = "affinity"
    kind_is_class = True
    key: Key
    num_aicpus: Executors


class Hash(Policy):
    """FNV-1a-64 of the key's 8 little-endian bytes, mod n."""

    kind: Literal["hash"] = "hash"
    kind_is_class = True
    key: Key
    num_aicpus: Executors


class DispatchBy(Policy):
    """fn(t) mod n."""

    kind: Literal["dispatch_by"] = "dispatch_by"
    kind_is_class = True
    key: Key
    num_aicpus: Executors


class DispatchSteal(Policy):
    """One queue that all executors share; n defaults to the arch's AICPUs."""

    kind: Literal["work_steal"] = "work_steal"
    kind_is_class = True
    num_aicpus: Executors | None = None


Dispatch = Annotated[RoundRobin | Affinity | Hash | DispatchBy | DispatchSteal, Field(discriminator="kind")]


class DispatchPolicy:
    """Which executor a task is home on."""

    @staticmethod
    def round_robin(num_aicpus: int) -> RoundRobin:
        """Return: submission index mod `num_aicpus`."""
        return RoundRobin(num_aicpus=num_aicpus)

    @staticmethod
    def affinity(key: KeyLike, num_aicpus: int = 4) -> Affinity:
        """Return: key mod `num_aicpus`."""
        return Affinity(key=trace_key(key, "affinity"), num_aicpus=num_aicpus)

    @staticmethod
    def hash(key: KeyLike, num_aicpus: int = 4) -> Hash:
        """Return: FNV-1a-64 of the key, mod `num_aicpus`."""
        return Hash(key=trace_key(key, "hash"), num_aicpus=num_aicpus)

    @staticmethod
    def dispatch_by(fn: KeyLike, num_aicpus: int = 4) -> DispatchBy:
        """Return: fn(t) mod `num_aicpus`."""
        return DispatchBy(key=trace_key(fn, "dispatch_by"), num_aicpus=num_aicpus)

    @staticmethod
    def work_steal(num_aicpus: int | None = None) -> DispatchSteal:
        """Return: one shared queue."""
        return DispatchSteal(num_aicpus=num_aicpus)


class Timing(Policy):
    """When submitted tasks are released; `TimingPolicy` makes them."""

    kind: Literal["immediate", "batched", "interleaved", "rate_limit"] = "immediate"
    n: Count | None = None
    tasks_per_ms: PerMillisecond | None = None
    needs: ClassVar[dict[str, str]] = {"batched": "n", "interleaved": "n", "rate_limit": "tasks_per_ms"}

    def __call__(self) -> Timing:
        """Return the policy itself, so that `TimingPolicy.immediate()` may be written as the others are.

        Raises: S102 for another than that one.
        """
        if self != Timing():
            raise PolicyValueError("a timing policy is no function", here(), expected=repr(self), found=f"{self!r}()",
                                   help="leave the second pair of brackets out")
        return self


class _Immediate:
    """`TimingPolicy.immediate`, made when it is asked for."""

    def __get__(self, instance: object, owner: type) -> Timing:
        return Timing()


class TimingPolicy:
    """When submitted tasks are released: immediate, batched(n), interleaved(k) or rate_limit(tasks_per_ms)."""

    immediate = _Immediate()

    @staticmethod
    def batched(n: int) -> Timing:
        """Return: release tasks n at a time."""
        return Timing(kind="batched", n=n)

    @staticmethod
    def interleaved(k: int) -> Timing:
        """Return: release tasks of k streams in turn."""
        return Timing(kind="interleaved", n=k)

    @staticmethod
    def rate_limit(tasks_per_ms: float) -> Timing:
        """Return: release at most `tasks_per_ms` tasks a millisecond."""
        return Timing(kind="rate_limit", tasks_per_ms=tasks_per_ms)


WindowUnit: TypeAlias = Literal["tasks", "bytes", "entries"]


class WindowMode(Enum):
    """What happens when the window is full."""

    STALL = "stall"
    ABORT = "abort"
    BENCHMARK = "benchmark"

    def __repr__(self) -> str:
        return f"WindowMode.{self.name}"


class TaskWindow(Policy):
    """How many tasks (or bytes, or entries) may be submitted and not retired: a ring, a slot frees in order."""

    size: Count
    unit: WindowUnit = "tasks"
    mode: WindowMode = WindowMode.STALL
    positional: ClassVar[tuple[str, ...]] = ("size", "unit", "mode")

    if TYPE_CHECKING:
        def __init__(self, size: int, unit: WindowUnit = "tasks", mode: WindowMode = WindowMode.STALL) -> None: ...


class Deps(Policy):
    """Where edges come from: overlapping regions, exact tensor matches, the workload's structure, or structure and regions."""

    kind: Literal["exact", "overlap", "explicit", "hybrid"] = "overlap"

    @staticmethod
    def infer_tensor_map_exact() -> Deps:
        """Return: edges between accesses of equal regions."""
        return Deps(kind="exact")

    @staticmethod
    def infer_bytes_overlap() -> Deps:
        """Return: edges between accesses that share a byte, and after= (the default of .task_graph)."""
        return Deps(kind="overlap")

    @staticmethod
    def explicit() -> Deps:
        """Return: edges of the workload's structure alone."""
        return Deps(kind="explicit")

    @staticmethod
    def hybrid() -> Deps:
        """Return: edges of structure and of overlapping regions (the default without .task_graph)."""
        return Deps(kind="hybrid")


class Pools(Policy):
    """What an executor is: an AICPU (single), a core of the task's unit (by_exec_unit), or a pool by key."""

    kind: Literal["single", "by_exec_unit", "custom"] = "single"
    key: Key | None = None
    needs: ClassVar[dict[str, str]] = {"custom": "key"}

    @staticmethod
    def single() -> Pools:
        """Return: each AICPU is one executor."""
        return Pools()

    @staticmethod
    def by_exec_unit() -> Pools:
        """Return: a task runs on a core of its unit, of its AICPU's share."""
        return Pools(kind="by_exec_unit")

    @staticmethod
    def custom(fn: KeyLike) -> Pools:
        """Return: the pool that fn(t) names."""
        return Pools(kind="custom", key=trace_key(fn, "Pools.custom"))


class ReadyPolicy(Policy):
    """Which ready task goes first: fifo, work_steal (an idle executor takes from others), priority(fn)."""

    kind: Literal["fifo", "work_steal", "priority"] = "fifo"
    key: Key | None = None
    needs: ClassVar[dict[str, str]] = {"priority": "key"}

    @staticmethod
    def fifo() -> ReadyPolicy:
        """Return: the lowest ready time, then submission."""
        return ReadyPolicy()

    @staticmethod
    def work_steal() -> ReadyPolicy:
        """Return: as fifo, and an idle executor takes ready tasks of others."""
        return ReadyPolicy(kind="work_steal")

    @staticmethod
    def priority(fn: KeyLike) -> ReadyPolicy:
        """Return: the highest fn(t) first."""
        return ReadyPolicy(kind="priority", key=trace_key(fn, "ReadyPolicy.priority"))


class StartPolicy(Policy):
    """When execution starts: with the first task, after orchestration, or from n tasks on."""

    kind: Literal["immediate", "after_orchestration", "threshold"] = "immediate"
    n: Count | None = None
    needs: ClassVar[dict[str, str]] = {"threshold": "n"}

    @staticmethod
    def after_orchestration() -> StartPolicy:
        """Return: start when all tasks are submitted."""
        return StartPolicy(kind="after_orchestration")

    @staticmethod
    def threshold(n: int) -> StartPolicy:
        """Return: start when n tasks are submitted."""
        return StartPolicy(kind="threshold", n=n)


class TracePolicy(Policy):
    """What a task costs in simulated time: the arch model's cycles (none), or cost_fn(t)."""

    kind: Literal["none", "cycles"] = "none"
    key: Key | None = None
    needs: ClassVar[dict[str, str]] = {"cycles": "key"}

    @staticmethod
    def none() -> TracePolicy:
        """Return: the arch model's cycles."""
        return TracePolicy()

    @staticmethod
    def cycles(cost_fn: KeyLike) -> TracePolicy:
        """Return: cost_fn(t) cycles a task."""
        return TracePolicy(kind="cycles", key=trace_key(cost_fn, "TracePolicy.cycles"))


class SpatialMap(Policy):
    """A grid of cores that the workload is laid out on."""

    grid: tuple[Count, ...]

    @staticmethod
    def of(grid: Sequence[int] | np.ndarray[Any, Any]) -> SpatialMap:
        """Return the map of a grid's extents.

        Raises: S102 for what is none.
        """
        extents = grid.tolist() if isinstance(grid, np.ndarray) else grid
        if not isinstance(extents, Sequence) or isinstance(extents, str | bytes) or not extents:
            raise PolicyValueError("this is no grid", here(), expected="extents of at least 1, such as (4, 6)", found=shown_value(grid))
        return SpatialMap(grid=tuple(extents))


class TaskGraph(Policy):
    """The data-driven graph: where edges come from, and its bounds. None leaves a field at its default."""

    deps: Deps | None = None
    window: TaskWindow | None = None
    pools: Pools | None = None
    ready: ReadyPolicy | None = None
    start: StartPolicy | None = None
    trace: TracePolicy | None = None

