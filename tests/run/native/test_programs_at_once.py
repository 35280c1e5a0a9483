"""Several programs at once, from several Python threads; one program from two; threads that do not start."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pto_wsp import Dense, DType, InOut, P, Program, Scalar, Tensor, Tile, kernel, pto, workload
from pto_wsp.errors import ProgramStateError, PtoError, ThreadStartError
from pto_wsp.run import native

I64 = DType.I64
ROWS, STEPS = 16, 40


@kernel
def step(x: InOut[Tile[1, 8, I64]], k: Scalar[I64]) -> None:
    pto.store(x, x * 3 + k)


def program_of(threads: int) -> tuple[Program, np.ndarray[Any, Any]]:
    """Each row goes through STEPS steps."""
    x = Tensor(np.zeros((ROWS, 8), np.int64), name="X")

    @workload
    def steps() -> None:
        for k, r in P.seq(Dense[STEPS](), Dense[ROWS]()):
            step[k, r](x=x[r], k=k)

    return steps().compile(threads=threads), x.data


def expected() -> int:
    found = 0
    for k in range(STEPS):
        found = (found * 3 + k) & (1 << 64) - 1
    return found


def test_programs_run_side_by_side() -> None:
    programs = [program_of(threads) for threads in (1, 2, 2, 3)]     # the second and the third share a pool
    right = np.uint64(expected())
    wrong: list[object] = []

    def often(program: Program, data: np.ndarray[Any, Any]) -> None:
        try:
            for _ in range(25):
                data[:] = 0
                program.run()
                wrong.extend([data.copy()] * bool((data.view(np.uint64) != right).any()))
        except BaseException as failure:
            wrong.append(failure)

    threads = [threading.Thread(target=often, args=one) for one in programs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_one_program_runs_for_one_thread_at_a_time() -> None:
    program, data = program_of(2)
    together = threading.Barrier(4)
    ran, refused = [], []

    def run() -> None:
        together.wait()
        for _ in range(20):
            try:
                ran.append(program.run())
            except ProgramStateError as error:
                refused.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    data[:] = 0
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ran) + len(refused) == 80 and ran
    for error in refused:
        assert error.code == "R103" and "for runs side by side, compile a program for each thread" in str(error)
    data[:] = 0
    program.run()
    assert (data.view(np.uint64) == np.uint64(expected())).all()


def test_two_threads_may_wait_for_one_run() -> None:
    program, data = program_of(2)
    for _ in range(5):
        data[:] = 0
        program.execute()
        waiting = [threading.Thread(target=program.synchronize) for _ in range(3)]
        for thread in waiting:
            thread.start()
        for thread in waiting:
            thread.join()
        assert program.is_complete() and (data.view(np.uint64) == np.uint64(expected())).all()


def test_threads_that_do_not_start_are_an_error() -> None:
    lib = SimpleNamespace(pto_pool_new=lambda threads: None)
    runtime: Any = SimpleNamespace(ffi=SimpleNamespace(NULL=None), lib=lib, __hash__=None)
    with pytest.raises(ThreadStartError) as caught:
        native.pool_of.__wrapped__(runtime, 16, 0)
    assert isinstance(caught.value, PtoError)
    assert "16 threads, 15 of them new" in str(caught.value) and "threads=1" in str(caught.value)


def test_a_run_whose_thread_does_not_start_is_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    program, data = program_of(1)

    def refuse(function: object, arguments: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr("pto_wsp.api.program.start_thread", refuse)
        with pytest.raises(ThreadStartError):
            program.execute()
    assert program.is_complete()
    data[:] = 0
    program.run()
    assert (data.view(np.uint64) == np.uint64(expected())).all()
