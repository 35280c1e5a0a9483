"""Ctrl-C at loops that make no tasks, in kernels, pipelines and simulations: it is seen within a bound, and the next run is right."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from pto_wsp import (
    Channel,
    DispatchPolicy,
    DType,
    In,
    InOut,
    Out,
    P,
    Program,
    Scalar,
    Symbol,
    TaskWindow,
    Tensor,
    Tile,
    WindowMode,
    consume,
    kernel,
    pto,
    send,
    workload,
)
from pto_wsp.errors import ProgramStateError
from pto_wsp.run.native import Engine
from tests.main_thread import wait_until_in

I64 = DType.I64
ENDLESS = 1 << 62
SEEN_S = 0.2       # what is promised on a machine with nothing else to do
SLACK_S = 60.0     # on one that is shared: endless is longer

TARGETS = pytest.mark.parametrize("target", ["cpu_sim", "interp"])
WAYS = pytest.mark.parametrize("wait", [lambda program, **given: program.run(**given),
                                        lambda program, **given: (program.execute(**given), program.synchronize())],
                               ids=["run", "synchronize"])
Wait = Callable[..., object]


@pytest.fixture(autouse=True)
def _usual_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@contextmanager
def interrupted() -> Iterator[None]:
    """Press Ctrl-C when a run or a wait inside goes on: it ends with KeyboardInterrupt, and soon."""
    pressed: list[float] = []

    def press() -> None:
        wait_until_in("run", "wait")
        time.sleep(0.1)
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
            presser.join()
            time.sleep(10)      # what was inside ended by itself
        assert time.monotonic() - pressed[0] < SEEN_S + SLACK_S
    finally:
        presser.join()


@kernel
def inc(y: InOut[Tile[1, 4, I64]]) -> None:
    pto.store(y, y + 1)


@pytest.mark.sampled(2)
@TARGETS
@WAYS
def test_a_loop_that_makes_no_tasks_ends(target: str, wait: Wait) -> None:
    y, n, least = Tensor(np.zeros((4, 4), np.int64)), Symbol("n"), Symbol("least")

    @workload
    def rarely() -> None:
        for i in P.seq(n):
            with P.when(i < least):
                inc(y[0])

    program = rarely().compile(target=target)
    with interrupted():
        wait(program, n=ENDLESS, least=0)
    assert program.is_complete()
    with pytest.raises(ProgramStateError):
        _ = program.stats
    wait(program, n=3, least=2)
    assert y.data[0].tolist() == [2] * 4
    assert sum(executor.tasks for executor in program.stats.executors) == 2


@pytest.mark.sampled(2)
@TARGETS
@WAYS
def test_a_loop_in_a_kernel_ends(target: str, wait: Wait) -> None:
    @kernel
    def count(y: InOut[Tile[1, 4, I64]], n: Scalar[I64]) -> None:
        for _ in pto.range(n):
            pto.store(y, y + 1)

    y, n = Tensor(np.zeros((2, 4), np.int64)), Symbol("n")

    @workload
    def twice() -> None:
        for i in P(2):
            count[i](y[i], n=n)

    program = twice().compile(target=target, **({"threads": 2} if target == "cpu_sim" else {}))
    with interrupted():
        wait(program, n=ENDLESS)
    assert program.is_complete()
    y.data[:] = 0
    wait(program, n=7)
    assert (y.data == 7).all()


@TARGETS
def test_a_loop_in_a_sanitized_kernel_ends_without_a_finding(target: str) -> None:
    @kernel
    def fill(y: Out[Tile[1, 4, I64]], n: Scalar[I64]) -> None:
        for k in pto.range(n):
            pto.store(y, pto.full((1, 4), k, I64))

    y, n = Tensor.empty((1, 4), I64), Symbol("n")
    out = Tensor(np.zeros((1, 4), np.int64))

    @kernel
    def copy(x: In[Tile[1, 4, I64]], y: Out[Tile[1, 4, I64]]) -> None:
        pto.store(y, x)

    @workload
    def both() -> None:
        fill(y[0], n=n)
        copy(y[0], out[0])

    program = both().compile(target=target, **({"sanitize": True} if target == "cpu_sim" else {}))
    with interrupted():
        program.run(n=ENDLESS)
    program.run(n=3)
    assert out.data.tolist() == [[2] * 4]


@pytest.mark.sampled(3)
@TARGETS
@WAYS
def test_a_process_that_sends_nothing_ends(target: str, wait: Wait) -> None:
    y, n, least = Tensor(np.zeros((4, 4), np.int64)), Symbol("n"), Symbol("least")

    @workload
    def piped() -> None:
        tokens = Channel("tokens", 1)
        with P.pipe():
            for i in P.seq(n):
                with P.when(i < least):
                    send(tokens, inc[i](y[i]))
            with consume(tokens) as i:
                inc[i](y[i])

    program = piped().compile(target=target)
    with interrupted():
        wait(program, n=ENDLESS, least=2)
    y.data[:] = 0
    wait(program, n=9, least=3)
    assert y.data[:, 0].tolist() == [2, 2, 2, 0]


def test_a_rehearsal_ends() -> None:
    """A window that ends a run which does not fit is tried before a kernel runs."""
    y, n = Tensor(np.zeros((4, 4), np.int64)), Symbol("n")

    @workload
    def rarely() -> None:
        for i in P.seq(n):
            with P.when(i < 3):
                inc(y[0])

    program: Program = rarely().dispatch(DispatchPolicy.round_robin(2)).task_graph(window=TaskWindow(8, mode=WindowMode.ABORT)).compile()
    with interrupted():
        program.run(n=ENDLESS)
    assert not y.data.any()
    program.run(n=2)
    assert y.data[0].tolist() == [2] * 4


@pytest.mark.slow
def test_a_second_one_leaves_a_run_that_cannot_be_ended_and_the_program_says_that_it_runs() -> None:
    y, seen = Tensor(np.zeros((1, 1), np.int64)), list[int]()

    @kernel(c_src="while (*(volatile int64_t *)y == 0) ;")      # until Python lets it go
    def long(y: InOut[Tile[1, 1, I64]]) -> None: ...

    def handler(number: int, frame: object) -> None:
        seen.append(number)
        raise KeyboardInterrupt

    def press() -> None:
        wait_until_in("wait")
        os.kill(os.getpid(), signal.SIGINT)
        while not seen:
            time.sleep(0.005)
        time.sleep(0.1)      # the run is being ended, and cannot be
        os.kill(os.getpid(), signal.SIGINT)

    @workload
    def once() -> None:
        long(y[0])

    program = once().compile(threads=1)
    signal.signal(signal.SIGINT, handler)
    program.execute()
    presser = threading.Thread(target=press)
    presser.start()
    with pytest.raises(KeyboardInterrupt):
        program.synchronize()
    presser.join()
    assert len(seen) == 2 and not program.is_complete()
    with pytest.raises(ProgramStateError, match="running already"):
        program.run()
    y.data[0, 0] = 1
    program.synchronize()
    assert program.is_complete()


class Pressed(Exception):
    """What a handler of the user's own raises."""


