"""Laws of meshes: any relayout, on any mesh, by any algorithm, gives every rank what NumPy says, and sends the bytes it says."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from pto_wsp import Deps, Workload
from pto_wsp.errors import RaceError
from pto_wsp.ir import flow
from pto_wsp.ir.workload import Task
from tests.laws.generated_meshes import Made, generate, make

Change = Callable[[flow.Flow, flow.Flow], tuple[flow.Flow, ...]]
SEEDS = [*range(15), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(15, 200))]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_relayout_is_numpys(seed: int) -> None:
    move = generate(seed)
    made = make(move)
    made.check(made.workload.compile(target="interp"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 20))])
def test_compiled_code_does_the_same(seed: int) -> None:
    made = make(generate(seed))
    made.check(made.workload.compile(target="cpu_sim"))


# -- lost waits --------------------------------------------------------------------------------------------------------
def without_waits(body: flow.Sequence, change: Change, at: Iterator[int], wanted: int) -> flow.Sequence:
    """Return a body in which two neighbours, the first with a copy between ranks, are changed: the pair of number `wanted`."""
    items = [flow.with_bodies(item, lambda inner: without_waits(inner, change, at, wanted)) for item in body.items]
    for k in range(len(items) - 1):
        before, behind = items[k:k + 2]
        silent = isinstance(before, flow.Silent) or isinstance(behind, flow.Silent)
        sends = any(isinstance(leaf, Task) and leaf.on is not None and leaf.on.crosses for leaf in flow.leaves(before))
        if sends and not silent and next(at) == wanted:
            return flow.Sequence((*items[:k], *change(before, behind), *items[k + 2:]))
    return flow.Sequence(tuple(items))


def side_by_side(before: flow.Flow, behind: flow.Flow) -> tuple[flow.Flow, ...]:
    """Return two statements without the order between them."""
    return (flow.Sides((flow.Sequence((before,)), flow.Sequence((behind,)))),)


def swapped(before: flow.Flow, behind: flow.Flow) -> tuple[flow.Flow, ...]:
    """Return two statements in the other order, which the lost wait allows."""
    return (behind, before)


def mutants(made: Made) -> Iterator[tuple[Workload, Workload]]:
    """Yield for each copy that a rank waits for the workload without the wait, and the one that does not wait."""
    node = made.workload.node
    tensors = {number: one for number, one in enumerate(made.workload.tensors) if one is not None}
    for wanted in itertools.count():
        lost, other = (replace(node, body=without_waits(node.body, change, itertools.count(), wanted))
                       for change in (side_by_side, swapped))
        if lost == node:
            return
        yield Workload(lost, tensors), Workload(other, tensors)


def goes_wrong(made: Made, other: Workload) -> bool:
    """Tell whether ranks hold other numbers than NumPy says."""
    made.shown.fill(-99)
    if made.out is not None:
        made.out.fill(-99)
    try:
        made.check(other.compile(target="interp"))
    except AssertionError:
        return True
    return False


@pytest.mark.slow
def test_a_lost_wait_for_a_copy_is_seen() -> None:
    """Where the order that a wait keeps matters to the numbers, its loss is a race: every one is refused."""
    found = 0
    for seed in (0, 4, 6, 9, 16, 27, 38):
        made = make(generate(seed))
        made.workload.task_graph(deps=Deps.explicit()).compile(target="interp")
        for lost, other in mutants(made):
            if not goes_wrong(made, other):
                continue
            found += 1
            with pytest.raises(RaceError):
                lost.task_graph(deps=Deps.explicit()).compile(target="interp")
    assert found >= 12
