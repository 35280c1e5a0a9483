"""The native engine from Python: errors, interrupts, threads, forks, streams longer than a record, records used again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto_wsp import (
    Dense,
    Deps,
    DispatchPolicy,
    DType,
    In,
    InOut,
    Out,
    P,
    Program,
    Ragged,
    Scalar,
    TaskWindow,
    Tensor,
    Tile,
    kernel,
    pto,
    workload,
)
from pto_wsp.errors import BindingError, ProgramStateError, RunBoundsError, TaskFailedError
from pto_wsp.run.native import Engine, default_threads
from tests.main_thread import wait_until_in

ROOT = Path(__file__).resolve().parents[3]
I64, F32 = DType.I64, DType.F32


@kernel
def piece(x: In[Tensor], row: Scalar[I64], y: Out[Tile[1, 8, F32]]) -> None:
    """Copy one row, found at run time."""
    pto.store(y, pto.load(x, (row, 0), shape=(1, 8)))


@kernel
def step(x: In[Tile[1, 8, I64]], n: Scalar[I64], y: InOut[Tile[1, 8, I64]]) -> None:
    """Mix a row into another one, in a way that depends on the order."""
    pto.store(y, y * 3 + x + n)


def rows_program(rows: np.ndarray[Any, Any], **options: Any) -> tuple[Program, np.ndarray[Any, Any]]:
    """Return a program that copies row rows[i] of 8 for task i; others fail."""
    X, Y = Tensor(np.arange(64, dtype=np.float32).reshape(8, 8)), Tensor(np.zeros((len(rows), 8), np.float32))
    picks = Tensor(rows)

    @workload
    def copies() -> None:
        for i in P(len(rows)):
            piece[i](x=X, row=picks[i], y=Y[i])

    return copies().compile(**options), Y.data


def chain_program(n: int, **options: Any) -> tuple[Program, np.ndarray[Any, Any]]:
    """Return a program of n * 5 tasks on 5 rows that depend on each other."""
    X = Tensor(np.arange(40, dtype=np.int64).reshape(5, 8))

    @workload
    def chains() -> None:
        for i in P.seq(n):
            for j in P.seq(4):
                step[i, j](x=X[j], n=i * 7 + j, y=X[j + 1])
            step[i, 4](x=X[4], n=i, y=X[0])

    return chains().dispatch(DispatchPolicy.round_robin(3)).task_graph(
        deps=options.pop("deps", Deps.infer_bytes_overlap()), window=TaskWindow(options.pop("window", 1 << 30))).compile(**options), X.data


# ---- errors ----

@pytest.mark.parametrize("threads", [1, 4])
def test_a_failed_guard_names_its_task(threads: int) -> None:
    rows = np.arange(600, dtype=np.int64) % 8
    rows[[211, 599]] = (8, -1)
    program, _ = rows_program(rows, threads=threads)
    with pytest.raises(TaskFailedError) as failed:
        program.run()
    first = [f"piece[i={i}]" in str(failed.value) for i in (211, 599)]   # threads may meet the second before the first
    assert failed.value.code == "R101" and (first[0] or (first[1] and threads > 1))


@pytest.mark.parametrize("threads", [1, 4])
def test_of_several_failures_the_first_in_program_order_among_those_that_ran_is_told(threads: int) -> None:
    program, _ = rows_program(np.full(3000, 9, np.int64), threads=threads)
    for _ in range(5):
        with pytest.raises(TaskFailedError) as failed:
            program.run()
        if threads == 1:
            assert "piece[i=0]" in str(failed.value)


def test_an_engine_works_after_an_error() -> None:
    rows = np.zeros(20, np.int64)
    program, found = rows_program(rows, threads=3)
    rows[7] = 99
    with pytest.raises(TaskFailedError):
        program.run()
    rows[7] = 3
    program.run()
    assert (found[7] == np.arange(24, 32)).all() and (found[0] == np.arange(8)).all()


def test_a_failed_check_leaves_every_tensor_as_it_was() -> None:
    lens = np.array([2, 9], np.int64)
    lengths, Y = Tensor(lens), Tensor(np.zeros((2, 4, 8), np.int64))
    X = Tensor(np.ones((1, 8), np.int64))

    @workload
    def ragged() -> None:
        for b in P(2):
            for t in P(Ragged(Dense[2](), lengths)[b]):
                step[b, t](x=X[0], n=1, y=Y[b, t])

    program = ragged().compile()
    with pytest.raises(RunBoundsError, match="t"):
        program.run()
    assert not Y.data.any()
    lens[1] = 4
    program.run()
    assert (Y.data[1] == 2).all() and program.stats.task_count == 6


# ---- interrupts, threads, forks ----

LONG = '''
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)   # a shell starts its background jobs with Ctrl-C ignored
import numpy as np
from pto_wsp import DType, In, InOut, P, Tensor, Tile, kernel, pto, workload

@kernel
def slow(x: In[Tile[64, 64, DType.F32]], y: InOut[Tile[64, 64, DType.F32]]):
    pto.store(y, pto.tanh(y + x) @ x)

X, Y = Tensor(np.ones((64, 64), np.float32)), Tensor(np.zeros((64, 64), np.float32))

@workload
def endless(n):
    for i in P.seq(n):
        slow[i](x=X, y=Y)

long, short = endless(1_000_000).compile(threads=2), endless(3).compile(threads=2)
short.run()
try:
    print("ready", flush=True)
    long.run()
    print("finished", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
short.run()
print("usable", flush=True)
'''


@pytest.mark.slow
def test_ctrl_c_ends_a_run_and_the_next_one_works(tmp_path: Path, cache_dir: Path) -> None:
    script = tmp_path / "long.py"
    script.write_text(LONG)
    process = subprocess.Popen([sys.executable, str(script)], env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)      # "finished" says that it ran to its end
    assert out.split() == ["interrupted", "usable"], err


@pytest.mark.slow
def test_an_interrupted_wait_lasts_until_the_running_task_has_ended() -> None:
    y = Tensor(np.zeros((2, 1), np.int64), name="Y")

    go = Tensor(np.zeros((1, 1), np.int64), name="GO")

    @kernel(c_src="y[0] += 1; while (*(volatile const int64_t *)go == 0) ;")      # until Python lets it go
    def long(go: In[Tile[1, 1, DType.I64]], y: InOut[Tile[1, 1, DType.I64]]) -> None: ...

    @workload
    def twice() -> None:
        for k in P(2):
            long[k](go, y[k])

    program = twice().compile(threads=1)
    runner = program.compiled.runner
    assert isinstance(runner, Engine)
    cancel = runner.cancel

    def cancelled() -> None:
        cancel()
        assert y.data.sum() == 1 and not program.is_complete()
        go.data[:] = 1

    def press() -> None:
        wait_until_in("wait")
        while not y.data.any():
            time.sleep(0.005)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    presser = threading.Thread(target=press)
    try:
        runner.cancel = cancelled  # type: ignore[method-assign]
        program.execute()
        presser.start()
        with pytest.raises(KeyboardInterrupt):
            program.synchronize()
        assert program.is_complete() and y.data.sum() == 1
        program.execute()
        program.synchronize()
        assert y.data.sum() == 3
    finally:
        presser.join()
        signal.signal(signal.SIGINT, before)


def test_a_handler_of_the_users_own_runs_while_tasks_do(monkeypatch: pytest.MonkeyPatch) -> None:
    program, found = chain_program(2000, threads=2)
    seen: list[bool] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(program.is_complete()))
    timer = threading.Timer(0.01, signal.raise_signal, (signal.SIGINT,))
    try:
        timer.start()
        while not seen:
            program.run()
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert len(seen) == 1 and np.isfinite(found).all()


@pytest.mark.slow
def test_a_program_that_runs_in_one_thread_is_refused_in_another() -> None:
    y = Tensor(np.zeros((1, 1), np.int64))

    @kernel(c_src="while (*(volatile int64_t *)y == 0) ;")      # until Python lets it go
    def long(y: InOut[Tile[1, 1, DType.I64]]) -> None: ...

    @workload
    def once() -> None:
        long(y[0])

    program = once().compile(threads=1)
    worker = threading.Thread(target=program.run)
    worker.start()
    try:
        while program.is_complete() and worker.is_alive():
            time.sleep(0.001)
        with pytest.raises(ProgramStateError, match="running already"):
            program.run()
    finally:
        y.data[:] = 1
        worker.join(60)
    assert program.is_complete()


@pytest.mark.slow
def test_two_programs_run_at_once_in_two_threads() -> None:
    (one, first), (two, second) = chain_program(300, threads=2), chain_program(300, threads=2)
    alone, expected = chain_program(300, target="interp")
    alone.run()
    workers = [threading.Thread(target=program.run) for program in (one, two)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert (first == expected).all() and (second == expected).all()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_runs_programs() -> None:
    program, found = chain_program(400, threads=3)
    program.run()
    child = os.fork()
    if child == 0:
        try:
            before = found.copy()
            program.run()
            os._exit(0 if (found != before).any() else 3)
        except BaseException:
            os._exit(4)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail("the child hangs")


# ---- records ----

@pytest.mark.sampled(4)
@pytest.mark.parametrize("deps", [Deps.infer_bytes_overlap(), Deps.hybrid()], ids=["overlap", "hybrid"])
@pytest.mark.parametrize("window", [1 << 30, 7])
@pytest.mark.parametrize("max_tasks", [1, 7, 64, 1000])
def test_a_stream_longer_than_its_record_is_run_in_parts(max_tasks: int, window: int, deps: Deps) -> None:
    whole, expected = chain_program(40, deps=deps, window=window)
    parts, found = chain_program(40, deps=deps, window=window, threads=2)
    whole.run()
    engine = parts.compiled.runner
    assert isinstance(engine, Engine)
    cut = Engine(engine.artifact, parts.plan, 2, max_tasks=max_tasks)
    object.__setattr__(parts.compiled, "runner", cut)
    parts.run()
    assert (found == expected).all()
    assert parts.stats.task_count == whole.stats.task_count == 200
    for name in ("total_cycles", "critical_path", "work", "executors", "window"):
        assert getattr(parts.stats, name) == getattr(whole.stats, name), name
    parts.run()
    whole.run()
    assert (found == expected).all()


def count_orchestrations(program: Program) -> list[int]:
    """Return a list that grows by one whenever the program's tasks are made anew."""
    made: list[int] = []
    engine = program.compiled.runner
    real = engine.runtime

    class Counting:
        def __getattr__(self, name: str) -> Any:
            return getattr(real.lib, name)

        def pto_run(self, pool: Any, record: Any, options: Any, result: Any) -> Any:
            if options.orchestrate != real.ffi.NULL:
                made.append(1)
            return real.lib.pto_run(pool, record, options, result)

    engine.runtime = type(real)(real.ffi, Counting(), real.path)
    return made


