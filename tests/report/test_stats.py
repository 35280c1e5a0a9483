"""Stats: the lower bound, the gap to it, and what the time mostly is, on made-up figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pto_wsp.report.stats import STALL_REASONS, ExecutorStats, StallStats, Stats, WindowStats


def stats(total: int, path: int, busy: tuple[int, ...], stalled: int = 0) -> Stats:
    """Figures of a run: makespan, critical path, busy cycles an executor, cycles stalled on the window."""
    executors = tuple(ExecutorStats(b, 0, total - b, 1) for b in busy)
    return Stats(len(busy), total, path, sum(busy), executors, WindowStats(8, 1, stalled, 8), 0.0, 0.0)


@pytest.mark.parametrize("found, bound, gap", [
    (stats(100, 40, (60, 40)), 50, 1.0), (stats(100, 100, (60, 40)), 100, 0.0), (stats(60, 10, (60, 41)), 51, 60 / 51 - 1),
    (stats(0, 0, ()), 0, 0.0),
])
def test_the_lower_bound_is_the_path_or_the_work_shared(found: Stats, bound: int, gap: float) -> None:
    assert found.lower_bound == bound and found.gap == pytest.approx(gap)


@pytest.mark.parametrize("found, text", [
    (stats(0, 0, (0, 0)), "nothing"), (stats(100, 100, (100, 0)), "the critical path"),
    (stats(100, 20, (100,)), "work on the one executor"),
    (stats(100, 20, (100, 98)), "work, spread evenly"), (stats(100, 20, (100, 20)), "imbalance: the busiest executor has 1.67 times"),
    (stats(100, 60, (50, 50), stalled=60), "the window"), (stats(100, 60, (50, 50)), "waiting"),
])
def test_what_the_time_mostly_is(found: Stats, text: str) -> None:
    assert found.dominated_by.startswith(text)


@pytest.mark.parametrize("reason, text", [*zip(STALL_REASONS[1:], ("empty channels", "full channels", "reads", "events"), strict=True)])
def test_processes_that_mostly_stand_still_are_told_by_reason(reason: str, text: str) -> None:
    others = StallStats("WAIT", 9, 3)
    found = replace(stats(100, 60, (50, 50)), stalls=(others, StallStats(reason, 2, 51)))
    assert found.dominated_by.startswith(text)
    assert replace(found, stalls=(others, StallStats(reason, 2, 50))).dominated_by.startswith("waiting")
