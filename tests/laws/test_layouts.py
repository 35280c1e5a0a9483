"""Law of layouts: a function on tensors over any mesh, in any layouts, by any algorithm, gives what NumPy gives for whole arrays."""

from __future__ import annotations

import pytest

from pto_wsp import PtoError
from tests.laws.generated_layouts import generate


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 160))])
def test_a_function_over_ranks_is_numpys(seed: int) -> None:
    generate(seed).check("interp")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(160, 200))
@pytest.mark.parametrize("algorithm", ["tree", "direct"])
def test_by_each_algorithm(seed: int, algorithm: str) -> None:
    drawn = generate(seed)
    try:
        drawn.check("interp", algorithm)
    except PtoError as problem:
        assert "there is no tree" in str(problem) or "tree" in str(problem), problem


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 215))
def test_compiled_code_does_the_same(seed: int) -> None:
    generate(seed).check("cpu_sim")


def test_programs_move_and_are_refused() -> None:
    """The law says something: of a few programs, collectives run, and layouts that do not fit are met."""
    drawn = [generate(seed) for seed in range(4)]
    assert sum(one.moved for one in drawn) >= 3
    assert "M101" in {code for one in drawn for code in one.refused}
