"""Laws of meshes: any relayout, on any mesh, by any algorithm, gives every rank what NumPy says, and sends the bytes it says."""

from __future__ import annotations

import pytest

from tests.laws.generated_meshes import generate, make

SEEDS = [*range(15), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(15, 200))]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_relayout_is_numpys(seed: int) -> None:
    move = generate(seed)
    made = make(move)
    made.check(made.workload.compile(target="interp"))


@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 20))])
def test_compiled_code_does_the_same(seed: int) -> None:
    made = make(generate(seed))
    made.check(made.workload.compile(target="cpu_sim"))
