"""Law of layouts: a function on tensors over any mesh, in any layouts, by any algorithm, gives what NumPy gives for whole arrays."""

from __future__ import annotations

import pytest

from pto_wsp import PtoError
from tests.laws.generated_layouts import Drawn, generate


def check(drawn: Drawn, target: str, algorithm: str | None = None) -> None:
    """Hold a function against NumPy; one that has no form as kernels says nothing, on one rank either."""
    try:
        drawn.check(target, algorithm)
    except PtoError as problem:
        if problem.code != "J310":
            raise
        pytest.skip("no form as kernels")


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 28))])
def test_a_function_over_ranks_is_numpys(seed: int) -> None:
    check(generate(seed), "interp")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(160, 170))
def test_by_each_algorithm(seed: int) -> None:
    drawn = generate(seed)
    check(drawn, "interp", "direct")
    try:
        check(drawn, "interp", "tree")
    except PtoError as problem:      # an all_to_all, or a relayout that is one, has no tree
        if problem.code != "M104" or "has no tree" not in problem.message:
            raise


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 206))
def test_compiled_code_does_the_same(seed: int) -> None:
    check(generate(seed), "cpu_sim")


def test_programs_move_and_are_refused() -> None:
    """The law says something: of a few programs, collectives run, and layouts that do not fit are met."""
    drawn = [generate(seed) for seed in range(4)]
    assert sum(one.moved for one in drawn) >= 3
    assert "M101" in {code for one in drawn for code in one.refused}
