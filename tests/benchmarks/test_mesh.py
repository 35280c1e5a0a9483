"""What the benchmark of meshes measures is what it says."""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp import Mesh
from tests.benchmarks.mesh import layer, simulated_ring
from tests.benchmarks.mesh_scaling import TIMES, speed_ups
from tests.examples.test_over_ranks import SCRIPTS


@pytest.mark.slow
def test_the_ring_has_the_copies_of_a_ring() -> None:
    n = 16
    _, n_tasks, cycles = simulated_ring(n)
    products, sends, sums, gathers, to_the_array = n, n * (n - 1), n * (n - 1), n * (n - 1), 1
    assert n_tasks == products + sends + sums + gathers + to_the_array
    assert cycles > 2 * (n - 1) * 500       # each round waits for a link's latency


def test_speed_ups_are_of_one_rank() -> None:
    found = {1: (800, 8.0), 2: (400, 5.0), 4: (400, 16.0)}
    assert speed_ups(found, grows=False) == [(1.0, 1.0), (2.0, 1.6), (2.0, 0.5)]
    assert speed_ups(found, grows=True) == [(1.0, 1.0), (4.0, 3.2), (8.0, 2.0)]
    assert TIMES.keys() == SCRIPTS.keys()


@pytest.mark.slow
def test_a_layer_is_the_same_on_one_rank_and_two() -> None:
    for ranks in (1, 2):
        workload, out, expected = layer(ranks, tiles=1, width=64)
        workload.compile(mesh=Mesh(x=ranks)).run()
        np.testing.assert_allclose(out, expected, rtol=1e-3, atol=1e-3)
