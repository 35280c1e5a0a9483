"""Windows, timing and the start, alone and together: total_cycles by hand. Task k takes k + 1 cycles, each on an executor of its own.

With `overheads` an AICPU submits a task, and is busy with it for 10 cycles: tasks are submitted at 0, 10 .. 70, and the stream has come to
its end at 80. A window is a ring: a task's place is free when it and all before it have completed.
"""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp import (
    Deps,
    DispatchPolicy,
    P,
    Program,
    StartPolicy,
    TaskWindow,
    Tensor,
    TimingPolicy,
    TracePolicy,
    WindowMode,
    Workload,
    workload,
)
from pto_wsp.errors import WindowError
from pto_wsp.schedule.directives import Timing
from tests.schedule.small_tasks import BUSY, Y, eight, fill, made

X = Tensor(np.zeros((8, 1), np.int64), name="X")


def apart(*, window: TaskWindow | None = None, start: StartPolicy | None = None, timing: Timing | None = None) -> Workload:
    """Return the eight tasks under a schedule."""
    w = eight().dispatch(DispatchPolicy.round_robin(8)).task_graph(trace=TracePolicy.cycles(lambda t: t.k + 1))
    if window is not None:
        w = w.task_graph(window=window)
    if start is not None:
        w = w.task_graph(start=start)
    return w if timing is None else w.timing(timing)


def pairs(size: int, unit: str, mode: WindowMode = WindowMode.STALL) -> Workload:
    """Return the eight tasks of `made` under a window."""
    return made().dispatch(DispatchPolicy.round_robin(8)).task_graph(
        trace=TracePolicy.cycles(lambda t: t.params[1]), window=TaskWindow(size, unit, mode))  # type: ignore[arg-type]


def run(w: Workload, *, overheads: bool = False) -> Program:
    """Return the program after a run in NumPy."""
    return w.compile(target="interp", **({"arch": BUSY, "overheads": True} if overheads else {})).run()


def starts(found: Program) -> list[int]:
    """Return when each task started."""
    return [int(start) for start in found.trace.start]


def tasks(size: int, mode: WindowMode = WindowMode.STALL) -> TaskWindow:
    """Return a window of tasks."""
    return TaskWindow(size, "tasks", mode)


# ---- windows ----

def test_a_window_of_tasks_is_a_ring() -> None:
    # 0 1 2 at 0, ending at 1 2 3; then 3 at 1 (ends 5), 4 at 2 (7), 5 at 3 (9), 6 when 3 has ended, at 5 (12), 7 at 7 (15)
    found = run(apart(window=tasks(3)))
    assert starts(found) == [0, 0, 0, 1, 2, 3, 5, 7]
    assert found.stats.total_cycles == 15
    window = found.stats.window     # 3 .. 7 wait for 1 1 1 2 2 cycles
    assert (window.stalls, window.stall_cycles, window.high_water) == (5, 7, 3)


def test_a_window_of_bytes_counts_what_tasks_make() -> None:
    # 16 bytes: two fills at 0, their copies take nothing; the third when the first has ended, at 10; the fourth when the first copy,
    # which lies before the second fill, has ended as well, at 11. It ends at 21, its copy at 22
    found = run(pairs(16, "bytes"))
    assert starts(found) == [0, 10, 0, 10, 10, 20, 11, 21]
    assert (found.stats.total_cycles, found.stats.window.stall_cycles, found.stats.window.high_water) == (22, 10 + 1, 16)


def test_a_window_of_entries_counts_arguments() -> None:
    # 3 entries: a fill and its copy. The next fill at 10, when the first has ended, its copy's two when the first copy has, at 11; the
    # third fill when the second has ended, at 20, and so on: 30 + 10 + 1
    found = run(pairs(3, "entries"))
    assert starts(found) == [0, 10, 10, 20, 20, 30, 30, 40]
    assert (found.stats.total_cycles, found.stats.window.stalls, found.stats.window.high_water) == (41, 6, 3)


@pytest.mark.parametrize("size, unit, high_water, times", [(3, "tasks", 8, 5), (16, "bytes", 32, 2), (3, "entries", 12, 6)])
def test_a_benchmark_goes_on_and_says_how_far(size: int, unit: str, high_water: int, times: int) -> None:
    # all at 0: 8 tasks, 4 · 8 bytes, 4 · (1 + 2) entries; of bytes the third and the fourth fill find no room; a fill and a copy take 11
    found = run(pairs(size, unit, WindowMode.BENCHMARK))
    window = found.stats.window
    assert (found.stats.total_cycles, window.high_water, window.stalls, window.stall_cycles) == (11, high_water, times, 0)


def test_an_abort_is_where_a_stall_would_be() -> None:
    assert run(apart(window=tasks(8, WindowMode.ABORT))).stats.total_cycles == 8
    with pytest.raises(WindowError, match=r"fill\[k=7\]"):     # seven at 0: the eighth would wait until 1
        run(apart(window=tasks(7, WindowMode.ABORT)))
    # submitted each 10 cycles, each has ended before the next comes: one place is enough
    assert run(apart(window=tasks(1, WindowMode.ABORT)), overheads=True).stats.total_cycles == 70 + 8


# ---- timing ----

