"""The wall-clock trace as figures and text, on times by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pto_wsp.timing.trace import Home, WallTrace
from pto_wsp.view.timeline import timeline


def trace(rows: list[tuple[int, int, int]], n_threads: int, recording_ns: float) -> WallTrace:
    """Return the trace of tasks (thread, start, end) of one kernel."""
    thread, start, end = np.array(rows, np.int64).reshape(-1, 3).T
    return WallTrace(start, end, start, thread, np.zeros(len(rows), np.int64), ("load",), tuple(f"load[{k}]" for k in range(len(rows))),
                     n_threads, int(end.max()) if rows else 0, (Home(0, 0),) * n_threads, 1.0, recording_ns=recording_ns)


# three tasks on thread 0, one on thread 2, in 2 µs
FOUR = trace([(0, 0, 500), (0, 600, 900), (2, 100, 1500), (0, 1900, 2000)], 3, 40.0)


def test_it_prints_a_line_a_thread_and_what_recording_took() -> None:
    assert str(FOUR).splitlines() == [
        "4 tasks on 2 of 3 threads in 2 µs",
        "thread                  busy       tasks",
        "   0            900 ns   45%           3",
        "   1              0 ns    0%           0",
        "   2            1.4 µs   70%           1",
        "recording took about 40 ns a task, 6.0% of the run"]


def test_recording_is_that_of_the_thread_with_the_most_tasks() -> None:
    assert FOUR.recording_share == pytest.approx(3 * 40 / 2000)
    assert replace(FOUR, recording_ns=1000.0).recording_share == 1.0


def test_idle_threads_are_counted_where_there_are_many() -> None:
    lines = str(trace([(0, 0, 12_345_678), (9, 0, 2_500_000_000)], 12, 50.0)).splitlines()
    assert lines == ["2 tasks on 2 of 12 threads in 2.5 s", "thread                  busy       tasks",
                     "   0           12.3 ms    0%           1", "   9             2.5 s  100%           1", "… and 10 idle threads",
                     "recording took about 50 ns a task, 0.0% of the run"]


def test_one_task_and_none() -> None:
    assert str(trace([(0, 0, 5)], 1, 1.0)).startswith("1 task on 1 of 1 thread in 5 ns\n")
    assert trace([], 1, 1.0).recording_share == 0 and trace([], 1, 1.0).busy_ns == (0,)


def test_a_timeline_of_threads() -> None:
    assert timeline(FOUR, width=20).splitlines() == [
        "thread  0 |AAAAA·AAA··········A|  45% busy",
        "thread  1 |····················|   0% busy",
        "thread  2 |·AAAAAAAAAAAAAA·····|  70% busy",
        "          0                    ns 2000",
        "          A load; a small letter: busy for less than half of that column"]
