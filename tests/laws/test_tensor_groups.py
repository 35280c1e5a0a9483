"""The analysis of a group that statements join is the analysis of all its statements at once."""

from __future__ import annotations

import random

import pytest

from pto_wsp.ir import flow
from pto_wsp.ir.tensor_function import ArrayView, Item
from pto_wsp.passes.tensor.groups import KernelGroup, group_of
from pto_wsp.passes.tensor.partition import group_facts
from pto_wsp.schedule.tiling import TilePlan
from tests.laws.generated_tensors import generated

SEEDS = [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 60))]


def said(group: KernelGroup | None) -> object:
    """Return all that a group says of itself."""
    if group is None:
        return None
    axes, views = group.axes, [view for one in group.statements for view in (*one.views, *map(ArrayView, one.defines))]
    found = [[(axis, None if axis is None else (axes.extent(axis), axes.roles(axis))) for axis in axes.of_view(view)] for view in views]
    return found, group.local, group.outputs, group.tiled, group.whole, group.walked, group.statements


def neighbours(items: tuple[Item, ...], draw: random.Random) -> list[Item]:
    first = draw.randrange(len(items))
    return list(items[first:first + draw.randint(2, 6)])


@pytest.mark.parametrize("seed", SEEDS)
def test_a_group_that_grows_is_analysed_as_a_whole_one(seed: int) -> None:
    draw, function, n_grown = random.Random(seed), generated(seed, 14).function, 0
    facts = group_facts(function, TilePlan(function.name, "host_cpu", "cpu_sim"))
    bodies = [inner.items for inner in flow.walk(function.body) if isinstance(inner, flow.Sequence) and len(inner.items) > 1]
    for _ in range(40):
        items = neighbours(draw.choice(bodies), draw)
        group: KernelGroup | None = None
        for n in range(1, len(items) + 1):
            before = said(group)
            grown = group_of(items[:n], facts, group)
            assert said(grown) == said(group_of(items[:n], facts)) == said(group_of(items[:n], facts, group))
            assert said(group) == before      # other statements may still join the smaller group
            n_grown += group is not None and grown is not None
            group = grown
    assert n_grown
