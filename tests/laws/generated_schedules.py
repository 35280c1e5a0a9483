"""Schedules that hypothesis draws: a directive of each kind, or none. Keys are made of the first number that a task is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from pto_wsp import Deps, DispatchPolicy, Pools, ReadyPolicy, StartPolicy, TaskWindow, TimingPolicy, TracePolicy, WindowMode, Workload


def _key(n: int) -> Callable[[Any], Any]:
    return lambda t: (t.params[0] * 3 + 1) % n


DISPATCH = {"round robin": DispatchPolicy.round_robin, "affinity": lambda n: DispatchPolicy.affinity(_key(7), n),
            "hash": lambda n: DispatchPolicy.hash(_key(50), n), "by key": lambda n: DispatchPolicy.dispatch_by(_key(9), n),
            "steal": DispatchPolicy.work_steal}
TIMING = {"batched": TimingPolicy.batched, "interleaved": TimingPolicy.interleaved, "rate": lambda n: TimingPolicy.rate_limit(n * 100_000)}
DEPS = {"exact": Deps.infer_tensor_map_exact, "overlap": Deps.infer_bytes_overlap, "explicit": Deps.explicit, "hybrid": Deps.hybrid}
POOLS = {"by unit": Pools.by_exec_unit, "custom": lambda: Pools.custom(_key(3))}
READY = {"steal": ReadyPolicy.work_steal, "priority": lambda: ReadyPolicy.priority(_key(5))}
START = {"after": StartPolicy.after_orchestration, "threshold": lambda: StartPolicy.threshold(3)}
TRACE = {"cycles": lambda: TracePolicy.cycles(_key(11))}


@dataclass(frozen=True)
class ScheduleRecipe:
    """One name and number for each directive, None for none; without `deps` there is no task graph."""

    dispatch: tuple[str, int] | None = None
    streams: int | None = None
    stream_by: int | None = None
    timing: tuple[str, int] | None = None
    deps: str | None = None
    window: TaskWindow | None = None
    pools: str | None = None
    ready: str | None = None
    start: str | None = None
    trace: str | None = None

    def of(self, traced: Workload) -> Workload:
        """Return the workload under this schedule; it is said in the order of the fields."""
        made: Any = traced
        if self.dispatch is not None:
            made = made.dispatch(DISPATCH[self.dispatch[0]](self.dispatch[1]))
        if self.streams is not None:
            made = made.streams(self.streams)
        if self.stream_by is not None:
            made = made.stream_by(_key(self.stream_by))
        if self.timing is not None:
            made = made.timing(TIMING[self.timing[0]](self.timing[1]))
        if self.deps is not None:
            said = {"pools": (POOLS, self.pools), "ready": (READY, self.ready), "start": (START, self.start), "trace": (TRACE, self.trace)}
            made = made.task_graph(deps=DEPS[self.deps](), **({} if self.window is None else {"window": self.window}),
                                   **{name: table[key]() for name, (table, key) in said.items() if key is not None})
        scheduled: Workload = made
        return scheduled


def _maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), strategy)


def _named(table: dict[str, Any]) -> st.SearchStrategy[Any]:
    return _maybe(st.sampled_from(sorted(table)))


_WINDOWS = st.one_of(st.builds(TaskWindow, st.integers(1, 6), st.just("tasks"), st.sampled_from((WindowMode.STALL, WindowMode.BENCHMARK))),
                     st.builds(TaskWindow, st.integers(3, 12), st.just("entries"), st.just(WindowMode.STALL)))


@st.composite
def schedule_recipes(draw: Callable[..., Any]) -> ScheduleRecipe:
    """Draw a schedule whose directives go together."""
    streams, stream_by = draw(_maybe(st.integers(1, 4))), draw(_maybe(st.integers(1, 5)))
    timings = st.sampled_from(sorted(TIMING if streams or stream_by else {"batched", "rate"}))
    return ScheduleRecipe(
        draw(_maybe(st.tuples(st.sampled_from(sorted(DISPATCH)), st.integers(1, 4)))), streams, stream_by,
        draw(_maybe(st.tuples(timings, st.integers(1, 4)))), draw(_named(DEPS)), draw(_maybe(_WINDOWS)), draw(_named(POOLS)),
        draw(_named(READY)), draw(_named(START)), draw(_named(TRACE)))