def test_the_record_is_used_again_until_something_that_was_read_changes() -> None:
    rows = np.zeros(10, np.int64)
    program, found = rows_program(rows)
    made = count_orchestrations(program)
    program.run()
    program.run()
    assert len(made) == 1
    rows[3] = 5                            # in place: the scalars of a task have changed
    program.run()
    assert len(made) == 2 and (found[3] == np.arange(40, 48)).all()
    other = np.zeros((10, 8), np.float32)
    program.run(Y=other)
    assert len(made) == 3 and (other[3] == np.arange(40, 48)).all()
    program.run()
    assert len(made) == 4


def test_changed_data_needs_no_new_record() -> None:
    program, found = rows_program(np.zeros(4, np.int64))
    made = count_orchestrations(program)
    program.run()
    program.bind().arrays[0][0] = 9        # the array that the workload was written with
    program.run()
    assert len(made) == 1 and (found == 9).all()


def test_a_failed_run_is_not_used_again() -> None:
    rows = np.full(4, 99, np.int64)
    program, _ = rows_program(rows)
    made = count_orchestrations(program)
    for _ in range(2):
        with pytest.raises(TaskFailedError):
            program.run()
    assert len(made) == 2


def test_no_tasks() -> None:
    program, _ = rows_program(np.zeros(0, np.int64))
    program.run()
    assert (program.stats.task_count, program.stats.total_cycles, program.graph.edges) == (0, 0, ())


