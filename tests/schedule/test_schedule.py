"""Schedules as data: policies take their positional forms, refuse bad values at the user's line, and go through JSON."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pto_wsp import (
    Dense,
    Deps,
    DispatchPolicy,
    DType,
    Out,
    P,
    Pools,
    PtoError,
    ReadyPolicy,
    Scalar,
    Sparse,
    StartPolicy,
    Symbol,
    TaskWindow,
    Tensor,
    Tile,
    TimingPolicy,
    TracePolicy,
    WindowMode,
    Workload,
    axis,
    kernel,
    pto,
    workload,
)
from pto_wsp.errors import KeyTraceError, PolicyValueError
from pto_wsp.schedule.policy import KeyExpr, Policy
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.source import Span

POLICIES: dict[str, Callable[[], Policy]] = {
    "round_robin": lambda: DispatchPolicy.round_robin(4),
    "affinity": lambda: DispatchPolicy.affinity(lambda t: t.b * 2 + t.params[0] % 3, 4),
    "hash": lambda: DispatchPolicy.hash("b", num_aicpus=3),
    "dispatch_by": lambda: DispatchPolicy.dispatch_by(lambda t: (t.get("b") > 2).where(1, 0), 2),
    "work_steal": lambda: DispatchPolicy.work_steal(),
    "immediate": lambda: TimingPolicy.immediate,
    "batched": lambda: TimingPolicy.batched(4),
    "interleaved": lambda: TimingPolicy.interleaved(2),
    "rate_limit": lambda: TimingPolicy.rate_limit(2.5),
    "window": lambda: TaskWindow(8192, "tasks", WindowMode.STALL),
    "window abort": lambda: TaskWindow(16, "bytes", mode=WindowMode.ABORT),
    "exact": Deps.infer_tensor_map_exact,
    "overlap": Deps.infer_bytes_overlap,
    "explicit": Deps.explicit,
    "hybrid": Deps.hybrid,
    "single": Pools.single,
    "by_exec_unit": Pools.by_exec_unit,
    "custom": lambda: Pools.custom(lambda t: t.b),
    "fifo": ReadyPolicy.fifo,
    "steal": ReadyPolicy.work_steal,
    "priority": lambda: ReadyPolicy.priority(lambda t: -t.b),
    "after_orchestration": StartPolicy.after_orchestration,
    "threshold": lambda: StartPolicy.threshold(7),
    "none": TracePolicy.none,
    "cycles": lambda: TracePolicy.cycles(lambda t: t.b + 1),
}


@workload
def nothing() -> None:
    pass


W: Workload = nothing()


@pytest.mark.parametrize("name", POLICIES)
def test_policies_are_equal_when_they_say_the_same(name: str) -> None:
    assert POLICIES[name]() == POLICIES[name]()
    assert all(POLICIES[name]() != POLICIES[other]() for other in POLICIES if other != name)


@pytest.mark.parametrize("name", POLICIES)
def test_policies_go_through_json(name: str) -> None:
    policy = POLICIES[name]()
    assert type(policy).model_validate_json(policy.model_dump_json()) == policy


def test_every_policy_prints_differently() -> None:
    assert len({repr(make()) for make in POLICIES.values()}) == len(POLICIES)


@pytest.mark.parametrize("policy, text", [
    (DispatchPolicy.round_robin(4), "DispatchPolicy.round_robin(4)"),
    (DispatchPolicy.affinity(lambda t: t.b * 2, 4), "DispatchPolicy.affinity(lambda t: t.b * 2, 4)"),
    (TaskWindow(8, "tasks", WindowMode.STALL), "TaskWindow(size=8, unit='tasks', mode=WindowMode.STALL)"),
    (Deps.explicit(), "Deps.explicit()"),
], ids=str)
def test_policies_print(policy: Policy, text: str) -> None:
    assert repr(policy) == str(policy) == text


def test_policies_cannot_be_changed() -> None:
    with pytest.raises(Exception, match="frozen"):
        DispatchPolicy.round_robin(4).num_aicpus = 2


BAD: dict[str, Callable[[], object]] = {
    "no executors": lambda: DispatchPolicy.round_robin(0),
    "negative": lambda: DispatchPolicy.round_robin(num_aicpus=-1),
    "float": lambda: DispatchPolicy.round_robin(2.5),  # type: ignore[arg-type]
    "text": lambda: DispatchPolicy.round_robin("4"),  # type: ignore[arg-type]
    "bool": lambda: DispatchPolicy.round_robin(True),
    "symbol": lambda: DispatchPolicy.round_robin(Symbol("n")),  # type: ignore[arg-type]
    "key without executors": lambda: DispatchPolicy.affinity(lambda t: t.b, 0),
    "window of nothing": lambda: TaskWindow(0),
    "window unit": lambda: TaskWindow(4, "rows"),  # type: ignore[arg-type]
    "window mode": lambda: TaskWindow(4, "tasks", "later"),  # type: ignore[arg-type]
    "window twice": lambda: TaskWindow(4, size=5),  # type: ignore[misc]
    "window of four": lambda: TaskWindow(4, "tasks", WindowMode.STALL, 1),  # type: ignore[call-arg]
    "window without size": lambda: TaskWindow(),  # type: ignore[call-arg]
    "window unknown": lambda: TaskWindow(4, bytes=3),  # type: ignore[call-arg]
    "batch": lambda: TimingPolicy.batched(0),
    "batch without a size": lambda: TimingPolicy.batched(None),  # type: ignore[arg-type]
    "batch past 64 bits": lambda: TimingPolicy.batched(1 << 63),
    "turns of nothing": lambda: TimingPolicy.interleaved(None),  # type: ignore[arg-type]
    "rate": lambda: TimingPolicy.rate_limit(-1.0),
    "no rate": lambda: TimingPolicy.rate_limit(None),  # type: ignore[arg-type]
    "rate as text": lambda: TimingPolicy.rate_limit("2"),  # type: ignore[arg-type]
    "rate too slow to count": lambda: TimingPolicy.rate_limit(1e-30),
    "rate without end": lambda: TimingPolicy.rate_limit(float("inf")),
    "threshold without a number": lambda: StartPolicy.threshold(None),  # type: ignore[arg-type]
    "pools without a key": lambda: Pools(kind="custom"),
    "window past 64 bits": lambda: TaskWindow(1 << 63),
    "more streams than executors may be": lambda: W.streams((1 << 16) + 1),
    "threshold": lambda: StartPolicy.threshold(0),
    "streams": lambda: W.streams(0),
    "dispatch": lambda: W.dispatch("round_robin"),  # type: ignore[arg-type]
    "timing": lambda: W.timing(3),  # type: ignore[arg-type]
    "window number": lambda: W.task_graph(window=4),  # type: ignore[arg-type]
    "wrong field": lambda: W.task_graph(deps=TaskWindow(4)),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("text", [
    "{", "[]", '{"foo": 1}', '{"streams": 0}', '{"timing": {"kind": "batched"}}', '{"dispatch": {"kind": "nope"}}',
    '{"task_graph": {"trace": {"kind": "cycles"}}}', '{"stream_by": {"no": "key"}}',
])
def test_what_is_no_json_of_a_schedule_is_refused_at_the_users_line(text: str) -> None:
    with pytest.raises(PolicyValueError) as caught:
        Schedule.model_validate_json(text)
    assert caught.value.span is not None and Path(caught.value.span.file).name == "test_schedule.py"


@pytest.mark.parametrize("what", BAD)
def test_a_bad_value_is_refused_at_the_users_line(what: str) -> None:
    with pytest.raises(PolicyValueError) as caught:
        BAD[what]()
    span = caught.value.span
    assert caught.value.code == "S102"
    assert isinstance(span, Span) and Path(span.file).name == "test_schedule.py"


# ---- keys ----

def key(policy: object) -> str:
    """Return a policy's key as text."""
    return repr(policy.key)  # type: ignore[attr-defined]


