"""A small soak: the tasks of a long run leave no memory behind."""

from __future__ import annotations

import pytest

from tests.soak.__main__ import GROWTH_KIB, soak


@pytest.mark.slow
def test_memory_is_flat_over_millions_of_tasks() -> None:
    kib = soak(3_000_000, 2)
    assert len(kib) == 10
    assert kib[-1] - kib[0] <= GROWTH_KIB
