"""A recorded stream under another schedule or arch has the times of a program compiled for it."""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp import (
    DenseDyn,
    Deps,
    DispatchPolicy,
    DType,
    In,
    InOut,
    Out,
    P,
    Program,
    PtoError,
    Ragged,
    Scalar,
    Symbol,
    TaskWindow,
    Tensor,
    Tile,
    TracePolicy,
    WindowMode,
    Workload,
    kernel,
    pto,
    workload,
)
from pto_wsp.ir.axes import Dense
from pto_wsp.run.native import Engine
from pto_wsp.schedule.schedule import Schedule

F32 = DType.F32
LENGTHS = np.array([3, 40, 16, 7])
X = Tensor(np.ones((4, 48), np.float32), name="X")
Y = Tensor(np.zeros((4, 48), np.float32), name="Y")
ACC = Tensor(np.zeros((4, 16), np.float32), name="ACC")


@kernel
def scale(x: In[Tile[1, 16, F32]], y: Out[Tile[1, 16, F32]], n: Scalar[DType.I32]) -> None:
    for _ in pto.range(n):
        pto.store(y, x * 2.0)


@kernel
def add_up(x: In[Tile[1, 16, F32]], acc: InOut[Tile[1, 16, F32]]) -> None:
    pto.store(acc, acc + x)


