"""The wall-clock trace of native runs: every task once, after what it waits for, one by one on each thread."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto_wsp
from pto_wsp import (
    Channel,
    Deps,
    DispatchPolicy,
    DType,
    In,
    InOut,
    Out,
    P,
    Program,
    Scalar,
    Symbol,
    Tensor,
    Tile,
    connect,
    consume,
    kernel,
    process,
    pto,
    send,
    timeline,
    workload,
)
from pto_wsp.errors import CompileOptionError, ProgramStateError, TaskFailedError
from pto_wsp.run.native import Engine
from pto_wsp.timing.trace import WallTrace

F32, I64 = DType.F32, DType.I64


@kernel
def step(x: In[Tile[32, 32, F32]], y: InOut[Tile[32, 32, F32]]) -> None:
    """Mix a tile into another one."""
    pto.store(y, pto.matmul(x, y) * 0.01 + x)


@kernel
def total(x: In[Tile[32, 32, F32]], y: InOut[Tile[1, 1, F32]]) -> None:
    """Add a tile up."""
    pto.store(y, pto.rowsum(pto.colsum(x)))


def waves(**options: Any) -> Program:
    """Return a program of 97 tasks on 9 tiles: on each of 8 a step that reads its neighbour, twelve times; then a sum."""
    X, Y = Tensor(np.full((9, 32, 32), 0.01, np.float32)), Tensor(np.zeros((1, 1), np.float32))

    @workload
    def rounds() -> None:
        for _i in P.seq(12):
            for j in P.seq(8):
                step[_i, j](X[j + 1], X[j])
        total[0](X[0], Y)

    w = rounds().task_graph(deps=Deps.infer_bytes_overlap())
    return w.dispatch(DispatchPolicy.round_robin(3)).compile(wall_trace=True, **options)


@pytest.fixture(scope="module", params=[1, 2])
def program(request: pytest.FixtureRequest) -> Program:
    """Return a program that has run, on one thread or two."""
    return waves(threads=request.param).run()


def check(program: Program, threads: int) -> WallTrace:
    """Check every rule of a trace, and return it."""
    trace = program.wall_trace
    assert len(trace) == program.stats.task_count == len(trace.names)
    assert int(trace.start.min()) == 0 and int(trace.end.max()) == trace.total_ns and bool((trace.end >= trace.start).all())
    assert trace.executor.min() >= 0 and trace.executor.max() < threads == trace.n_executors
    assert program.graph.edges or len(trace) < 97
    for edge in program.graph.edges:
        assert trace.start[edge.target] >= trace.end[edge.source], edge
    for thread in range(threads):
        mine = np.flatnonzero(trace.executor == thread)
        mine = mine[np.lexsort((trace.end[mine], trace.start[mine]))]
        assert bool((trace.start[mine][1:] >= trace.end[mine][:-1]).all())
    assert sum(trace.tasks_run) == len(trace) and sum(trace.busy_ns) == int((trace.end - trace.start).sum())
    return trace


@pytest.mark.slow
def test_every_task_runs_once_after_what_it_waits_for(program: Program) -> None:
    trace = check(program, program.compiled.options.threads or 0)
    assert trace[96].name == "total[0]" and trace[3].name == "step[_i=0, j=3]"
    assert sum(trace.busy_ns) <= trace.total_ns * trace.n_executors


def test_a_second_run_replaces_the_first_and_leaves_its_trace_alone(program: Program) -> None:
    first = program.wall_trace
    kept = first.start.copy()
    again = check(program.run(), first.n_executors)
    assert (first.start == kept).all() and not np.array_equal(first.start, again.start)


def test_replays_have_one_thread(program: Program) -> None:
    trace = check(program.replay(7), program.wall_trace.n_executors)
    assert trace.tasks_run[0] == len(trace)


def test_recording_is_timed_in_the_run(program: Program) -> None:
    trace = program.wall_trace
    assert 1 < trace.recording_ns < 1e6     # two looks at a clock take longer than a nanosecond
    most = max(trace.tasks_run)
    assert trace.recording_share == pytest.approx(min(1, trace.recording_ns * most / trace.total_ns))


def test_it_prints_threads_and_what_recording_took(program: Program) -> None:
    trace = program.wall_trace
    lines = str(trace).splitlines()
    used = sum(n > 0 for n in trace.tasks_run)
    assert lines[0].startswith(f"97 tasks on {used} of {trace.n_executors} thread") and lines[1].split() == ["thread", "busy", "tasks"]
    assert [line.split()[-1] for line in lines[2:-1]] == [str(n) for n in trace.tasks_run]
    assert lines[-1] == f"recording took about {trace.recording_ns:.0f} ns a task, {trace.recording_share:.1%} of the run"


def test_the_timeline_shows_threads_and_ns(program: Program) -> None:
    trace = program.wall_trace
    lines = timeline(trace, width=40).splitlines()
    assert [line[:11] for line in lines[:trace.n_executors]] == [f"thread  {k} |" for k in range(trace.n_executors)]
    assert lines[-2].split() == ["0", "ns", str(trace.total_ns)] and lines[-1].strip().startswith("A step, B total")
    assert lines[-2].index("0") == lines[0].index("|")


def test_perfetto_gets_threads_of_one_process(program: Program, tmp_path: Path) -> None:
    trace = program.wall_trace
    data = json.loads(trace.to_perfetto(tmp_path / "wall.json").read_text(encoding="utf-8"))
    assert data["otherData"] == {"clock": "monotonic", "total_ns": trace.total_ns, "recording_ns": trace.recording_ns,
                                 "recording_share": trace.recording_share}
    named = [(e["name"], e["pid"], e["tid"], e["args"]["name"]) for e in data["traceEvents"] if e["ph"] == "M"]
    assert named == [("process_name", 0, 0, "host"), *(("thread_name", 0, k, f"thread {k}") for k in range(trace.n_executors))]
    slices = [e for e in data["traceEvents"] if e["ph"] == "X"]
    assert len(slices) == 97 and len(data["traceEvents"]) == 97 + len(named)
    for task, event in enumerate(slices):
        assert (event["name"], event["pid"], event["tid"]) == (trace.names[task], 0, trace.executor[task])
        assert (event["ts"], event["dur"]) == pytest.approx((trace.start[task] / 1e3, (trace.end[task] - trace.start[task]) / 1e3))
        assert event["args"] == {"task": task, "ns": trace.end[task] - trace.start[task]}


@pytest.mark.slow
def test_by_a_calendar_a_task_runs_on_the_thread_of_its_executor() -> None:
    X = Tensor(np.zeros((4, 32, 32), np.float32))

    @workload
    def tiles() -> None:
        for j in P(4):
            step[j](X[j], X[j])

    program = tiles().calendar(lambda t: (t.j % 3, t.j)).compile(wall_trace=True, threads=2).run()
    assert check(program, 2).executor.tolist() == [0, 1, 0, 0]


@kernel
def copy(x: In[Tile[1, 8, F32]], y: Out[Tile[1, 8, F32]]) -> None:
    """Copy one row."""
    pto.store(y, x)


@kernel
def pick(x: In[Tensor], row: Scalar[I64], y: Out[Tile[1, 8, F32]]) -> None:
    """Copy one row, found at run time."""
    pto.store(y, pto.load(x, (row, 0), shape=(1, 8)))


def rows(count: int = 8, **options: Any) -> tuple[Program, np.ndarray[Any, Any]]:
    """Return a program that copies `count` rows that an array names, and the array: another number than 0 to 7 fails."""
    X, Y = Tensor(np.arange(64, dtype=np.float32).reshape(8, 8)), Tensor(np.zeros((count, 8), np.float32))
    which = Tensor(np.arange(count) % 8)

    @workload
    def copies() -> None:
        for i in P(count):
            pick[i](x=X, row=which[i], y=Y[i])

    assert isinstance(which.data, np.ndarray)
    return copies().compile(**options), which.data


def test_a_run_that_fails_has_none_and_the_next_one_has() -> None:
    program, which = rows(wall_trace=True, threads=2)
    program.run()
    which[3] = 99
    with pytest.raises(TaskFailedError):
        program.run()
    with pytest.raises(ProgramStateError, match="no finished run"):
        program.wall_trace  # noqa: B018 - it raises
    which[3] = 1
    check(program.run(), 2)


def test_past_what_a_record_keeps_there_is_none() -> None:
    program, _ = rows(20, wall_trace=True, threads=2)
    engine = program.compiled.runner
    assert isinstance(engine, Engine)
    object.__setattr__(program.compiled, "runner", Engine(engine.artifact, program.plan, 2, max_tasks=7, wall_trace=True))
    program.run()
    with pytest.raises(ProgramStateError) as caught:
        program.wall_trace  # noqa: B018 - it raises
    assert (caught.value.code, caught.value.message) == ("R115", "the run had 20 tasks, more than a record keeps")
    object.__setattr__(program.compiled, "runner", engine)
    assert len(check(program.run(), 2)) == 20


@pytest.mark.slow
def test_a_run_in_pieces_has_one_trace() -> None:
    X, Y = Tensor(np.ones((4, 8), np.float32)), Tensor(np.zeros((4, 8), np.float32))
    tiles = Channel("tiles", 2)

    def loading() -> None:
        for i in P.seq(4):
            copy[i](X[i], Y[i])
            send(tiles, i)

    def finishing() -> None:
        with consume(tiles) as i:
            copy[i](Y[i], X[i])

    program = connect([process("load").produces(tiles).body(loading), process("finish").consumes(tiles).body(finishing)],
                      [tiles]).compile(wall_trace=True, threads=2).run()
    assert len(check(program, 2)) == 8


def test_an_empty_run_prints_too() -> None:
    X = Tensor(np.ones((4, 8), np.float32))
    n = Symbol("n")

    @workload
    def none() -> None:
        for i in P(n):
            copy[i](X[i], X[i])

    trace = none().compile(wall_trace=True, threads=1).run(n=0).wall_trace
    assert len(trace) == 0 and str(trace).startswith("0 tasks on 0 of 1 thread in 0 ns\n") and str(trace).endswith(" 0.0% of the run")


def test_who_did_not_ask_is_told_how() -> None:
    plain = rows()[0].run()
    with pytest.raises(ProgramStateError) as caught:
        plain.wall_trace  # noqa: B018 - it raises
    assert (caught.value.code, caught.value.message) == ("R103", "the program does not look at the clock")
    assert caught.value.help == "compile(wall_trace=True), then run it"
    with pytest.raises(ProgramStateError) as caught:
        rows(target="interp")[0].run().wall_trace  # noqa: B018 - it raises
    assert (caught.value.code, caught.value.message) == ("R103", "target interp has no wall-clock trace")


@pytest.mark.parametrize("options, text", [
    ({"target": "interp"}, "target interp has no wall_trace"),
    ({"target": "ascend_npu"}, "target ascend_npu has no wall_trace"),
    ({"sanitize": True}, "a sanitized run has no wall-clock trace"),
    ({"wall_trace": 1}, "compile() option `wall_trace` does not take this value"),
])
def test_what_has_none_refuses_the_option(options: dict[str, Any], text: str) -> None:
    with pytest.raises(CompileOptionError) as caught:
        rows(**{"wall_trace": True, **options})
    assert (caught.value.code, caught.value.message) == ("C104", text)


def test_saved_programs_keep_it(program: Program, tmp_path: Path) -> None:
    program.save(tmp_path / "saved")
    loaded = pto_wsp.load(tmp_path / "saved", threads=2)
    with pytest.raises(ProgramStateError) as caught:
        loaded.wall_trace  # noqa: B018 - it raises
    assert (caught.value.code, caught.value.message) == ("R103", "there is no finished run to look at")
    loaded.run(**{name: np.zeros(shape, np.float32) for name, shape in (("X", (9, 32, 32)), ("Y", (1, 1)))})
    assert len(check(loaded, 2)) == 97
