"""The measurement of homes and priorities runs, checks results, and has a row for each workload; times are not judged."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.benchmarks.placement import SMALL, WORKS, check, measure, row


@pytest.mark.slow
@pytest.mark.bench
@pytest.mark.parametrize("name", WORKS)
def test_every_workload_gives_what_numpy_gives_and_has_a_row(name: str) -> None:
    work = WORKS[name][0](SMALL[name])
    found = measure(work, name, 0)
    assert list(found) == list(work.schedules) and found["plain"][1] == 1
    assert row(name, SMALL[name], found).startswith(f"| {name} | {SMALL[name]} | ")


def test_a_result_that_is_not_numpys_ends_it() -> None:
    work = WORKS["uneven"][0](3)
    program, start = work.schedules["the longest first"].compile(threads=2), work.data.copy()
    check(work, program, start, "right")
    with pytest.raises(SystemExit, match="wrong: the result is not NumPy's"):
        check(replace(work, reference=lambda x: work.reference(x) + 1), program, start, "wrong")
