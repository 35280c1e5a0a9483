"""Progress: tasks of a run, and what a call shows that takes more than a second."""

from __future__ import annotations

import io
import sys
import threading
import time

import numpy as np
import pytest

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload
from pto_wsp import progress as shown
from pto_wsp.progress import ShownStep, step, tell

X, Y = (Tensor(np.ones((64, 4, 16), np.float32)) for _ in range(2))


@kernel
def scale(x: In[Tile[4, 16, DType.F32]], y: Out[Tile[4, 16, DType.F32]]) -> None:
    pto.store(y, x * 2.0)


@workload
def rows() -> None:
    for b in P(64):
        scale[b](X[b], Y[b])


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("target", ["interp", "cpu_sim"])
def test_a_program_tells_how_many_tasks_have_run(target: str) -> None:
    program = rows().compile(target=target)
    assert (program.progress.done, program.progress.made, program.progress.is_complete) == (0, 0, False)
    program.run()
    assert (program.progress.done, program.progress.made, program.progress.is_complete) == (64, 64, True)
    assert str(program.progress) == "64 of 64 tasks"


def test_another_thread_sees_how_far_a_run_is() -> None:
    inside, go_on = threading.Event(), threading.Event()
    program = rows().compile(target="interp")
    runner = program.compiled.to_run()
    run_task = runner.run_task  # type: ignore[union-attr]

    def waiting(number: int, *rest: object) -> None:
        if number == 10:
            inside.set()
            assert go_on.wait(300)
        run_task(number, *rest)  # type: ignore[arg-type]

    runner.run_task = waiting  # type: ignore[union-attr, method-assign, assignment]
    program.execute()
    assert inside.wait(300)
    seen = program.progress
    go_on.set()
    program.synchronize()
    assert 0 < seen.done <= 11 and seen.made >= seen.done and not seen.is_complete and program.progress.is_complete


def test_nothing_is_shown_before_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    with step("quick", 10) as one:
        one.advance(5)
    assert screen.getvalue() == ""


def test_what_takes_longer_shows_what_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown, "UNSEEN_S", 0.0)
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    with step("search", 10):
        tell(3, "best 1,200 cycles")
        until = time.monotonic() + 300
        while "best 1,200" not in screen.getvalue() and time.monotonic() < until:
            time.sleep(0.02)
    text = screen.getvalue()
    assert "search" in text and "3/10" in text and "best 1,200 cycles" in text


@pytest.mark.parametrize(("is_terminal", "value"), [(False, None), (True, "0")])
def test_a_file_and_the_environment_keep_it_quiet(monkeypatch: pytest.MonkeyPatch, is_terminal: bool, value: str | None) -> None:
    monkeypatch.setattr(shown, "UNSEEN_S", 0.0)
    monkeypatch.setattr(sys, "stderr", screen := Terminal() if is_terminal else io.StringIO())
    if value is not None:
        monkeypatch.setenv("PTO_WSP_PROGRESS", value)
    with step("search", 10):
        time.sleep(0.5)
    assert screen.getvalue() == ""


def test_a_step_in_words() -> None:
    one = ShownStep("search", 1000)
    one.advance(12, "best 5 cycles")
    assert str(one) == "search · 12 of 1,000 · best 5 cycles · 0 s" and str(ShownStep("run", count=lambda: 7)) == "run · 7 · 0 s"
