"""The timeline: a letter a kernel where it was busy, on made-up traces."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pto_wsp.errors import ArgumentKindError
from pto_wsp.timing.trace import Home, Trace
from pto_wsp.view.timeline import timeline


def trace(rows: list[tuple[int, int, int, int]], n_executors: int, total: int) -> Trace:
    """Rows of (executor, kernel, start, end)."""
    executor, kernel, start, end = (np.array([row[k] for row in rows], np.int64) for k in range(4))
    return Trace(start, end, start, executor, kernel, ("load", "exp"), tuple(f"t{k}" for k in range(len(rows))), n_executors, total)


def rows(text: str) -> list[str]:
    """Return what stands between the bars."""
    return [line.split("|")[1] for line in text.splitlines() if "|" in line]


def test_a_column_shows_the_kernel_that_was_busy() -> None:
    found = timeline(trace([(0, 0, 0, 40), (0, 1, 40, 80), (1, 1, 20, 60)], 2, 80), width=8)
    assert rows(found) == ["AAAABBBB", "··BBBB··"]


def test_a_share_stands_behind_each_executor() -> None:
    found = timeline(trace([(0, 0, 0, 40), (0, 1, 40, 80), (1, 1, 20, 60)], 2, 80), width=8).splitlines()
    assert found[0].startswith("executor  0 |") and found[0].endswith("| 100% busy") and found[1].endswith("|  50% busy")


def test_a_column_busy_for_less_than_half_is_a_small_letter() -> None:
    assert rows(timeline(trace([(0, 0, 0, 3), (0, 1, 10, 14)], 1, 20), width=2)) == ["ab"]


def test_two_timelines_may_share_a_scale() -> None:
    assert rows(timeline(trace([(0, 0, 0, 40)], 1, 40), width=8, end=80)) == ["AAAA····"]


def test_tasks_that_begin_late_stand_late() -> None:
    assert rows(timeline(trace([(0, 0, 40, 60), (1, 1, 60, 80)], 2, 80), width=8)) == ["····AA··", "······BB"]


@pytest.mark.parametrize("width", [0, -1, 2.5, "wide"])
def test_a_width_is_a_number_of_columns(width: int) -> None:
    with pytest.raises(ArgumentKindError, match="does not take this value for width"):
        timeline(trace([(0, 0, 0, 40)], 1, 40), width=width)


def test_executors_beyond_the_most_are_counted() -> None:
    found = timeline(trace([(0, 0, 0, 10), (2, 1, 0, 10), (3, 0, 0, 10)], 5, 10), width=4, max_executors=2)
    assert rows(found) == ["AAAA", "BBBB"] and "executor  2" in found and "… and 3 more executors" in found


def test_the_legend_names_the_kernels_and_the_scale() -> None:
    last = timeline(trace([(0, 0, 0, 40)], 1, 40), width=20).splitlines()[-2:]
    assert last[0].split() == ["0", "cycles", "40"] and last[1].strip().startswith("A load, B exp")


def test_an_empty_trace_has_idle_executors() -> None:
    assert rows(timeline(trace([], 2, 0), width=4)) == ["····", "····"]


def test_executors_stand_by_pool_with_their_aicpu() -> None:
    homes = (Home(0, 0), Home(0, 1), Home(1, 0), Home(1, 0))
    found = timeline(replace(trace([(0, 0, 0, 40), (3, 1, 0, 20)], 4, 40), homes=homes), width=4).splitlines()
    assert found[:6] == ["pool 0", "executor  0, AICPU  0 |AAAA| 100% busy", "executor  1, AICPU  1 |····|   0% busy",
                         "pool 1", "executor  2, AICPU  0 |····|   0% busy", "executor  3, AICPU  0 |BB··|  50% busy"]
    assert found[6].index("0") == found[1].index("|AAAA")
