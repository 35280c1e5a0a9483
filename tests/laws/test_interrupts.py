"""Ctrl-C at random moments of random programs: what runs ends, nothing of it goes on, and the next run gives the right numbers."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from pto_wsp import DispatchPolicy, DType, In, InOut, P, Program, PtoError, Scalar, Symbol, Tensor, Tile, Workload, kernel, pto, workload

I64 = DType.I64
ROWS = 16
ENDS_WITHIN_S = 60.0      # on a machine that others use too
SWALLOWED: list[object] = []     # what Python reported to its hook for exceptions that nobody is told of
CONFIGS: dict[str, dict[str, object]] = {
    "interp": {"target": "interp"}, "one thread": {"threads": 1}, "threads": {"threads": 3}, "sanitized": {"sanitize": True},
    "timed": {"threads": 2, "wall_trace": True},
}


@pytest.fixture(autouse=True)
def _usual_handler(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # Ctrl-C may fall on a finaliser or a callback of the test's own tools: Python reports it to this hook, and nothing ends. A hook in
    # Python, as pytest's, would itself be interrupted by the second one; a builtin is not.
    SWALLOWED.clear()
    monkeypatch.setattr(sys, "unraisablehook", SWALLOWED.append)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
    SWALLOWED.clear()


def interrupt(action: Callable[[], object], after_s: float, presses: int) -> None:
    """Do something, and press Ctrl-C once or twice while it goes on or behind it, the second time soon after the first.

    One that Python has swallowed is pressed again, as long as what was begun goes on.
    """
    assert presses <= 2
    begun, over, stopped = threading.Lock(), list[bool](), list[bool]()
    begun.acquire()
    seen = len(SWALLOWED)

    def press() -> None:
        begun.acquire()
        for k in range(presses):
            time.sleep(after_s * (1, 0.2)[k])
            os.kill(os.getpid(), signal.SIGINT)
        pressed_again = 0
        while not over:
            time.sleep(0.005)
            if len(SWALLOWED) - seen > pressed_again:
                pressed_again += 1
                os.kill(os.getpid(), signal.SIGINT)
        stopped.append(True)

    def wait() -> None:
        over.append(True)
        while not stopped:      # not join(), which takes a thread for a stopped one once Ctrl-C has interrupted it
            time.sleep(0.005)
        time.sleep(0.02)      # a signal is on its way; it may also have come where nobody is told, as in a finaliser

    presser = threading.Thread(target=press)
    presser.start()
    began = time.monotonic()
    try:
        try:
            begun.release()
            action()
            wait()
        except KeyboardInterrupt:
            wait()
    except KeyboardInterrupt:
        wait()
    assert time.monotonic() - began < ENDS_WITHIN_S + after_s


@kernel
def mix(x: In[Tile[1, 8, I64]], y: InOut[Tile[1, 8, I64]], n: Scalar[I64]) -> None:
    for _ in pto.range(n):
        pto.store(y, y * 3 + x)


class Drawn:
    """Stages one after another, of rows side by side; how much of each is drawn for each run."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.x, self.y = (np.arange(ROWS * 8).reshape(ROWS, 8) * k for k in (1, 0))
        self.given: dict[str, int] = {}
        self.traced = self.trace()

    def trace(self) -> Workload:
        x, y = Tensor(self.x, name="X"), Tensor(self.y, name="Y")
        stages, made, rows, turns = (Symbol(name) for name in ("stages", "made", "rows", "turns"))

        @workload
        def drawn() -> None:
            for stage in P.seq(stages):
                with P.when(stage < made):
                    for i in P(rows):
                        mix[stage, i](x[i:i + 1], y[i:i + 1], n=turns)

        return drawn()

    def next(self, *, endless: bool) -> None:
        """Draw what the next runs are given."""
        draw = self.draw
        self.given = {"stages": draw.randrange(1, 30), "made": draw.randrange(1, 9), "rows": draw.randrange(1, ROWS + 1),
                      "turns": draw.randrange(1, 4)}
        if endless:
            self.given[draw.choice(("stages", "turns"))] = 1 << 62

    def check(self, program: Program, which: object) -> None:
        """Run from the start, and raise AssertionError unless it leaves what NumPy does."""
        self.next(endless=False)
        self.y[:] = 0
        program.run(**self.given)
        expected, rows = np.zeros_like(self.y), self.given["rows"]
        for _ in range(min(self.given["stages"], self.given["made"]) * self.given["turns"]):
            expected[:rows] = expected[:rows] * 3 + self.x[:rows]
        np.testing.assert_array_equal(self.y, expected, err_msg=f"{which} {self.given}")
        assert program.stats.task_count == min(self.given["stages"], self.given["made"]) * rows

    def actions(self, program: Program) -> dict[str, Callable[[], object]]:
        def in_background() -> None:
            program.execute(**self.given)
            program.synchronize()

        def looked_at() -> None:
            program.run(**self.given)
            str(program.stats)
            str(program.graph)
            program.explain().chain()

        def simulated() -> None:
            program.run(**self.given)
            for policy in (DispatchPolicy.round_robin(2), DispatchPolicy.work_steal(3)):
                assert program.simulate(self.traced.dispatch(policy), overheads=True).stats.task_count

        return {"run": lambda: program.run(**self.given), "in background": in_background, "looked at": looked_at, "simulated": simulated}


def settled(program: Program) -> None:
    """Wait for a run that was started, and not waited for to its end; else the program says that there is none."""
    try:
        program.synchronize()
    except PtoError as refused:
        assert refused.code == "R103", refused
    except KeyboardInterrupt:      # what the run ended with
        pass
    assert program.is_complete()


@pytest.mark.slow
@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("n_times", [12, 60])
def test_the_next_run_is_right(config: str, n_times: int) -> None:
    draw = random.Random(n_times + sum(map(ord, config)))
    drawn = Drawn(draw)
    program = drawn.traced.compile(**CONFIGS[config])
    drawn.check(program, "before")
    began = time.monotonic()
    drawn.check(program, "before")
    takes_s = time.monotonic() - began
    for turn in range(n_times):
        drawn.next(endless=draw.random() < 0.3)
        name, action = draw.choice(list(drawn.actions(program).items()))
        interrupt(action, draw.random() * takes_s * (4 if name in ("looked at", "simulated") else 1.5), draw.choice((1, 1, 2)))
        settled(program)
        drawn.check(program, (config, turn, name))


class Finalised:
    """A value whose end lasts until Ctrl-C falls on it, and Python swallows it."""

    def __del__(self) -> None:
        time.sleep(60)


@pytest.mark.parametrize("presses", [1, 2])
def test_one_that_python_swallowed_is_pressed_again(presses: int) -> None:
    drawn = Drawn(random.Random(1))
    program = drawn.traced.compile(threads=2)
    drawn.next(endless=True)

    def run() -> None:
        value = Finalised()
        del value
        program.run(**drawn.given)

    interrupt(run, 0.5, presses)
    settled(program)
    assert SWALLOWED
    drawn.check(program, "swallowed")


@pytest.mark.slow
@pytest.mark.parametrize("n_times", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_a_compilation_that_was_ended_can_be_done_again(n_times: int) -> None:
    draw = random.Random(n_times)
    drawn = Drawn(draw)
    for turn in range(n_times):
        whole = drawn.traced.dispatch(DispatchPolicy.round_robin(2 + turn))       # another artifact each time
        interrupt(whole.compile, draw.random() * 0.6, 1)
        drawn.check(whole.compile(), turn)