# ---- one task whose arguments overlap ----

@pytest.mark.sampled(4)
@pytest.mark.parametrize("turned", [False, True], ids=["rows", "transposed"])
@pytest.mark.parametrize("shift", [-2, -1, 0, 1, 2])
def test_a_task_that_reads_what_it_writes_sees_the_old_values(shift: int, turned: bool) -> None:
    @kernel
    def moved(x: In[Tile[6, 6, I64]], y: Out[Tile[6, 6, I64]]) -> None:
        pto.store(y, x + pto.colsum(x) * 10)

    def run(target: str) -> np.ndarray[Any, Any]:
        X = Tensor(np.arange(100, dtype=np.int64).reshape(10, 10))

        @workload
        def aliased() -> None:
            source = X[2:8, 2:8]
            moved(x=source.T if turned else source, y=X[2 + shift:8 + shift, 2 + abs(shift) // 2:8 + abs(shift) // 2])
        aliased().compile(target).run()
        return X.data

    before = np.arange(100, dtype=np.int64).reshape(10, 10)
    x = before[2:8, 2:8].T.copy() if turned else before[2:8, 2:8].copy()
    before[2 + shift:8 + shift, 2 + abs(shift) // 2:8 + abs(shift) // 2] = x + x.sum(0, keepdims=True) * 10
    assert (run("cpu_sim") == before).all()
    assert (run("interp") == before).all()


# ---- threads ----

@pytest.mark.parametrize("value", ["0", "-1", "two", "", "1.5", "²"])
def test_a_thread_count_that_is_none(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTO_WSP_THREADS", value)
    with pytest.raises(BindingError, match="PTO_WSP_THREADS"):
        default_threads()


def test_threads_are_those_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTO_WSP_THREADS", "3")
    program, _ = rows_program(np.zeros(3, np.int64))
    assert program.compiled.runner.threads == 3
    explicit, _ = rows_program(np.zeros(3, np.int64), threads=2)
    assert explicit.compiled.runner.threads == 2