def test_what_a_handler_of_the_users_own_raises_ends_the_run() -> None:
    def handler(number: int, frame: object) -> None:
        raise Pressed

    y, n = Tensor(np.zeros((4, 4), np.int64)), Symbol("n")

    @workload
    def rarely() -> None:
        for i in P.seq(n):
            with P.when(i < 2):
                inc(y[0])

    program = rarely().compile()
    signal.signal(signal.SIGINT, handler)

    def press() -> None:
        wait_until_in("run")
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()
    with pytest.raises(Pressed):
        program.run(n=ENDLESS)
    presser.join()
    assert program.is_complete()
    program.run(n=2)
    assert y.data[0].tolist() == [2] * 4



def test_ctrl_c_is_the_callers_again_behind_a_run_longer_than_its_record() -> None:
    """What goes beyond the record is simulated within the run: a call that looks at Ctrl-C within one that does."""
    y, n = Tensor(np.zeros((4, 4), np.int64)), Symbol("n")

    @workload
    def many() -> None:
        for _ in P.seq(n):
            inc(y[0])

    program = many().compile()
    engine = program.compiled.runner
    assert isinstance(engine, Engine)
    short = Engine(engine.artifact, engine.plan, 1, max_tasks=4)
    object.__setattr__(program.compiled, "runner", short)
    program.run(n=100)
    assert short.recorder.columns().first_node > 0
    until = time.monotonic() + 10
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
        while time.monotonic() < until:
            pass