@workload
def blocks() -> None:
    """Blocks of rows of different lengths: short tails, loops of different lengths, chains of sums."""
    rows = DenseDyn(4)
    lengths = Tensor(LENGTHS, name="lengths")
    parts = Ragged(rows, -(-LENGTHS // 16))
    for r in P(rows):
        for i in P(parts[r]):
            scale[r, i](x=X[r, i * 16:lengths[r]].clip(16), y=Y[r, i * 16:lengths[r]].clip(16), n=lengths[r] % 5 + i)
        for i in P.seq(parts[r]):
            add_up[r, i + 1](x=Y[r, i * 16:(i + 1) * 16], acc=ACC[r])


@pytest.fixture(scope="module", params=["cpu_sim", "interp"])
def program(request: pytest.FixtureRequest) -> Program:
    """One run, which every test times again."""
    return blocks().compile(target=request.param).run()


W = blocks()
SCHEDULES: dict[str, Workload] = {
    "default": W,
    "round robin": W.dispatch(DispatchPolicy.round_robin(3)),
    "affinity": W.dispatch(DispatchPolicy.affinity(lambda t: t.r, num_aicpus=2)),
    "by name and bracket": W.dispatch(DispatchPolicy.dispatch_by(lambda t: t.i * 7 + t.params[1], num_aicpus=3)),
    "hash": W.dispatch(DispatchPolicy.hash(lambda t: t.r - 5, num_aicpus=3)),
    "overlap": W.dispatch(DispatchPolicy.round_robin(4)).task_graph(deps=Deps.infer_bytes_overlap()),
    "streams": W.dispatch(DispatchPolicy.round_robin(4)).streams(2),
    "stream by": W.stream_by(lambda t: t.r),
    "streams alone": W.streams(3),
    "cycles": W.dispatch(DispatchPolicy.round_robin(2)).task_graph(trace=TracePolicy.cycles(lambda t: 10 * t.r + t.i)),
    "window": W.dispatch(DispatchPolicy.round_robin(4)).task_graph(window=TaskWindow(3)),
}


def assert_same(timed: object, other: Program) -> None:
    assert timed.stats.total_cycles == other.stats.total_cycles
    assert timed.stats.executors == other.stats.executors
    assert timed.stats.window == other.stats.window
    assert timed.stats.critical_path == other.stats.critical_path
    assert list(timed.trace) == list(other.trace)
    assert timed.graph == other.graph or (list(timed.graph.tasks), timed.graph.edges) == (list(other.graph.tasks), other.graph.edges)


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("arch", ["unit", "host_cpu"])
@pytest.mark.sampled(12)
def test_a_stream_timed_again_has_the_times_of_a_program_compiled_so(program: Program, name: str, arch: str) -> None:
    scheduled = SCHEDULES[name]
    assert_same(program.simulate(scheduled, arch), scheduled.compile(target="interp", arch=arch).run())


# ---- kinds of edges that the record lacks ----

KINDS = {"overlap": Deps.infer_bytes_overlap(), "hybrid": Deps.hybrid(), "explicit": Deps.explicit()}


@workload
def ordered() -> None:
    """Rows one after the other, each a chain: structure and data say different things; one task names what it waits for."""
    for r in P.seq(4):
        first = scale[r, 0](x=X[r, 0:16], y=Y[r, 0:16], n=r + 1)
        add_up[r, 1](x=Y[r, 0:16], acc=ACC[r])
    for r in P(4):
        copied = scale[r, 1](x=X[r, 16:32], y=Y[r, 16:32], n=1)
    add_up[9, 9](x=Y[0, 32:48], acc=ACC[3], after=copied)
    del first


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target", ["cpu_sim", "interp"])
@pytest.mark.parametrize("recorded", KINDS)
def test_edges_that_the_record_lacks_are_made_again(recorded: str, target: str) -> None:
    w = ordered().dispatch(DispatchPolicy.round_robin(3))
    program = w.task_graph(deps=KINDS[recorded]).compile(target=target).run()
    for kind in KINDS.values():
        wanted = w.task_graph(deps=kind)
        assert_same(program.simulate(wanted), wanted.compile(target="interp").run())


# ---- bad input ----

def refused(what: object) -> PtoError:
    with pytest.raises(PtoError) as caught:
        what()  # type: ignore[operator]
    return caught.value


def test_there_is_nothing_to_simulate_before_a_run() -> None:
    program = blocks().compile(target="interp")
    assert refused(program.simulate).code == "R103"


def test_what_is_no_schedule_or_arch_is_refused(program: Program) -> None:
    @workload
    def other() -> None:
        for r in P(Dense[4]()):
            add_up[r](x=Y[r, 0:16], acc=ACC[r])

    error = refused(lambda: program.simulate(other()))
    assert error.code == "S102" and "`other`" in str(error) and "test_simulate.py" in str(error)
    assert program.simulate(other().dispatch(DispatchPolicy.round_robin(2)).schedule).stats.total_cycles > 0
    assert refused(lambda: program.simulate(3)).code == "S102"
    assert refused(lambda: program.simulate(arch="no_such")).code == "C115"
    assert refused(lambda: program.simulate(overheads="yes")).code == "C104"


def test_a_key_that_names_no_loop_of_the_task_is_refused(program: Program) -> None:
    assert refused(lambda: program.simulate(W.dispatch(DispatchPolicy.affinity(lambda t: t.z)))).code == "S103"


def test_a_simulation_stays_when_the_program_runs_again() -> None:
    program = blocks().compile(target="interp").run()
    before = program.simulate(SCHEDULES["round robin"])
    work, events = before.stats.work, list(before.trace)
    program.run(rows=1)
    assert (before.stats.work, list(before.trace)) == (work, events)
    assert program.simulate(SCHEDULES["round robin"]).stats.work < work


# ---- streams longer than a record keeps ----

LONG = {
    "round robin": ordered().dispatch(DispatchPolicy.round_robin(3)),
    "overlap": ordered().dispatch(DispatchPolicy.affinity(lambda t: t.params[0], num_aicpus=2)).task_graph(deps=Deps.infer_bytes_overlap()),
    "a wider window": ordered().dispatch(DispatchPolicy.round_robin(3)).task_graph(deps=Deps.hybrid(), window=TaskWindow(6)),
    "a narrower window": ordered().dispatch(DispatchPolicy.round_robin(3)).task_graph(deps=Deps.hybrid(), window=TaskWindow(2)),
}


@pytest.fixture(scope="module")
def long_program() -> Program:
    """A program whose record keeps four of its tasks."""
    program = ordered().task_graph(deps=Deps.hybrid(), window=TaskWindow(3)).compile()
    engine = program.compiled.runner
    assert isinstance(engine, Engine)
    short = Engine(engine.artifact, engine.plan, 1, max_tasks=4)
    object.__setattr__(program.compiled, "runner", short)
    return program.run()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("arch", ["unit", "host_cpu"])
def test_a_stream_that_no_record_keeps_is_made_again_piece_by_piece(long_program: Program, name: str, arch: str) -> None:
    timed, other = long_program.simulate(LONG[name], arch), LONG[name].compile(target="interp", arch=arch).run()
    assert long_program.compiled.runner.recorder.columns().first_node > 0
    assert timed.stats.total_cycles == other.stats.total_cycles
    assert timed.stats.executors == other.stats.executors
    assert timed.stats.window == other.stats.window
    with pytest.raises(PtoError, match="more than a trace keeps"):
        timed.trace  # noqa: B018


def test_structure_that_a_long_stream_was_made_without_is_refused(long_program: Program) -> None:
    program = ordered().task_graph(deps=Deps.infer_bytes_overlap()).compile()
    engine = program.compiled.runner
    assert isinstance(engine, Engine)
    object.__setattr__(program.compiled, "runner", Engine(engine.artifact, engine.plan, 1, max_tasks=4))
    error = refused(lambda: program.run().simulate(ordered()))
    assert error.code == "R115" and "order of the workload's structure" in str(error)


# ---- what every task is asked ----

def test_the_key_of_a_policy_is_checked_for_every_task(program: Program) -> None:
    wanted = W.stream_by(lambda t: t.params[0] - 1)
    alone, compiled = refused(lambda: program.simulate(wanted)), refused(lambda: wanted.compile(target="interp").run())
    assert (alone.code, alone.message, alone.found, alone.notes) == (compiled.code, compiled.message, compiled.found, compiled.notes)


def test_a_symbol_that_the_run_had_no_value_for_is_named(program: Program) -> None:
    error = refused(lambda: program.simulate(W.dispatch(DispatchPolicy.affinity(lambda t: t.r + Symbol("shift")))))
    assert error.code == "R103" and "depends on `shift`" in str(error)


def test_what_a_window_or_equal_regions_do_not_allow_is_refused_as_when_compiling() -> None:
    program = blocks().compile(target="interp").run()
    aborts = Schedule().with_task_graph(window=TaskWindow(2, "tasks", WindowMode.ABORT))
    with pytest.raises(PtoError, match="found no room in the window") as caught:
        program.simulate(aborts)
    assert caught.value.code == "R106"
    with pytest.raises(PtoError, match="equal or apart") as caught:
        program.simulate(Schedule().with_task_graph(deps=Deps.infer_tensor_map_exact()))
    assert caught.value.code == "W203"
