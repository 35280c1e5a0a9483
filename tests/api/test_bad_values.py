"""What nobody can mean, given to every public method: an error at the user's line, none of Python's, and nothing is dropped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pto_wsp import (
    Calendar,
    DispatchPolicy,
    DType,
    Out,
    P,
    Pools,
    Program,
    PtoError,
    Scalar,
    Schedule,
    Symbol,
    TaskWindow,
    Tensor,
    Tile,
    TimingPolicy,
    builtin_arch,
    capabilities,
    kernel,
    load,
    pto,
    timeline,
    workload,
)
from pto_wsp.schedule.directives import SpatialMap
from pto_wsp.source import Span
from pto_wsp.timing.edges import Edge
from pto_wsp.timing.retime import Simulation

I64 = DType.I64
Y = Tensor(np.zeros((8, 1), np.int64), name="Y")
UNIT = builtin_arch("unit")


@kernel
def fill(n: Scalar[I64], y: Out[Tile[1, 1, I64]]) -> None:
    pto.store(y, pto.full((1, 1), n, I64))


@workload
def main() -> None:
    for k in P(Symbol("n")):
        fill[k](k, Y[k])


W = main()


class _Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("nothing to see")


# none of these says anything to any of the methods below
NOTHING: tuple[object, ...] = (
    float("nan"), 10**100, -(10**30), 1j, b"x", {1}, object(), np.True_, np.float32("nan"), np.zeros((2, 2)), np.array(3), [None],
    [(0, "x")], {"a": 1}, int, lambda t: None, Symbol("q"), DispatchPolicy, TimingPolicy.batched, iter([1]), ...,
)


@pytest.fixture(scope="module")
def program() -> Program:
    return W.compile(target="interp").run(n=3)


@pytest.fixture(scope="module")
def built() -> Program:
    return W.compile().run(n=3)


Method = Callable[[Program, object], object]
SCHEDULES: dict[str, Method] = {
    **{name: lambda _, v, name=name: getattr(W, name)(v)  # type: ignore[misc]
       for name in ("dispatch", "streams", "timing", "calendar", "spatial_map", "named", "under")},
    **{name: lambda _, v, name=name: W.task_graph(**{name: v})  # type: ignore[misc]
       for name in ("deps", "window", "pools", "ready", "start", "trace")},
    "round_robin": lambda _, v: DispatchPolicy.round_robin(v),  # type: ignore[arg-type]
    "batched": lambda _, v: TimingPolicy.batched(v),  # type: ignore[arg-type]
    "rate_limit": lambda _, v: TimingPolicy.rate_limit(v),  # type: ignore[arg-type]
    "TaskWindow": lambda _, v: TaskWindow(v),  # type: ignore[arg-type]
    "Calendar.of": lambda _, v: Calendar.of(v),  # type: ignore[arg-type]
    "Calendar.from_text": lambda _, v: Calendar.from_text(v),  # type: ignore[arg-type]
    "SpatialMap.of": lambda _, v: SpatialMap.of(v),  # type: ignore[arg-type]
    "keeping": lambda _, v: Schedule().keeping([v]),  # type: ignore[list-item]
    "model_validate_json": lambda _, v: Schedule.model_validate_json(v),  # type: ignore[arg-type]
}
PROGRAMS: dict[str, Method] = {
    "save": lambda p, v: p.save(v),  # type: ignore[arg-type]
    "load": lambda _, v: load(v),  # type: ignore[arg-type]
    "replay": lambda p, v: p.replay(v, n=3),  # type: ignore[arg-type]
    "explain": lambda p, v: p.explain(v),  # type: ignore[arg-type]
    "explain index": lambda p, v: p.explain(("fill", v)),  # type: ignore[arg-type]
    "simulate": lambda p, v: p.simulate(v),  # type: ignore[arg-type]
    "simulate arch": lambda p, v: p.simulate(arch=v),
    "simulate overheads": lambda p, v: p.simulate(overheads=v),  # type: ignore[arg-type]
    "set_symbol_u64 name": lambda p, v: p.set_symbol_u64(v, 1),  # type: ignore[arg-type]
    "set_symbol_f32 name": lambda p, v: p.set_symbol_f32(v, 1.0),  # type: ignore[arg-type]
    "set_axis_sizes": lambda p, v: p.set_axis_sizes(v),  # type: ignore[arg-type]
    "run": lambda p, v: p.run(n=v),
    "tasks": lambda _, v: W.tasks(n=v),
    "edges_into": lambda p, v: p.graph.edges_into(v),  # type: ignore[arg-type]
    "why": lambda p, v: p.graph.why(0, v),  # type: ignore[arg-type]
    "reason": lambda p, v: p.graph.reason(v),  # type: ignore[arg-type]
    "describe": lambda p, v: p.graph.describe(v),  # type: ignore[arg-type]
    "conflicts": lambda p, v: p.graph.conflicts(v),  # type: ignore[arg-type]
    "to_perfetto": lambda p, v: p.trace.to_perfetto(v),  # type: ignore[arg-type]
    "timeline": lambda p, v: timeline(v),  # type: ignore[arg-type]
    "timeline width": lambda p, v: timeline(p.trace, v),  # type: ignore[arg-type]
    "timeline end": lambda p, v: timeline(p.trace, end=v),  # type: ignore[arg-type]
    "capabilities": lambda _, v: capabilities(v),  # type: ignore[arg-type]
    "compile target": lambda _, v: W.compile(target=v),  # type: ignore[arg-type]
    "compile arch": lambda _, v: W.compile("interp", arch=v),
    "compile strict": lambda _, v: W.compile("interp", strict=v),  # type: ignore[arg-type]
    "compile threads": lambda _, v: W.compile(threads=v),
    "builtin_arch": lambda _, v: builtin_arch(v),  # type: ignore[arg-type]
    "with_clock": lambda _, v: UNIT.with_clock(v),  # type: ignore[arg-type]
    "with_cores": lambda _, v: UNIT.with_cores(cube=v),
    "with_aicpu": lambda _, v: UNIT.with_aicpu(submit_cycles=v),
    "with_memory": lambda _, v: UNIT.with_memory(v, bandwidth_bytes_per_cycle=1.0),  # type: ignore[arg-type]
    "with_memory rate": lambda _, v: UNIT.with_memory("GM", bandwidth_bytes_per_cycle=v),
    "with_unit": lambda _, v: UNIT.with_unit(v, startup_cycles=1),  # type: ignore[arg-type]
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", [*SCHEDULES, *PROGRAMS])
def test_what_says_nothing_is_refused_at_the_users_line(program: Program, built: Program, name: str) -> None:
    method = {**SCHEDULES, **PROGRAMS}[name]
    for value in NOTHING:
        with pytest.raises(PtoError) as caught:
            method(built if name in ("replay", "save") else program, value)
        span = caught.value.span
        assert isinstance(span, Span) and Path(span.file).name == "test_bad_values.py", f"{name} of a {type(value).__name__}"
        assert str(caught.value)


@pytest.mark.parametrize("name", ["dispatch", "streams", "stream_by", "timing", "calendar", "spatial_map", "named", "under"])
def test_none_takes_nothing_back(name: str) -> None:
    said = W.streams(3).timing(TimingPolicy.batched(2)).named("mine")
    with pytest.raises(PtoError, match=r"error\[S10[23]\]"):
        getattr(said, name)(None)


def test_save_takes_a_path(built: Program) -> None:
    with pytest.raises(PtoError, match=r"error\[C107\]: save takes the folder") as caught:
        built.save(None)  # type: ignore[arg-type]
    assert (caught.value.expected, caught.value.found) == ("a path", "None")


def test_a_value_that_does_not_print_is_told_by_its_type() -> None:
    with pytest.raises(PtoError, match="found:    a _Unprintable"):
        W.dispatch(_Unprintable())  # type: ignore[arg-type]


def test_a_policy_is_called_to_be_made() -> None:
    with pytest.raises(PtoError, match="call it, with what it takes in brackets"):
        W.task_graph(pools=Pools.single)  # type: ignore[arg-type]


def test_immediate_is_a_policy_and_may_be_called() -> None:
    assert TimingPolicy.immediate() == TimingPolicy.immediate
    assert W.timing(TimingPolicy.immediate()).schedule == W.timing(TimingPolicy.immediate).schedule
    with pytest.raises(PtoError, match=r"leave the second pair of brackets out"):
        TimingPolicy.batched(2)()


def test_numpys_numbers_will_do(program: Program, built: Program) -> None:
    assert W.streams(np.int32(3)).schedule == W.streams(3).schedule  # type: ignore[arg-type]
    assert TimingPolicy.rate_limit(np.float32(2.5)) == TimingPolicy.rate_limit(2.5)  # type: ignore[arg-type]
    assert UNIT.with_clock(np.float64(2.5)) == UNIT.with_clock(2.5)
    assert program.explain(("fill", np.int64(1))).task == program.explain(np.int64(1)).task == 1  # type: ignore[arg-type]
    assert W.stream_by(lambda t: t.params[np.int64(0)]).schedule == W.stream_by(lambda t: t.params[0]).schedule
    assert built.replay(np.int64(5), n=3).stats.task_count == 3  # type: ignore[arg-type]
    assert W.spatial_map(np.array([2, 3])).schedule == W.spatial_map((2, 3)).schedule  # type: ignore[arg-type]
    assert isinstance(program.graph.reason(Edge(0, 1, 8)), str)


def test_a_simulation_is_simulated_again_from_where_it_stands(program: Program) -> None:
    program.run(n=3)
    slow = UNIT.with_aicpu(submit_cycles=10, dispatch_cycles=0, retire_cycles=0)
    three = program.simulate(W.dispatch(DispatchPolicy.round_robin(3)).task_graph())
    alone = program.simulate().total_cycles
    assert three.total_cycles * 3 == alone
    busy = three.simulate(arch=slow, overheads=True)
    assert isinstance(busy, Simulation) and busy.schedule == three.schedule and busy.total_cycles == 20 + three.total_cycles
    assert busy.simulate(Schedule()).overheads and busy.simulate(overheads=False).total_cycles == three.total_cycles
    program.run(n=3)
    with pytest.raises(PtoError, match=r"error\[R103\]: the program has run again"):
        three.simulate()
    assert three.total_cycles * 3 == alone
