"""Streams with marks, pipelines and reads of results, timed again: as a program compiled for the schedule and arch."""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp import (
    Channel,
    Deps,
    DispatchPolicy,
    DType,
    In,
    Out,
    P,
    Program,
    PtoError,
    TaskWindow,
    Tensor,
    Tile,
    Workload,
    connect,
    consume,
    kernel,
    process,
    pto,
    replicate,
    send,
    workload,
)
from pto_wsp.arch.instances import builtin_arch

F32, I64 = DType.F32, DType.I64
N = 6
X, Y, Z = (Tensor(np.ones((N, 4), np.float32), name=name) for name in "XYZ")
COUNTS = Tensor(np.zeros((N, 1), np.int64), name="COUNTS")
UNIT = builtin_arch("unit")
FAR = UNIT.model_copy(update={"channels": UNIT.channels.model_copy(update={"latency_cycles": 7})})
DEPS = {"overlap": Deps.infer_bytes_overlap(), "hybrid": Deps.hybrid()}


@kernel
def more(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]) -> None:
    pto.store(y, x + 1.0)


@kernel
def choose(n: Out[Tile[1, 1, I64]]) -> None:
    pto.store(n, pto.full((1, 1), 2, I64))


def piped(depth: int) -> Workload:
    """Two processes with a channel between them."""
    rows = Channel("rows", depth)

    @workload
    def pipe() -> None:
        with P.pipe():
            for i in P.seq(N):
                send(rows, more[i](x=X[i], y=Y[i]))
            with consume(rows) as i:
                more[i](x=Y[i], y=Z[i])
    return pipe()


@workload
def dependent() -> None:
    """How many tasks there are of a row is what a task of the row computes."""
    for r in P(3):
        choose[r](n=COUNTS[r:r + 1])
        for i in P(COUNTS[r, 0]):
            more[r, i](x=X[2 * r + i], y=Y[2 * r + i])


def assert_same(program: Program, w: Workload, arch: object) -> None:
    """Compare with the interpreter's own program."""
    timed, other = program.simulate(w, arch), w.compile(target="interp", arch=arch).run()
    assert timed.stats.total_cycles == other.stats.total_cycles
    assert timed.stats.executors == other.stats.executors
    assert timed.stats.stalls == other.stats.stalls
    assert list(timed.trace) == list(other.trace)


@pytest.mark.slow
@pytest.mark.parametrize("target, depth, recorded", [
    ("cpu_sim", 2, "hybrid"), ("interp", 0, "hybrid"), ("interp", 0, "overlap"), ("interp", 2, "overlap"),
])
def test_processes_are_timed_again(target: str, depth: int, recorded: str) -> None:
    w = piped(depth)
    program = w.task_graph(deps=DEPS[recorded]).compile(target=target).run()
    for deps in DEPS.values():
        for arch in (UNIT, FAR):
            assert_same(program, w.task_graph(deps=deps), arch)
            assert_same(program, w.task_graph(deps=deps, window=TaskWindow(2)).dispatch(DispatchPolicy.round_robin(3)), arch)
            assert_same(program, w.task_graph(deps=deps).stream_by(lambda t: t.params[0] % 2), arch)


def test_replicas_of_a_process_have_executors_of_their_own() -> None:
    rows = Channel("rows", 4)

    def giving() -> None:
        for i in P.seq(N):
            send(rows, more[i](x=X[i], y=Y[i]))

    def taking() -> None:
        with consume(rows) as i:
            more[i](x=Y[i], y=Z[i])

    source, sink = process("source").produces(rows).body(giving), process("sink").consumes(rows).body(taking)
    w = connect([source, replicate(sink, 2)], [rows])
    program = w.compile(target="interp").run()
    assert_same(program, w, FAR)
    assert len(set(program.simulate().trace.executor.tolist())) == 3


def test_a_far_channel_takes_longer() -> None:
    program = piped(2).compile(target="interp").run()
    assert program.simulate(arch=FAR).total_cycles == program.simulate().total_cycles + 7      # the pipeline fills once later


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cpu_sim", "interp"])
def test_streams_that_read_results_are_timed_again(target: str) -> None:
    program = dependent().task_graph(deps=DEPS["overlap"]).compile(target=target).run()
    w = dependent().task_graph(deps=DEPS["overlap"])
    for scheduled in (w, w.dispatch(DispatchPolicy.round_robin(3)), w.dispatch(DispatchPolicy.affinity("r", 2)),
                      w.dispatch(DispatchPolicy.round_robin(2)).task_graph(window=TaskWindow(2))):
        for arch in (UNIT, builtin_arch("host_cpu")):
            assert_same(program, scheduled, arch)


@pytest.mark.parametrize("recorded, wanted", [("overlap", "hybrid"), ("hybrid", "overlap")])
def test_structure_of_streams_that_read_results_cannot_be_told(recorded: str, wanted: str) -> None:
    program = dependent().task_graph(deps=DEPS[recorded]).compile(target="interp").run()
    with pytest.raises(PtoError, match="depends on what its tasks compute") as caught:
        program.simulate(dependent().task_graph(deps=DEPS[wanted]))
    assert caught.value.code == "R103"


def test_arrays_that_have_changed_since_the_run_are_noticed() -> None:
    bounds = Tensor(np.array([2, 1, 2]), name="bounds")

    @workload
    def ragged() -> None:
        for r in P(3):
            for i in P(bounds[r]):
                more[r, i](x=X[2 * r + i], y=Y[2 * r + i])

    program = ragged().task_graph(deps=Deps.infer_bytes_overlap()).compile(target="interp").run()
    bounds.data[1] = 2
    assert program.simulate(ragged().task_graph(deps=Deps.infer_bytes_overlap())).stats.task_count == 5     # the record as it is
    with pytest.raises(PtoError, match="have changed since the run"):
        program.simulate(ragged().task_graph(deps=Deps.hybrid()))
