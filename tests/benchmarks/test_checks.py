"""The measurement of checks runs, proves what it is about, and has a row for each workload; the times are not judged."""

from __future__ import annotations

import pytest

from tests.benchmarks.checks import WORKLOADS, markdown, measure


@pytest.mark.slow
@pytest.mark.bench
def test_every_workload_is_proved_and_has_a_row() -> None:
    rows = {name: measure(make, 1) for name, make in WORKLOADS.items()}
    assert all(median >= least > 0 for least, median, _ in rows.values())
    assert [sites for _, _, sites in rows.values()] == [1, 10, 2000]
    assert all(f"| {name} | {sites} |" in markdown(rows) for name, (_, _, sites) in rows.items())
