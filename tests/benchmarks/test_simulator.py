"""The measurement of the simulator runs, finds what is known by hand, and has a row for each thing measured; times are not judged."""

from __future__ import annotations

import pytest

from tests.benchmarks.simulator import STREAMS, WINDOW, Sizes, check, markdown, simulate


@pytest.mark.slow
@pytest.mark.parametrize("name", STREAMS)
def test_streams_take_as_long_as_by_hand_in_one_piece_and_in_many(name: str) -> None:
    stream = STREAMS[name]
    program = stream.make(6400, WINDOW).compile()
    for max_tasks in (0, 500):
        check(simulate(program, max_tasks), 6400, stream.makespan(6400))
    with pytest.raises(AssertionError):
        check(simulate(program), 6400, stream.makespan(6400) + 1)


@pytest.mark.slow
@pytest.mark.bench
def test_every_measurement_has_a_row() -> None:
    text = markdown(Sizes(rate=6400, memory=6400, windows=(128,), growth=(6400,)), 1)
    assert all(f"| {name} | " in text for name in STREAMS) and "| 525,312 tasks" not in text and "together (goal: 2)" in text
    assert "| 128 | " in text and "| 6,400 | " in text
