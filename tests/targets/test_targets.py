"""The table of targets, their pipelines, and lower(): the IR of a workload behind any pass."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from pto_wsp import DType, In, Out, P, Tensor, Tile, Workload, kernel, pto, workload
from pto_wsp.doors import TARGETS
from pto_wsp.errors import InternalError, LoopVariableError, ProgramStateError, UnknownPassError
from pto_wsp.ir.kernel import Kernel
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.npu.isa.tile_program import TileProgram
from pto_wsp.npu.tiles.passes import TILE_PROGRAM_PASSES
from pto_wsp.passes.kernel.passes import KERNEL_PASSES, any_use
from pto_wsp.passes.lower import lower
from pto_wsp.passes.passes import PASSES, SCHEDULE_PASSES
from pto_wsp.passes.pipeline import Fact, check_order, run_passes
from pto_wsp.schedule.capability import TARGETS as NAMES
from pto_wsp.targets.options import CompileOptions
from pto_wsp.targets.table import find_target

F32 = DType.F32
LEVELS = {"plan": TaskPlan, "kernel": Kernel, "part of a kernel": Kernel, "tile program": TileProgram}


@kernel
def weighted(x: In[Tile[16, 16, F32]], w: In[Tile[16, 16, F32]], y: Out[Tile[16, 16, F32]]) -> None:
    pto.store(y, pto.exp(pto.matmul(x, w)))


def weigh() -> Workload:
    """Return tasks of products and vector work: two parts on an NPU."""
    x, w, y = (Tensor(np.ones((4, 16, 16), np.float32), name=name) for name in "XWY")

    @workload
    def weigh_all() -> None:
        for b in P(4):
            weighted[b](x[b], w[b], y[b])

    return weigh_all()


def steps_of(target: str) -> list[str]:
    """Return the names of a target's passes."""
    return [step.name for step in find_target(target).passes(CompileOptions())]


def test_the_table_and_the_capabilities_name_the_same_targets() -> None:
    assert tuple(TARGETS) == NAMES and [find_target(name).name for name in TARGETS] == list(NAMES)


@pytest.mark.parametrize("target", TARGETS)
def test_names_of_passes_are_unique_and_each_says_what_it_does(target: str) -> None:
    steps = find_target(target).passes(CompileOptions())
    assert len({step.name for step in steps}) == len(steps)
    assert [step.name for step in steps if not step.summary.endswith(".")] == []
    for level in LEVELS:
        check_order(tuple(step for step in steps if step.level_name == level))


def test_what_a_new_schedule_runs_again_follows_from_what_passes_need() -> None:
    assert [step.name for step in SCHEDULE_PASSES] == ["place_tasks", "price_tasks"]
    assert tuple(step for step in PASSES if Fact.SCHEDULE in step.needs) == SCHEDULE_PASSES


@pytest.mark.parametrize(("passes", "first", "then"), [
    (KERNEL_PASSES, "vectorise", "form_columns"), (PASSES, "price_tasks", "place_tasks"),
    (TILE_PROGRAM_PASSES, "insert_sync", "plan_memory")])
def test_a_pass_in_front_of_what_it_needs_is_refused(passes: tuple[object, ...], first: str, then: str) -> None:
    steps = {step.name: step for step in passes}      # type: ignore[attr-defined]
    with pytest.raises(InternalError, match=f"pass `{first}` stands in front of `{then}`"):
        check_order((steps[first], steps[then]))
    check_order((steps[then], steps[first]))


def test_the_runner_checks_the_order_and_what_holds_after_each() -> None:
    node = weighted.specialise()
    with pytest.raises(InternalError, match="stands in front of"):
        run_passes(node, any_use(node), KERNEL_PASSES[::-1])
    lazy = tuple(replace(step, run=lambda ir, context: ir) if step.name == "form_columns" else step for step in KERNEL_PASSES)
    with pytest.raises(InternalError, match="after pass `form_columns` this does not hold for kernel `weighted`: What is wider"):
        run_passes(node, any_use(node), lazy)


# ---- lower ----

