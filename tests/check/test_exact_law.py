"""The proof of exact regions against brute force: workloads drawn at random, every two regions of their tasks compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import combinations_with_replacement
from typing import Any

import pytest

from pto_wsp import Workload
from pto_wsp.check.outputs import check_exact
from pto_wsp.check.verdict import Verdict
from pto_wsp.errors import RunBoundsError
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.run.bound import bind
from pto_wsp.run.interpreter import stream_of
from pto_wsp.run.orchestrator import TaskInstance
from tests.check.races.brute_force import arrays_of, elements_of, plan_of
from tests.check.races.drawn_workloads import SIDE, Drawing


class Grid(Drawing):
    """Workloads whose views are blocks of 3 x 4 of one grid, but for some."""

    def _view(self, loops: tuple[tuple[Any, int], ...]) -> Any:
        tensor = self.rng.choice((self.A, self.B, self.B, self.B))
        if self.rng.random() < 0.04:
            return super()._view(loops)
        row, col = self._index(loops, 3), self._index(loops, 2)
        whole: tuple[Callable[[], Any], ...] = (
            lambda: tensor[row * 3:(row + 1) * 3, col * 4:(col + 1) * 4],
            lambda: tensor[3 * row:][:3, col * 4:col * 4 + 4],
            lambda: tensor[row * 3:SIDE, col * 4:SIDE].clip(3, 4),
            lambda: tensor[row * 3:row * 3 + 3, col * 4:].clip(3, 4).T,
            lambda: tensor.reshape(4, 3, 3, 4)[row, :, col] if tensor is self.A else tensor[row * 3:row * 3 + 3, col * 4:col * 4 + 4],
        )
        return self.rng.choice(whole)()


def overlapping_in_part(made: Workload, plan: TaskPlan) -> set[str]:
    """Return the names of tensors of which some two regions, one written, share an element and are not the same."""
    named = {tensor.ref.name: tensor.data for tensor in made.tensors}
    nodes = stream_of(plan, bind(plan, [named[slot.ref.name] for slot in plan.tensors], [symbol.default for symbol in plan.symbols]))
    regions = {(view.slot, frozenset(elements_of(view)), param.role.writes) for node in nodes if isinstance(node, TaskInstance)
               for view, param in zip(node.views, plan.kernels[node.submit.kernel].kernel.memory_params, strict=True)}
    return {plan.tensors[a].ref.name for (a, here, writes), (b, there, also) in combinations_with_replacement(regions, 2)
            if a == b and (writes or also) and here & there and here != there}


def verdicts(drawing: type[Drawing], seeds: Iterable[int]) -> Counter[tuple[Verdict, bool]]:
    """Count tensors by verdict and by whether regions overlap in part; a wrong verdict raises AssertionError."""
    counts: Counter[tuple[Verdict, bool]] = Counter()
    for seed in seeds:
        made = drawing(seed).trace()
        plan = plan_of(made)
        try:
            partly = overlapping_in_part(made, plan)
        except RunBoundsError:
            continue
        found: dict[str, set[Verdict]] = {}
        for finding in check_exact(plan, arrays_of(made)):
            found.setdefault(finding.check.split("`")[1], set()).add(finding.verdict)
        assert partly <= found.keys(), seed
        for name, all_of in found.items():
            verdict = next(one for one in (Verdict.COUNTEREXAMPLE, Verdict.NOT_PROVED, Verdict.PROVED) if one in all_of)
            counts[verdict, name in partly] += 1
            assert (verdict, name in partly) not in ((Verdict.PROVED, True), (Verdict.COUNTEREXAMPLE, False)), (seed, name, made)
    return counts


def check_counts(drawing: type[Drawing], seeds: range) -> None:
    """Raise AssertionError for a wrong verdict, where too much is left open, or where the workloads are no test."""
    counts = verdicts(drawing, seeds)
    whole = counts[Verdict.PROVED, False] + counts[Verdict.NOT_PROVED, False]
    assert counts[Verdict.NOT_PROVED, False] <= 0.15 * whole, counts
    assert whole > 0.2 * len(seeds) and counts[Verdict.COUNTEREXAMPLE, True] > 0.1 * len(seeds), counts


@pytest.mark.slow
@pytest.mark.parametrize("drawing", [Grid, Drawing])
def test_verdicts_are_those_of_brute_force(drawing: type[Drawing]) -> None:
    check_counts(drawing, range(40))


@pytest.mark.slow
@pytest.mark.parametrize("drawing", [Grid, Drawing])
def test_hundreds_of_verdicts_are_those_of_brute_force(drawing: type[Drawing]) -> None:
    check_counts(drawing, range(1_000, 1_150))
