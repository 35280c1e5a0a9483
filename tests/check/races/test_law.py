"""The race check against brute force: workloads drawn at random, every two of their tasks compared element by element."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest

from pto_wsp.check.races.check import check_races
from pto_wsp.check.verdict import Verdict
from pto_wsp.errors import RunBoundsError
from pto_wsp.ir.flow import Loop, walk
from pto_wsp.ir.plan import Item, PlanLoop
from pto_wsp.ir.plan_walk import map_items
from tests.check.races.brute_force import arrays_of, plan_of, races_of
from tests.check.races.drawn_workloads import Drawing

# Of tensors of race-free workloads, the part that is left open: all of them for what tables and lengths hold, which nobody has promised.
MOST_LEFT_OPEN = 0.12


def check_mutants(seeds: Iterable[int]) -> int:
    """Take the order out of one loop after another; return how many of the mutants raced, all of which must be caught."""
    caught = 0
    for seed in seeds:
        made = Drawing(seed).trace()
        plan = plan_of(made)
        try:
            before = races_of(made, plan)
        except RunBoundsError:
            continue
        for loop in [item for item in walk(plan.body) if isinstance(item, Loop) and item.ordered]:
            def free(item: Item, loop: PlanLoop = loop) -> Item:
                return replace(item, ordered=False) if isinstance(item, Loop) and item.var == loop.var else item
            mutant = map_items(plan, free)
            racy = races_of(made, mutant) - before
            found = check_races(mutant, arrays_of(made)).findings
            for name in racy:
                assert any(f"`{name}`" in one.check and one.verdict is not Verdict.PROVED for one in found), (seed, loop.var, made)
            caught += len(racy)
    return caught


def verdicts(seeds: Iterable[int]) -> Counter[tuple[Verdict, bool]]:
    """Count tensors by verdict and by whether they race; a wrong verdict raises AssertionError."""
    counts: Counter[tuple[Verdict, bool]] = Counter()
    for seed in seeds:
        made = Drawing(seed).trace()
        plan = plan_of(made)
        try:
            racy = races_of(made, plan)
        except RunBoundsError:      # a run ends before it has done anything
            continue
        found: dict[str, set[Verdict]] = {}
        for finding in check_races(plan, arrays_of(made)).findings:
            found.setdefault(finding.check.split("`")[1], set()).add(finding.verdict)
        assert racy <= found.keys(), seed
        for name, all_of in found.items():
            verdict = next(one for one in (Verdict.COUNTEREXAMPLE, Verdict.NOT_PROVED, Verdict.PROVED) if one in all_of)
            counts[verdict, name in racy] += 1
            assert (verdict, name in racy) not in ((Verdict.PROVED, True), (Verdict.COUNTEREXAMPLE, False)), (seed, name, made)
    return counts


def check_counts(counts: Counter[tuple[Verdict, bool]]) -> None:
    """Raise AssertionError where too much is left open, or the workloads are no test."""
    free = sum(count for (_, racy), count in counts.items() if not racy)
    shown = counts[Verdict.COUNTEREXAMPLE, True]
    assert counts[Verdict.NOT_PROVED, False] <= MOST_LEFT_OPEN * free, counts
    assert counts[Verdict.PROVED, False] > 0.2 * counts.total() and shown > 0.3 * counts.total(), counts


@pytest.mark.slow
def test_orders_taken_away_are_missed_in_many_workloads() -> None:
    assert check_mutants(range(5_000, 5_075)) >= 6


@pytest.mark.slow
def test_hundreds_of_verdicts_are_those_of_brute_force() -> None:
    check_counts(verdicts(range(1_200, 1_400)))
