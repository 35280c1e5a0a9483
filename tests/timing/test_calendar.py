"""Calendars in runs and simulations: frozen runs take the same time, give the same numbers, and what breaks an edge is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

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
    Pools,
    Program,
    PtoError,
    ReadyPolicy,
    Scalar,
    StartPolicy,
    TaskWindow,
    Tensor,
    Tile,
    TimingPolicy,
    TracePolicy,
    WindowMode,
    Workload,
    consume,
    kernel,
    pto,
    send,
    workload,
)
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.ir.execution_rules import print_rules

F32, I64 = DType.F32, DType.I64
N = 6
A = Tensor(np.arange(N * 4, dtype=np.float32).reshape(N, 4), name="A")
B = Tensor(np.zeros((N, 4), np.float32), name="B")
C = Tensor(np.zeros((N, 4), np.float32), name="C")
SLOW = builtin_arch("unit").with_aicpu(count=4, submit_cycles=2, dispatch_cycles=5, retire_cycles=3)


@kernel
def more(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]], n: Scalar[I64]) -> None:
    for _ in pto.range(n):
        pto.store(y, x + 1.0)


@kernel
def add(x: In[Tile[1, 4, F32]], y: InOut[Tile[1, 4, F32]]) -> None:
    pto.store(y, y + x)


@workload
def alone() -> None:
    for k in P(N):
        more[k](x=A[k], y=B[k], n=1)


@workload
def two_steps() -> None:
    """Six tasks of different lengths, then six sums: task N + i reads what task i writes; the last sums are of one row."""
    for i in P(N):
        more[i](x=A[i], y=B[i], n=i % 3 + 1)
    for i in P.seq(N):
        add[i](x=B[i], y=C[i // 2])


W = two_steps().task_graph(deps=Deps.infer_bytes_overlap())
SCHEDULES: dict[str, Workload] = {
    "round robin": W.dispatch(DispatchPolicy.round_robin(3)),
    "one executor": W,
    "queue": W.dispatch(DispatchPolicy.work_steal(3)),
    "stealing": W.dispatch(DispatchPolicy.affinity("i", 3)).task_graph(ready=ReadyPolicy.work_steal()),
    "priority": W.dispatch(DispatchPolicy.round_robin(2)).task_graph(ready=ReadyPolicy.priority(lambda t: t.i)),
    "window": W.dispatch(DispatchPolicy.round_robin(3)).task_graph(window=TaskWindow(4)),
    "batches": W.dispatch(DispatchPolicy.round_robin(2)).timing(TimingPolicy.batched(5)),
    "rate": W.dispatch(DispatchPolicy.round_robin(2)).timing(TimingPolicy.rate_limit(100000.0)),
    "after orchestration": W.dispatch(DispatchPolicy.round_robin(2)).task_graph(start=StartPolicy.after_orchestration()),
    "streams": W.streams(3).stream_by(lambda t: t.i * 5 % 3),
    "one stream over two": W.dispatch(DispatchPolicy.round_robin(2)).streams(4),
    "turns": W.dispatch(DispatchPolicy.round_robin(2)).streams(3).timing(TimingPolicy.interleaved(3)),
    "streams in batches": W.streams(3).timing(TimingPolicy.batched(5)),
    "hybrid": two_steps().dispatch(DispatchPolicy.round_robin(2)),
}


def expected() -> np.ndarray:
    """What the tasks make of C that holds nothing."""
    rows = A.data + 1
    sums = np.zeros_like(C.data)
    for i in range(N):
        sums[i // 2] += rows[i]
    return sums


def run(w: Workload, target: str, **options: object) -> Program:
    """Compile and run from nothing, and check the numbers."""
    program = w.compile(target=target, **options)  # type: ignore[arg-type]
    B.data[:] = C.data[:] = 0
    program.run()
    np.testing.assert_array_equal(C.data, expected())
    return program


@pytest.fixture(scope="module", params=["cpu_sim", "interp"])
def program(request: pytest.FixtureRequest) -> Program:
    return run(W, request.param)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("overheads", [False, True])
def test_a_frozen_simulation_takes_the_same_time(program: Program, name: str, overheads: bool) -> None:
    found = program.simulate(SCHEDULES[name], SLOW, overheads=overheads)
    again = program.simulate(found.freeze(), SLOW, overheads=overheads)
    assert again.total_cycles == found.total_cycles
    assert again.trace.start.tolist() == found.trace.start.tolist()
    assert again.trace.executor.tolist() == found.trace.executor.tolist()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_frozen_program_gives_the_same_numbers_on_any_number_of_threads(program: Program, threads: int) -> None:
    frozen = program.simulate(SCHEDULES["round robin"]).freeze()
    w = two_steps().task_graph(deps=Deps.infer_bytes_overlap()).calendar(frozen.calendar or ())
    target = "cpu_sim" if program.artifact_dir is not None else "interp"
    found = run(w, target, **({"threads": threads} if target == "cpu_sim" else {}))
    assert found.stats.total_cycles == program.simulate(SCHEDULES["round robin"]).total_cycles
    assert found.schedule.calendar == frozen.calendar
    C.data[:] = 0
    found.run()      # the record and its lists are used again
    np.testing.assert_array_equal(C.data, expected())


def test_a_program_freezes_its_own_schedule() -> None:
    frozen = run(SCHEDULES["round robin"], "interp").freeze()
    assert frozen.dispatch is None and frozen.deps == Deps.infer_bytes_overlap()
    assert str(frozen.calendar).splitlines()[1:4] == [
        "0: executor 0 position 0 start 0", "1: executor 1 position 0 start 0", "2: executor 2 position 0 start 0"]


@pytest.mark.slow
def test_the_table_stands_in_the_artifact_and_goes_along_when_it_is_saved(tmp_path: Path) -> None:
    table = [(i % 2, i // 2) for i in range(2 * N)]
    built = run(W.calendar(table), "cpu_sim")
    assert built.artifact_dir is not None
    assert "const int32_t pto_calendar[12][2] = {" in (built.artifact_dir / "src" / "tables.c").read_text()
    loaded = pto_wsp.load(built.save(tmp_path / "saved"))
    B.data[:] = C.data[:] = 0
    loaded.run(A=A.data, B=B.data, C=C.data)
    np.testing.assert_array_equal(C.data, expected())
    assert loaded.stats.total_cycles == built.stats.total_cycles


def test_a_task_does_not_begin_before_its_start(program: Program) -> None:
    """Tasks of one cycle. On one executor 0 at 3, then 2 at once and 4 at 9; on the other 1 at 0, 3 at 2, and 5, whose start is past."""
    starts = [3, 0, 1, 2, 9, 1]
    w = alone().task_graph(trace=TracePolicy.cycles(lambda t: 1)).calendar([(k % 2, k // 2, start) for k, start in enumerate(starts)])
    done = w.compile(target="interp").run()
    assert done.trace.start.tolist() == [3, 0, 4, 2, 9, 3] and done.stats.total_cycles == 10
    assert "the calendar, which has it start then" in str(done.explain(4))
    assert "start then" not in str(done.explain(2)) and "start then" not in str(done.explain(1))
    assert done.plan.rules.starts == tuple(starts) and "each task from its start on" in print_rules(done.plan.rules)
    later = program.simulate(W.calendar([(k % 2, k // 2, 10_000 * k) for k in range(2 * N)]))
    assert later.trace.start.tolist() == [10_000 * k for k in range(2 * N)]


def test_starts_are_of_simulated_time_alone() -> None:
    far = run(W.calendar([(k % 2, k // 2, (1 << 61) + k) for k in range(2 * N)]), "cpu_sim", threads=2)     # a century or so
    assert far.trace.start[0] == 1 << 61


def test_executors_of_one_aicpu_keep_their_starts(program: Program) -> None:
    pooled = W.dispatch(DispatchPolicy.affinity("i", 2)).streams(3).task_graph(pools=Pools.custom(lambda t: t.i % 3))
    found = program.simulate(pooled, SLOW, overheads=True)
    again = program.simulate(found.freeze(), SLOW.with_aicpu(count=8), overheads=True)
    assert again.trace.start.tolist() == found.trace.start.tolist() and again.total_cycles <= found.total_cycles


# ---- what a calendar may not do ----

def refused(what: object) -> PtoError:
    """Return the error, and check that no task has run."""
    B.data[:] = C.data[:] = -1
    with pytest.raises(PtoError) as caught:
        what()  # type: ignore[operator]
    assert (B.data == -1).all() and (C.data == -1).all()
    return caught.value


BEHIND = {           # add[3] is task 9 and reads what more[3], task 3, writes
    "table": [(0, 20) if i == 3 else (0, i) for i in range(2 * N)],
    "function": lambda t: (0, t.i),
}


@pytest.mark.parametrize("target", ["cpu_sim", "interp"])
def test_a_task_before_what_it_waits_for_is_refused_with_the_edge(program: Program, target: str) -> None:
    wanted = W.calendar(BEHIND["table"])
    ran, simulated = refused(lambda: wanted.compile(target=target).run()), refused(lambda: program.simulate(wanted))
    for error in (ran, simulated):
        assert error.code == "S106"
        assert error.message == "the calendar has task 9 `add[i=3]` before task 3 `more[i=3]`, which it waits for"
        assert "3 more[i=3] → 9 add[i=3]  RAW on B[3, 0:4]" in str(error)
        assert "executor 0 runs it at position 9, and task 3 at 20" in str(error)
        assert "test_calendar.py" in str(error)


@pytest.mark.parametrize("target", ["cpu_sim", "interp"])
def test_two_tasks_in_one_place_are_refused(target: str) -> None:
    error = refused(lambda: W.calendar(BEHIND["function"]).compile(target=target).run())
    assert error.code == "S106" and "task 0 `more[i=0]` and task 6 `add[i=0]` are in one place" in str(error)


@pytest.mark.parametrize("target", ["cpu_sim", "interp"])
def test_executors_that_wait_for_each_other_are_refused(program: Program, target: str) -> None:
    # executor 0: add[0], then more[1]; executor 1: add[1] (of the same row of C), which waits for more[1], then more[0]
    table = [(2, i) for i in range(2 * N)]
    table[N], table[1], table[7], table[0] = (0, 0), (0, 1), (1, 0), (1, 1)
    for what in (lambda: W.calendar(table).compile(target=target).run(), lambda: program.simulate(W.calendar(table))):
        error = refused(what)
        assert error.code == "S106" and "a circle of 4 tasks" in str(error)
        assert "stands behind" in str(error) and "RAW on B[0, 0:4]" in str(error)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target", ["cpu_sim", "interp"])
@pytest.mark.parametrize("n", [0, 1, 13])
def test_another_number_of_rows_than_tasks_is_refused(program: Program, target: str, n: int) -> None:
    wanted = W.calendar([(0, i) for i in range(n)])
    for what in (lambda: wanted.compile(target=target).run(), lambda: program.simulate(wanted)):
        error = refused(what)
        assert error.code == "S106" and f"the calendar has {n} row{'s' if n != 1 else ''}, and the run has" in str(error)


def test_an_order_that_the_window_cannot_hold_is_refused(program: Program) -> None:
    wanted = two_steps().task_graph(deps=Deps.infer_bytes_overlap(), window=TaskWindow(2))
    backwards = wanted.calendar([(0, N - 1 - i) if i < N else (0, i) for i in range(2 * N)])
    for what in (lambda: backwards.compile().run(), lambda: program.simulate(backwards)):
        error = refused(what)
        assert error.code == "S106" and error.found == "a window of 2 tasks"
    assert program.simulate(backwards.task_graph(window=TaskWindow(2, "tasks", WindowMode.BENCHMARK))).total_cycles > 0


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target", ["interp", "cpu_sim"])
@pytest.mark.parametrize("places", [lambda k: (k % 2, k), lambda k: (0, N - 1 - k)], ids=["as submitted", "backwards"])
def test_a_window_that_ends_the_run_ends_it_before_a_kernel_runs(target: str, places: Callable[[int], tuple[int, int]]) -> None:
    tight = alone().calendar([places(k) for k in range(N)]).task_graph(window=TaskWindow(2, "tasks", WindowMode.ABORT))
    B.data[:] = -1
    with pytest.raises(PtoError, match=r"error\[R106\]: task more\[k=2\] found no room in the window"):
        tight.compile(target=target).run()
    assert (B.data == -1).all()


def test_an_executor_below_zero_is_refused(program: Program) -> None:
    wanted = W.calendar(lambda t: (t.i - 3, t.i))
    for what in (lambda: wanted.compile(target="interp").run(), lambda: program.simulate(wanted)):
        assert refused(what).code == "S104"


def test_tasks_that_depend_on_results_have_no_calendar() -> None:
    counts = Tensor(np.zeros((1, 1), np.int64), name="counts")

    @kernel
    def choose(n: Out[Tile[1, 1, I64]]) -> None:
        pto.store(n, pto.full((1, 1), 2, I64))

    @workload
    def dependent() -> None:
        choose(n=counts)
        for i in P(counts[0, 0]):
            more[i](x=A[i], y=B[i], n=1)

    error = refused(lambda: dependent().calendar([(0, 0)]).compile(target="interp"))
    assert error.code == "S106" and "depends on what its tasks compute" in str(error)


@pytest.mark.slow
def test_a_sanitized_run_checks_the_calendar_too() -> None:
    assert refused(lambda: W.calendar(BEHIND["table"]).compile(sanitize=True).run()).code == "S106"
    run(W.calendar([(i % 2, i) for i in range(2 * N)]), "cpu_sim", sanitize=True)


@pytest.mark.slow
def test_processes_run_by_a_calendar() -> None:
    rows = Channel("rows", 2)

    @workload
    def piped() -> None:
        with P.pipe():
            for i in P.seq(N):
                send(rows, more[i](x=A[i], y=B[i], n=1))
            with consume(rows) as i:
                add[i](x=B[i], y=C[i // 2])

    free = run(piped().dispatch(DispatchPolicy.round_robin(2)), "cpu_sim")
    frozen = free.freeze()
    assert free.simulate(frozen).total_cycles == free.stats.total_cycles
    run(piped().calendar(frozen.calendar or ()), "cpu_sim")


@pytest.mark.slow
def test_executors_of_a_calendar_may_be_cores() -> None:
    pooled = two_steps().dispatch(DispatchPolicy.round_robin(2)).task_graph(pools=Pools.by_exec_unit())
    program = pooled.compile(arch="ascend_910b", overheads=True).run()
    frozen = program.freeze()
    assert frozen.calendar is not None and (frozen.calendar.n_executors or 0) > 6     # the AICPUs
    again = two_steps().under(frozen).compile(arch="ascend_910b", overheads=True).run()
    assert again.stats.total_cycles == program.stats.total_cycles


def test_a_calendar_that_names_more_executors_than_there_are_cores_is_refused() -> None:
    with pytest.raises(PtoError, match="C110") as refused:
        two_steps().calendar([(12 * k, 0) for k in range(12)]).compile(arch="ascend_910b")
    assert (refused.value.expected, refused.value.found) == ("at most 72", "133")


def test_tasks_of_no_cost_keep_their_order(program: Program) -> None:
    free = W.dispatch(DispatchPolicy.round_robin(3)).task_graph(trace=TracePolicy.cycles(lambda t: t.i % 2 * 4))
    found = program.simulate(free)
    again = program.simulate(found.freeze())
    assert again.trace.start.tolist() == found.trace.start.tolist() and found.total_cycles > 0


def test_the_first_place_of_every_executor_may_be_the_same(program: Program) -> None:
    found = program.simulate(W.calendar([(i, 0) for i in range(2 * N)]))
    assert sorted(found.trace.executor.tolist()) == list(range(2 * N))


def test_what_aicpus_do_for_tasks_is_shared_by_those_that_a_calendar_names() -> None:
    # six tasks of one cycle, each with 5 of dispatch and 3 of retirement, on two AICPUs: 6 * 8 / 2
    w = alone().task_graph(trace=TracePolicy.cycles(lambda t: 1))
    for places in (lambda t: (t.k % 2, t.k), [(k % 2, k) for k in range(N)]):
        stats = w.calendar(places).compile(target="interp", arch=SLOW, overheads=True).run().stats
        assert stats.control.aicpus == 2 and stats.lower_bound == 24 <= stats.total_cycles


@pytest.mark.parametrize("threads", [1, 2])
def test_the_calendar_of_a_run_with_a_window_of_bytes_runs_on_host_threads(threads: int) -> None:
    # two tensors of 16 bytes at a time: one that has been written makes room for the third before it has been read
    found = np.zeros((4, 4), np.float32)
    y = Tensor(found, name="Y")

    @workload
    def scratch() -> None:
        for k in P(4):
            t = Tensor.empty((1, 4), F32)
            more[k](A[k], t, 3)
            more[k](t, y[k], 1)

    program = scratch().task_graph(window=TaskWindow(32, "bytes")).compile(target="interp").run()
    frozen = program.freeze()
    assert (np.diff(program.trace.start) < 0).any()
    found[:] = 0
    again = scratch().under(frozen).compile(threads=threads).run()
    assert again.stats.total_cycles == program.stats.total_cycles
    assert np.array_equal(found, A.data[:4] + 2.0)