def test_batches_and_the_rest_of_one() -> None:
    # of three: when the third is submitted, at 20, and the sixth, at 50; the two that are left when the stream ends, at 80
    found = run(apart(timing=TimingPolicy.batched(3)), overheads=True)
    assert starts(found) == [20, 20, 20, 50, 50, 50, 80, 80]
    assert found.stats.total_cycles == 88


def test_a_batch_that_does_not_fit_the_window_goes_when_the_window_is_full() -> None:
    # of five, in a window of three: three at once, then each as it comes, since the window holds the stream again: as without batches
    assert run(apart(timing=TimingPolicy.batched(5), window=tasks(3))).stats.total_cycles == 15


def test_a_rate_between_whole_cycles_does_not_drift() -> None:
    # 400 000 a ms at 1 GHz: every 2.5 cycles, at the cycle after
    found = run(apart(timing=TimingPolicy.rate_limit(400_000)))
    assert starts(found) == [0, 3, 5, 8, 10, 13, 15, 18]
    assert found.stats.total_cycles == 18 + 8


def test_a_rate_faster_than_the_stream_changes_nothing() -> None:
    assert starts(run(apart(timing=TimingPolicy.rate_limit(400_000)), overheads=True)) == list(range(0, 80, 10))


def test_a_rate_holds_tasks_in_the_window() -> None:
    # 100 000 a ms: each 10 cycles. Two places: 2 is submitted when 0 has ended, at 1, but released at 20 like without a window
    found = run(apart(timing=TimingPolicy.rate_limit(100_000), window=tasks(2)))
    assert starts(found) == list(range(0, 80, 10))
    # 2 waits until 1, 3 until 1 has ended, at 12, the others until 23 34 45 56: of these 1 + 11 + 11 + 11 + 11 + 11
    assert (found.stats.total_cycles, found.stats.window.stall_cycles) == (78, 56)


# ---- the start ----

def test_a_start_after_tasks() -> None:
    # the third is submitted at 20, the fourth at 30 ..
    found = run(apart(start=StartPolicy.threshold(3)), overheads=True)
    assert starts(found) == [20, 20, 20, 30, 40, 50, 60, 70]
    assert found.stats.total_cycles == 78


def test_a_start_after_all_counts_from_the_first_submission() -> None:
    assert run(apart(start=StartPolicy.after_orchestration())).stats.total_cycles == 8
    assert run(apart(start=StartPolicy.after_orchestration()), overheads=True).stats.total_cycles == 80 + 8


@pytest.mark.parametrize("start", [StartPolicy.after_orchestration(), StartPolicy.threshold(8)], ids=["all", "threshold"])
def test_a_full_window_starts(start: StartPolicy) -> None:
    assert run(apart(start=start, window=tasks(3))).stats.total_cycles == 15     # full at 0: as without
    # three are submitted at 20, and at 30 the stream comes to a full window: they end at 31 32 33. The next three are submitted at 31, 41
    # and 51, the last two at 61 and 71; they run at once, since there is one start
    found = run(apart(start=start, window=tasks(3)), overheads=True)
    assert starts(found) == [30, 30, 30, 31, 41, 51, 61, 71]


def test_batches_rates_and_starts_say_what_held_a_task() -> None:
    def held(w: Workload) -> list[str]:
        causes = run(w, overheads=True).trace.causes
        assert causes is not None
        return list(causes.held)

    # the last of a batch is released as it is submitted; 50 000 a ms are 20 cycles, and the stream takes 10
    assert held(apart(timing=TimingPolicy.batched(4))) == ["release", "release", "release", "submit"] * 2
    assert held(apart(timing=TimingPolicy.rate_limit(50_000))) == ["not", *["release"] * 7]
    assert held(apart(start=StartPolicy.threshold(2))) == ["start", *["submit"] * 7]


# ---- pipelines: each process submits on its own ----

def piped(timing: Timing | None = None, start: StartPolicy | None = None, window: TaskWindow | None = None) -> Workload:
    """Two processes of three tasks of a cycle, each on an executor of its own."""
    @workload
    def left() -> None:
        for k in P(3):
            fill[k](k, X[k])

    @workload
    def right() -> None:
        for k in P(3):
            fill[k](k, Y[k])

    @workload
    def pipe() -> None:
        with P.pipe():
            left()
            right()

    w = pipe().task_graph(deps=Deps.infer_bytes_overlap(), trace=TracePolicy.cycles(lambda t: 1), start=start, window=window)
    return w if timing is None else w.timing(timing)


def test_each_process_has_its_batch() -> None:
    # submitted at 0 10 20 in both; two at 10, the third at 30, when its process ends
    found = run(piped(TimingPolicy.batched(2)), overheads=True)
    assert starts(found) == [10, 11, 30] * 2
    assert found.stats.total_cycles == 31


def test_a_rate_is_of_all_processes() -> None:
    # six tasks at 0, one release in 10 cycles: the last at 50
    assert run(piped(TimingPolicy.rate_limit(100_000))).stats.total_cycles == 51


def test_all_processes_have_to_end_for_a_start() -> None:
    assert run(piped(start=StartPolicy.after_orchestration()), overheads=True).stats.total_cycles == 30 + 3


def test_each_process_has_its_window() -> None:
    # one place each: a task a cycle in both
    found = run(piped(window=tasks(1)))
    assert starts(found) == [0, 1, 2] * 2
    assert (found.stats.total_cycles, found.stats.window.stalls) == (3, 4)
