"""Ctrl-C at random moments of random programs: what runs ends, nothing of it goes on, and the next run gives the right numbers."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from pto_wsp import DispatchPolicy, Program, PtoError, TaskWindow
from tests.laws.generated_workloads import Bench
from tests.laws.test_workloads import DENSE_CONFLICTS
from tests.tolerances import Array, assert_identical

pytestmark = pytest.mark.usefixtures("races_allowed")     # as of all workloads that are drawn
ENDS_WITHIN_S = 10.0      # on a machine that others use too
CONFIGS: dict[str, dict[str, object]] = {
    "interp": {"target": "interp"}, "one thread": {"threads": 1}, "threads": {"threads": 3}, "sanitized": {"sanitize": True},
    "timed": {"threads": 2, "wall_trace": True},
}


@pytest.fixture(autouse=True)
def _usual_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt(action: Callable[[], object], after_s: float, presses: int) -> None:
    """Do something, and press Ctrl-C once or twice while it goes on or behind it, the second time soon after the first."""
    assert presses <= 2
    begun = threading.Lock()
    begun.acquire()

    def press() -> None:
        begun.acquire()
        for k in range(presses):
            time.sleep(after_s * (1, 0.2)[k])
            os.kill(os.getpid(), signal.SIGINT)

    def wait() -> None:
        presser.join()
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


def actions(program: Program, bench: Bench) -> dict[str, Callable[[], object]]:
    def in_background() -> None:
        program.execute()
        program.synchronize()

    def looked_at() -> None:
        program.run()
        str(program.stats)
        str(program.graph)
        program.explain().chain()

    def simulated() -> None:
        program.run()
        for policy in (DispatchPolicy.round_robin(2), DispatchPolicy.work_steal(3)):
            assert program.simulate(bench.trace().dispatch(policy), overheads=True).stats.task_count

    return {"run": program.run, "in background": in_background, "looked at": looked_at, "simulated": simulated}


def settled(program: Program) -> None:
    """Wait for a run that was started, and not waited for to its end; else the program says that there is none."""
    try:
        program.synchronize()
    except PtoError as refused:
        assert refused.code == "R103", refused
    except KeyboardInterrupt:      # what the run ended with
        pass
    assert program.is_complete()


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("n_times", [12, pytest.param(400, marks=pytest.mark.slow)])
def test_the_next_run_is_right(config: str, n_times: int) -> None:
    draw = random.Random(n_times + sum(map(ord, config)))
    bench = Bench(DENSE_CONFLICTS)
    traced = bench.trace()
    expected: Array = bench.by_hand()
    program = traced.task_graph(window=TaskWindow(8)).compile(**CONFIGS[config])
    began = time.monotonic()
    bench.run(program)
    bench.run(program)
    takes_s = (time.monotonic() - began) / 2
    for turn in range(n_times):
        name, action = draw.choice(list(actions(program, bench).items()))
        interrupt(action, draw.random() * takes_s * (4 if name in ("looked at", "simulated") else 1.5), draw.choice((1, 1, 2)))
        settled(program)
        assert_identical(bench.run(program), expected, (config, turn, name))
        assert program.stats.task_count > 0


@pytest.mark.parametrize("n_times", [2, pytest.param(60, marks=pytest.mark.slow)])
def test_a_compilation_that_was_ended_can_be_done_again(n_times: int) -> None:
    draw = random.Random(n_times)
    bench = Bench(DENSE_CONFLICTS)
    traced = bench.trace()
    expected: Array = bench.by_hand()
    for turn in range(n_times):
        kept = TaskWindow(8 + turn)       # another artifact each time
        interrupt(lambda kept=kept: traced.task_graph(window=kept).compile(), draw.random() * 0.6, 1)  # type: ignore[misc]
        assert_identical(bench.run(traced.task_graph(window=kept).compile()), expected, turn)
    assert np.array_equal(expected, bench.by_hand())
