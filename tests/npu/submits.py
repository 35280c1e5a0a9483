"""The task graph that an emitted orchestration submits to the host runtime, beside the one that cpu_sim has for the same workload.

Graphs are compared by what they order: the pairs of tasks of which one surely ends before the other starts. Two graphs without cycles
order the same pairs exactly when their transitive reductions are the same, edge by edge; which redundant edges a graph also has, and
through which joins, is not a promise. Tasks that a kernel was split into count as one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pto_wsp import Program, Workload
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.ir.flow import leaves
from pto_wsp.ir.kernel import Role
from pto_wsp.ir.plan_walk import submits
from pto_wsp.npu.emit.orchestration import emit_orchestration, orchestration_headers
from pto_wsp.npu.plan.arguments import mark_between_tasks, tensor_directions, with_whole_reshapes
from pto_wsp.npu.plan.model import NpuPlan
from pto_wsp.npu.plan.plan_for_npu import plan_for_npu
from pto_wsp.ops.entry import Unit
from pto_wsp.passes.context import Context
from pto_wsp.passes.lower import lower
from pto_wsp.passes.passes import PASSES
from pto_wsp.passes.pipeline import run_passes
from pto_wsp.resources import csrc_dir
from tests.npu.graph import Graph
from tests.npu.harness import Outcome, Target, build, run
from tests.npu.package import RUNTIMES, Array, Direction, KernelEntry, Number, Package

NOTHING = """\
#include "host_task.h"
extern "C" void pto_emulator_begin(const HostTask *) {}
extern "C" void pto_emulator_end() {}
extern "C" void kernel_entry(int64_t *) {}
"""
_DIRECTIONS = {Role.IN: Direction.IN, Role.OUT: Direction.OUT, Role.INOUT: Direction.INOUT}


def npu_plan(workload: Workload, arch: str = "ascend_910b") -> NpuPlan:
    """Return the plan for the NPU."""
    model = builtin_arch(arch)
    plan = run_passes(lower(workload.node), Context(workload.schedule, model), PASSES)
    return plan_for_npu(mark_between_tasks(with_whole_reshapes(plan), intermediates(workload)), model)


def intermediates(workload: Workload) -> frozenset[int]:
    """Return the ids, as in `workload.node`, of what Tensor.empty made."""
    return frozenset(number for number, known in enumerate(workload.tensors) if known is not None and known.intermediate)


def write_orchestration(root: Path, plan: NpuPlan, change: Callable[[str], str] = lambda text: text) -> Package:
    """Write a package whose kernels do nothing, its orchestration changed by `change`."""
    for folder in ("include", "orchestration", "kernels"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for name in orchestration_headers(plan):
        (root / "include" / name).write_text((csrc_dir() / "npu" / name).read_text())
    source, nothing = root / "orchestration" / "case.cpp", root / "kernels" / "nothing.cpp"
    text = emit_orchestration(plan)
    changed = change(text)
    source.write_text(changed)
    nothing.write_text(NOTHING)
    kernels = tuple(KernelEntry(use.kernel.name, nothing, "aic" if use.core is Unit.CUBE else "aiv",
                                tuple(_DIRECTIONS[param.role] for param in use.kernel.memory_params)) for use in plan.kernels)
    signature = tuple(_DIRECTIONS[role] for role in tensor_directions(plan))
    return Package(root, RUNTIMES[0], source, "aicpu_orchestration_entry", signature, kernels, lambda params: [],
                   lambda given, params: None, (), 0, 0)


def submit(root: Path, plan: NpuPlan, arrays: Mapping[str, Array], scalars: Mapping[str, Number] | None = None, *, family: str = "a2a3",
           runtime: str = RUNTIMES[0], change: Callable[[str], str] = lambda text: text) -> Outcome:
    """Return what the orchestration of a plan submits, with `arrays` by the names of its tensors."""
    package = write_orchestration(root, plan, change)
    tensors = {slot.ref.shown: np.ascontiguousarray(arrays[slot.ref.shown]) for slot in plan.arguments}
    return run(package, build(package, Target(family, runtime)), tensors, dict(scalars or {}), (("program", 0),))[0]


@dataclass(frozen=True)
class Orders:
    """Pairs of tasks (by their place in the program) that a graph orders: `found` on the NPU, `wanted` by cpu_sim."""

    found: frozenset[tuple[int, int]]
    wanted: frozenset[tuple[int, int]]
    graph: Graph


def compare_orders(workload: Workload, graph: Graph, program: Program) -> Orders:
    """Return what both graphs order; `program` has run."""
    plan, wanted = npu_plan(workload), program.graph
    n_parts = _parts(workload, plan)
    of = _owners(graph, [n_parts[re.split(r"[\[(]", task)[0]] for task in wanted.tasks])
    pairs = {(of[before], of[after]) for after in of for before in of
             if graph.ancestors[after] >> before & 1 and of[before] != of[after]}
    edges = {(edge.source, edge.target) for task in range(len(wanted.tasks)) for edge in wanted.edges_into(task)}
    return Orders(_closed(pairs), _closed(edges), graph)


def _parts(workload: Workload, plan: NpuPlan) -> dict[str, int]:
    """How many tasks each kernel has become, by its name."""
    tasks = lower(workload.node)
    names = {task.site: tasks.kernels[task.kernel].kernel.name for task in submits(tasks)}
    return {name: sum(launch.source == site for launch in leaves(plan.body)) for site, name in names.items()}


def _owners(graph: Graph, sizes: list[int]) -> dict[int, int]:
    """For each task with a kernel, which does not only join or allocate: which task of the program it belongs to."""
    real = [number for number, task in enumerate(graph.tasks) if task.kernels]
    assert len(real) == sum(sizes), f"{len(real)} tasks were submitted, {sum(sizes)} expected"
    owners = [task for task, size in enumerate(sizes) for _ in range(size)]
    return dict(zip(real, owners, strict=True))


def _closed(pairs: set[tuple[int, int]]) -> frozenset[tuple[int, int]]:
    n = 1 + max((max(pair) for pair in pairs), default=0)
    reach = np.zeros((n, n), bool)
    for before, after in pairs:
        reach[before, after] = True
    for middle in range(n):
        reach |= np.outer(reach[:, middle], reach[middle])
    return frozenset((int(a), int(b)) for a, b in np.argwhere(reach))
