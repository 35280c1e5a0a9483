"""Mutated JSON of workloads is refused with a coded error, or is a workload that runs within its arrays, the same on both targets."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from pto_wsp import Workload
from tests.laws.mutated_json import SEEDS, check_both_targets, is_small, mutated, read, run

pytestmark = pytest.mark.usefixtures("races_allowed")


@pytest.fixture(scope="module")
def seeds() -> list[Any]:
    """Return the JSON of each workload that is mutated."""
    return [json.loads(make().to_json()) for make in SEEDS.values()]


def accepted(seeds: list[Any], numbers: range) -> dict[int, Workload]:
    """Return the workloads that mutations of these numbers give; those that mean what they did are left out."""
    known = [json.dumps(seed, sort_keys=True) for seed in seeds]
    found: dict[int, Workload] = {}
    for number in numbers:
        rng = random.Random(number)
        data = mutated(rng.choice(seeds), seeds, rng)
        made = read(data)
        if isinstance(made, Workload):
            again = Workload.from_json(made.to_json())
            assert again == made
            if json.dumps(json.loads(made.to_json()), sort_keys=True) not in known:
                found[number] = made
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", SEEDS)
def test_what_is_mutated_runs_the_same_on_both_targets(name: str) -> None:
    made = Workload.from_json(SEEDS[name]().to_json())
    assert not isinstance(run(made, "interp", 1), str)
    check_both_targets(made, 1)


@pytest.mark.slow
def test_mutations_are_refused_or_run(seeds: list[Any]) -> None:
    for number, made in accepted(seeds, range(40)).items():
        if is_small(made):
            run(made, "interp", number)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_many_mutations_are_refused_or_run_the_same_on_both_targets(seeds: list[Any], part: int) -> None:
    found = accepted(seeds, range(90 * part, 90 * part + 90))
    assert found
    for number, made in found.items():
        if is_small(made):
            check_both_targets(made, number)
