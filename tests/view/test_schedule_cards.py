"""Schedules and machines: reprs that are code, what differs, what targets make of a directive, and machines drawn."""

from __future__ import annotations

import pytest

import pto_wsp
from pto_wsp import (
    Arch,
    Calendar,
    Deps,
    DispatchPolicy,
    P,
    Pools,
    PtoError,
    ReadyPolicy,
    Schedule,
    StartPolicy,
    TaskWindow,
    TimingPolicy,
    TracePolicy,
    WindowMode,
    Workload,
    builtin_arch,
    maximum,
    minimum,
    workload,
)
from pto_wsp.schedule.directives import SpatialMap
from pto_wsp.schedule.policy import Policy
from pto_wsp.view.card import MachinePart, Preformatted, TablePart
from tests.view.test_cards import part_of, text_of

POLICIES = [
    DispatchPolicy.round_robin(4), DispatchPolicy.affinity(lambda t: t.b % 3), DispatchPolicy.hash(lambda t: t.b * 2 - t.params[0], 3),
    DispatchPolicy.dispatch_by(lambda t: (t.kernel == "mm") * 3 + t.get("b", 0), 2), DispatchPolicy.dispatch_by({"mm": 1, None: 0}, 2),
    DispatchPolicy.dispatch_by({"mm": 1, "x": 2}, 2), DispatchPolicy.work_steal(), DispatchPolicy.work_steal(3),
    DispatchPolicy.dispatch_by(lambda t: minimum(t.b, 3) + maximum(t.c, -1) // (t.b + 1) - (t.b - (t.c - 2)), 2),
    DispatchPolicy.dispatch_by(lambda t: ((t.b < 3) | (t.c >= 2)) & ~(t.b == 1), 2),
    DispatchPolicy.dispatch_by(lambda t: t.s.position + t.tags["b"] + t.get("kernel", 1) + t.kernel, 2),
    TimingPolicy.immediate, TimingPolicy.batched(3), TimingPolicy.interleaved(2), TimingPolicy.rate_limit(2.5),
    Pools.single(), Pools.by_exec_unit(), Pools.custom(lambda t: t.b % 2),
    ReadyPolicy.fifo(), ReadyPolicy.work_steal(), ReadyPolicy.priority(lambda t: -t.b), ReadyPolicy.priority(lambda t: -(t.b + 1)),
    StartPolicy.after_orchestration(), StartPolicy.threshold(3), TracePolicy.none(), TracePolicy.cycles(lambda t: 100 + t.b),
    Deps.hybrid(), Deps.explicit(), Deps.infer_bytes_overlap(), Deps.infer_tensor_map_exact(),
    TaskWindow(8), TaskWindow(8, "bytes", WindowMode.ABORT), Calendar.of(lambda t: (t.b % 2, t.b // 2)), SpatialMap.of((4, 6)),
    SpatialMap.of((4, 6), lambda t: (t.b % 4, t.b // 4)),
]


@workload
def none() -> None:
    for _ in P(0):
        pass


def one() -> Workload:
    return none().dispatch(DispatchPolicy.round_robin(4)).task_graph(window=TaskWindow(64), pools=Pools.by_exec_unit())


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_the_repr_of_a_policy_is_code_for_an_equal_one(policy: Policy) -> None:
    assert eval(repr(policy), {**{name: getattr(pto_wsp, name) for name in pto_wsp.__all__}, "SpatialMap": SpatialMap}) == policy


def test_every_kind_of_policy_with_a_constructor_spells_it() -> None:
    spelled = {repr(policy).split("(")[0] for policy in POLICIES}
    for namespace in (DispatchPolicy, TimingPolicy, Pools, ReadyPolicy, StartPolicy, TracePolicy, Deps):
        made = {name for name, value in vars(namespace).items() if isinstance(value, staticmethod)}
        assert {f"{namespace.__name__}.{name}" for name in made} <= spelled


def test_a_policy_that_no_constructor_makes_shows_its_fields() -> None:
    assert repr(StartPolicy(kind="immediate")) == "StartPolicy(kind='immediate', n=None)"
    assert repr(TimingPolicy.batched(2).model_copy(update={"tasks_per_ms": 1.0})) == "Timing(kind='batched', n=2, tasks_per_ms=1.0)"


def test_the_code_of_a_schedule_makes_it_again() -> None:
    made = one().streams(2).stream_by(lambda t: t.b % 2).timing(TimingPolicy.batched(2)).named("mine")
    names = {name: getattr(pto_wsp, name) for name in pto_wsp.__all__}
    for one_of in (made, none().spatial_map((2, 3)), none().spatial_map((2, 3), lambda t: (t.b % 2, 1))):
        assert eval("none()" + one_of.schedule.code, {**names, "none": none}).schedule == one_of.schedule
    assert Schedule().code == ""
    by_hand = none().calendar(lambda t: (t.b, 0))
    assert eval("none()" + by_hand.schedule.code, {**names, "none": none}).schedule == by_hand.schedule


def test_a_difference_has_a_line_a_directive_with_the_default_of_what_is_not_said() -> None:
    other = none().dispatch(DispatchPolicy.round_robin(2)).task_graph(window=[TaskWindow(64), TaskWindow(1 << 20, "bytes")])
    found = one().schedule.diff(other)
    assert [row[0] for row in found.rows] == ["dispatch", "task_graph.pools", "task_graph.window bytes"]
    assert str(found).splitlines() == [
        "dispatch: DispatchPolicy.round_robin(4), was DispatchPolicy.round_robin(2)",
        "task_graph.pools: Pools.by_exec_unit(), was default (Pools.single())",
        "task_graph.window bytes: default (not bounded), was TaskWindow(size=1048576, unit='bytes', mode=WindowMode.STALL)"]
    assert part_of(found.card, TablePart).rows[1] == ("task_graph.pools", "Pools.by_exec_unit()", "default: Pools.single()")
    assert found.card.sentence == "3 directives differ."


def test_a_task_graph_without_a_field_differs_from_none_in_its_edges() -> None:
    found = none().task_graph().schedule.diff(Schedule())
    assert found.rows == (("task_graph.deps", "Deps.infer_bytes_overlap()", ""),)


def test_equal_schedules_do_not_differ_and_other_values_are_refused() -> None:
    found = one().schedule.diff(one())
    assert not found and str(found) == "the schedules are the same" and found.card.sentence == "They say the same."
    with pytest.raises(PtoError, match="S102"):
        one().schedule.diff("fast")  # type: ignore[arg-type]


def test_a_schedule_says_what_targets_make_of_each_directive() -> None:
    rows = {row[0]: row for row in part_of(one().schedule.card, TablePart).rows}
    assert rows["dispatch.round_robin"][2:4] == ("✓\u00a0enforced", "·\u00a0recorded")
    assert rows["task_graph.pools.by_exec_unit"][2:4] == ("✓\u00a0enforced", "✓\u00a0enforced")
    assert part_of(one().schedule.card, Preformatted).text.startswith("(w\n    .dispatch(DispatchPolicy.round_robin(4))\n")
    program = one().compile(target="interp")
    table = next(part for part in program.card.parts if part.kind == "table" and part.title == "Schedule")
    assert table.head[2] == "interp" and len(table.head) == 5


def test_a_machine_is_one_line_and_a_drawing() -> None:
    arch = builtin_arch("ascend_910b")
    assert repr(arch) == "Arch(ascend_910b: 24 cube + 48 vector cores, 6 AICPUs)"
    assert repr(builtin_arch("unit")) == "Arch(unit: any number of cores, any number of AICPUs)"
    drawn = part_of(arch.card, MachinePart)
    assert [[(group.kind, group.count) for group in aicpu.cores] for aicpu in drawn.aicpus] == [[("cube", 4), ("vector", 8)]] * 6
    assert {memory.name: memory.size for memory in drawn.memories}["UB"] == "192 KiB"
    assert repr(arch.memory("UB")) == "Memory(name='UB', capacity_bytes=196608, reserved_bytes=8192)"
    assert eval(repr(arch.memories), {"Memory": type(arch.memories[0])}) == arch.memories


@pytest.mark.parametrize("arch", [
    builtin_arch("unit"), builtin_arch("host_cpu"), builtin_arch("ascend_950"), Arch(name="<b>x</b>"),
    builtin_arch("ascend_910b").with_aicpu(count=500).with_cores(cube=65536, vector=3)], ids=repr)
def test_every_machine_has_a_small_card(arch: Arch) -> None:
    html = arch._repr_mimebundle_()["text/html"]
    assert len(html) < 100_000
    text_of(html)
    drawn = part_of(arch.card, MachinePart)
    assert len(repr(arch)) <= 200 and len(drawn.aicpus) <= 32
