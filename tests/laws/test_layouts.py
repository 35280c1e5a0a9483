"""Law of layouts: a function on tensors over any mesh, in any layouts, by any algorithm, gives what NumPy gives for whole arrays."""

from __future__ import annotations

import pytest

from pto_wsp import PtoError
from tests.laws.generated_layouts import Drawn, generate

MOST_WITHOUT_FORM = 1      # of the seeds of one test: a function that has no form as kernels says nothing, on one rank either


def check_all(seeds: range, target: str, *algorithms: str | None) -> None:
    """Hold the functions of seeds against NumPy; fail where more than MOST_WITHOUT_FORM are refused with J310."""
    without_form = []
    for seed in seeds:
        try:
            for algorithm in algorithms:
                _check(generate(seed), target, algorithm)
        except PtoError as problem:
            if problem.code != "J310":
                raise
            without_form.append(seed)
    assert len(without_form) <= MOST_WITHOUT_FORM < len(seeds), f"without a form as kernels: {without_form}"


def _check(drawn: Drawn, target: str, algorithm: str | None) -> None:
    try:
        drawn.check(target, algorithm)
    except PtoError as problem:      # an all_to_all, or a relayout that is one, has no tree
        if algorithm != "tree" or problem.code != "M104" or "has no tree" not in problem.message:
            raise


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.slow) for first in range(3, 80, 11))])
def test_a_function_over_ranks_is_numpys(first: int) -> None:
    check_all(range(first, first + (11 if first else 3)), "interp", None)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(160, 185, 5))
def test_by_each_algorithm(first: int) -> None:
    check_all(range(first, first + 5), "interp", "direct", "tree")


@pytest.mark.slow
@pytest.mark.parametrize("first", range(200, 212, 4))
def test_compiled_code_does_the_same(first: int) -> None:
    check_all(range(first, first + 4), "cpu_sim", None)


def test_programs_move_and_are_refused() -> None:
    """The law says something: of a few programs, collectives run, and layouts that do not fit are met."""
    drawn = [generate(seed) for seed in range(4)]
    assert sum(one.moved for one in drawn) >= 3
    assert {"M101", "M108"} & {code for one in drawn for code in one.refused}