@pytest.mark.parametrize("given, text", [
    (lambda t: t.b, "b"), ("head", "head"), (lambda t: t.get("b") * 4 + t.h % 2, "b * 4 + h % 2"), (lambda t: t.params[1], "params[1]"),
    (lambda t: 3, "3"), (lambda t: (t.b > 1) & (t.h < 2), "(b > 1) & (h < 2)"), (axis("b") // 2, "b // 2"),
    (lambda t: t.b + Symbol("n"), "b + n"),
    (lambda t: t.b.min(3).max(t.h), "max(min(b, 3), h)"),
    (lambda t: t.kernel == "matmul", "kernel == 'matmul'"),
    (lambda t: (t.kernel != "add").where(t.b, 7), "where(~(kernel == 'add'), b, 7)"),
    (lambda t: t.get("h", 3) + 1, "get('h', 3) + 1"), (lambda t: t.get("h", t.b * 2), "get('h', b * 2)"),
    (lambda t: (t.kernel == "add") & (t.b > 1), "(kernel == 'add') & (b > 1)"), (lambda t: t.kernel % 2, "kernel % 2"),
])
def test_keys_are_traced_when_the_policy_is_made(given: object, text: str) -> None:
    assert key(DispatchPolicy.affinity(given, 2)) == text  # type: ignore[arg-type]


def test_a_key_is_called_when_the_policy_is_made_and_never_again() -> None:
    calls = []

    def fn(t: object) -> object:
        calls.append(t)
        return 1
    policy = DispatchPolicy.dispatch_by(fn, 2)
    made = len(calls)
    W.dispatch(policy).compile(target="interp").run()
    assert len(calls) == made and policy.key == KeyExpr(policy.key.node)


TABLE, LENS = [1, 2, 3], Tensor(np.array([1, 2, 3]))
UNTRACEABLE: dict[str, Callable[[], object]] = {
    "table": lambda: DispatchPolicy.affinity(lambda t: TABLE[t.b], 2),  # type: ignore[index]
    "if": lambda: DispatchPolicy.affinity(lambda t: 1 if t.b > 2 else 0, 2),
    "int": lambda: DispatchPolicy.hash(lambda t: int(t.b), 2),
    "crash": lambda: DispatchPolicy.dispatch_by(lambda t: 1 // 0, 2),
    "float": lambda: DispatchPolicy.dispatch_by(lambda t: t.b / 2, 2),
    "nothing": lambda: DispatchPolicy.affinity(lambda t: None, 2),
    "float symbol": lambda: DispatchPolicy.affinity(lambda t: t.b * Symbol("f", DType.F32), 2),
    "element": lambda: DispatchPolicy.affinity(lambda t: LENS[t.b], 2),
    "negative bracket": lambda: DispatchPolicy.affinity(lambda t: t.params[-1], 2),
    "number": lambda: DispatchPolicy.affinity(3, 2),  # type: ignore[arg-type]
    "bad name": lambda: DispatchPolicy.affinity("a b", 2),
    "stream": lambda: W.stream_by(lambda t: None),
    "priority": lambda: ReadyPolicy.priority(lambda t: {}),
    "mapping": lambda: ReadyPolicy.priority({"matmul": "first"}),  # type: ignore[arg-type]
    "hash of a kernel": lambda: ReadyPolicy.priority(lambda t: {"matmul": 2}[t.kernel]),  # type: ignore[index]
}


@pytest.mark.parametrize("what", UNTRACEABLE)
def test_a_key_that_cannot_be_traced_is_refused_at_its_line(what: str) -> None:
    with pytest.raises(KeyTraceError) as caught:
        UNTRACEABLE[what]()
    span = caught.value.span
    assert caught.value.code == "S103"
    assert isinstance(span, Span) and Path(span.file).name == "test_schedule.py"


# ---- schedules ----

def test_the_order_of_directives_does_not_matter() -> None:
    policy, window = DispatchPolicy.round_robin(2), TaskWindow(8)
    assert W.dispatch(policy).task_graph(window=window).schedule == W.task_graph(window=window).dispatch(policy).schedule


def test_the_last_of_two_wins() -> None:
    last = DispatchPolicy.hash("b", 2)
    assert W.dispatch(DispatchPolicy.round_robin(2)).dispatch(last).schedule.dispatch == last


def test_task_graph_merges_field_by_field() -> None:
    schedule = W.task_graph(window=TaskWindow(8), deps=Deps.hybrid()).task_graph(window=TaskWindow(4)).schedule
    assert schedule.window == TaskWindow(4) and schedule.deps == Deps.hybrid()


def test_directives_make_new_workloads() -> None:
    W.dispatch(DispatchPolicy.round_robin(2)).named("x")
    assert W.schedule == Schedule() and repr(W.schedule) == "Schedule(default)"


def test_edges_come_from_structure_and_data_until_task_graph_is_said() -> None:
    assert W.schedule.deps == Deps.hybrid() and W.task_graph().schedule.deps == Deps.infer_bytes_overlap()


def test_the_window_has_8192_tasks_until_one_is_said() -> None:
    assert W.schedule.window == W.task_graph().schedule.window == TaskWindow(8192, "tasks", WindowMode.STALL)


def test_a_whole_schedule_goes_through_json() -> None:
    schedule = (W.dispatch(POLICIES["affinity"]()).streams(2).stream_by("b").timing(TimingPolicy.batched(3)).named("all")  # type: ignore[arg-type]
                .task_graph(window=TaskWindow(4), deps=Deps.explicit(), ready=ReadyPolicy.priority("b"))).schedule
    assert Schedule.model_validate_json(schedule.model_dump_json()) == schedule


def test_a_schedule_shows_what_was_said() -> None:
    schedule = W.named("mine").dispatch(DispatchPolicy.round_robin(2)).task_graph(deps=Deps.hybrid()).schedule
    assert repr(schedule) == "Schedule(mine: DispatchPolicy.round_robin(2), Deps.hybrid())"


def test_equal_workloads_with_other_schedules_differ() -> None:
    assert W.named("x") != W and W.named("x") == W.named("x")


def test_a_key_may_name_where_a_column_stands() -> None:
    batch = Dense[3]()
    routing = Sparse(batch, np.array([0, 2, 2, 5]), np.array([1, 4, 0, 4, 6]))
    out = Tensor(np.zeros((5, 1), np.int64))

    @kernel
    def fill(n: Scalar[DType.I64], y: Out[Tile[1, 1, DType.I64]]) -> None:
        pto.store(y, pto.full((1, 1), n, DType.I64))

    @workload
    def walk() -> None:
        for b in P(batch):
            for e in P.sel(routing[b]):
                fill(e, out[e.position])

    stats = walk().dispatch(DispatchPolicy.affinity(lambda t: t.e.position // 3)).compile(target="interp").run().stats
    assert [executor.tasks for executor in stats.executors][:2] == [3, 2]
    for wrong in ("b", "k"):
        with pytest.raises(PtoError) as caught:
            walk().dispatch(DispatchPolicy.affinity(lambda t, name=wrong: t.get(name).position)).compile(target="interp")
        assert caught.value.code == "S103"
