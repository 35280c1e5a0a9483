"""Whatever the workload: the device orders what cpu_sim orders, and every write waits for the reads that it falls on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.npu.generated_workloads import Source, arrays, workload_of
from tests.npu.submits import compare_orders, npu_plan, submit

# In several of these the edges would be others if views of another turn, loops that may not run, or tiles that turns share were taken for
# what they are not.
SEEDS = [(seed, structure) for structure in (True, False) for seed in (7, 20)] + [(seed, True) for seed in (113, 116, 141)]


# The same with branches and sparse walks: handles from ways that were not taken, turns without a task, ways that end with others.
DYNAMIC = [(seed, structure) for structure in (True, False) for seed in (5, 28)] + [(seed, True) for seed in (0, 3, 31)]

pytestmark = pytest.mark.usefixtures("races_allowed")     # the order that a run makes is compared, whatever the loops promise


ALL = [*((*case, False) for case in SEEDS), *((*case, True) for case in DYNAMIC)]
FAST = ((113, True, False), (28, False, True))


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "structure", "dynamic"),
                         [pytest.param(*case, marks=() if case in FAST else pytest.mark.slow) for case in ALL])
def test_orders_are_those_of_cpu_sim(seed: int, structure: bool, dynamic: bool, tmp_path: Path) -> None:
    source = Source(seed, dynamic=dynamic)
    value = workload_of(source, tmp_path, structure=structure)
    program = value.compile()
    program.run()
    graph = submit(tmp_path, npu_plan(value), arrays()).graph
    found = compare_orders(value, graph, program)
    assert found.found == found.wanted, source.text
    assert not list(graph.unordered_conflicts()), source.text