@pytest.mark.parametrize(("target", "name"), [(target, name) for target in TARGETS for name in steps_of(target)])
def test_every_pass_of_every_target_can_be_the_last(target: str, name: str) -> None:
    found = weigh().lower(target, until=name)
    level = next(step.level_name for step in find_target(target).passes(CompileOptions()) if step.name == name)
    parts = 2 if level in ("part of a kernel", "tile program") and name != "turn_loads" else 1
    assert found.until == name and len(found.irs) == parts and all(isinstance(ir, LEVELS[level]) for ir in found.irs)
    assert str(found).startswith({"plan": "plan weigh_all", "kernel": "kernel weighted", "part of a kernel": "kernel weighted",
                                  "tile program": "cube program"}[level])


def test_lower_gives_what_the_pass_and_those_in_front_of_it_make() -> None:
    w = weigh()
    lowered = run_passes(w.node and weighted.specialise(), any_use(weighted.specialise()), KERNEL_PASSES)
    (node,) = w.lower().irs
    assert w.lower().until == "plan_arena" and isinstance(node, Kernel) and node.arena == lowered.arena
    (plan,) = w.lower(until="drop_repeated_checks").irs
    assert isinstance(plan, TaskPlan) and plan.n_sites == lower(w.node).n_sites


def test_lower_runs_the_passes_that_an_option_adds() -> None:
    assert "check %" in str(weigh().lower(until="check_finite", check_finite=True))
    with pytest.raises(UnknownPassError):
        weigh().lower(until="check_finite")


def test_lower_runs_the_users_own_functions() -> None:
    seen: list[str] = []

    def mine(node: Kernel, context: object) -> Kernel:
        seen.append(node.name)
        return node

    weigh().lower("pto", until="merge_common_of_part", passes={"part_products": mine})
    assert "weighted" in seen


@pytest.mark.parametrize(("until", "help"), [("simplfy", "did you mean 'simplify'?"), ("zzz", "`pto-wsp passes"), (3, "`pto-wsp passes")])
def test_a_name_of_no_pass(until: str, help: str) -> None:
    with pytest.raises(UnknownPassError) as found:
        weigh().lower(until=until)
    assert found.value.expected == f"one of {', '.join(steps_of('cpu_sim'))}" and help in str(found.value.help)
    assert found.value.span is not None and found.value.span.file == __file__


def test_a_part_of_a_workload_has_no_ir_of_its_own() -> None:
    parts: list[Workload] = []
    x = Tensor(np.ones((4, 16, 16), np.float32))

    @workload
    def inner(b: object) -> None:
        weighted[b](x[b], x[b], x[b])       # type: ignore[index]

    @workload
    def whole() -> None:
        for b in P(4):
            parts.append(inner(b))

    whole()
    with pytest.raises(LoopVariableError):
        parts[0].lower()


# ---- what a program can do is asked of what was compiled ----

@pytest.mark.sampled(3)
@pytest.mark.parametrize(("target", "able"), [
    ("cpu_sim", {"to_run", "to_verify", "to_save"}), ("interp", {"to_run"}), ("ascend_npu", {"to_save"}), ("pto", {"to_save"})])
def test_abilities(target: str, able: set[str]) -> None:
    compiled = weigh().compile(target).compiled
    found = set()
    for name in ("to_run", "to_verify", "to_save", "to_watch_the_clock"):
        try:
            getattr(compiled, name)()
            found.add(name)
        except ProgramStateError as refusal:
            assert refusal.code == "R103"
    assert found == able


@pytest.mark.slow
@pytest.mark.parametrize(("target", "others"), [("interp", {"cpu_sim", "ascend_npu", "pto"}), ("cpu_sim", {"interp", "ascend_npu", "pto"}),
                                                ("pto", {"interp", "cpu_sim", "ascend_npu"})])
def test_a_target_loads_without_the_others(target: str, others: set[str]) -> None:
    script = ("import json, sys; from pto_wsp.targets.table import find_target; "
              f"find_target({target!r}); print(json.dumps(sorted(sys.modules)))")
    loaded = json.loads(subprocess.run([sys.executable, "-c", script], text=True, capture_output=True, check=True).stdout)
    assert f"pto_wsp.targets.{target}" in loaded and not {f"pto_wsp.targets.{other}" for other in others} & set(loaded)
