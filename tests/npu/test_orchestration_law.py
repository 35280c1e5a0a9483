"""Whatever the workload: the device orders what cpu_sim orders, and every write waits for the reads that it falls on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.npu.generated_workloads import Source, arrays, workload_of
from tests.npu.submits import compare_orders, npu_plan, submit

# In several of these the edges would be others if views of another turn, loops that may not run, or tiles that turns share were taken for
# what they are not.
SEEDS = [(seed, structure) for structure in (True, False) for seed in (7, 20)] + [(seed, True) for seed in (113, 116, 141)]


@pytest.mark.parametrize(("seed", "structure"), SEEDS)
def test_orders_are_those_of_cpu_sim(seed: int, structure: bool, tmp_path: Path) -> None:
    source = Source(seed)
    value = workload_of(source, tmp_path, structure=structure)
    program = value.compile()
    program.run()
    graph = submit(tmp_path, npu_plan(value), arrays()).graph
    found = compare_orders(value, graph, program)
    assert found.found == found.wanted, source.text
    assert not list(graph.unordered_conflicts()), source.text
