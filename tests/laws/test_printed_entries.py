# ruff: noqa: F821, UP037      (a string in Tensor[...] is a symbol)
"""Each entry that a plan prints can be set by hand, under the key, name and axis that the plan prints: drawn and shown functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, Tensor, TilePlan, jit
from pto_wsp.api.tensors.lowering import context_of, plan_of
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.errors import PlanConflictError, PlanFitError, PlanNameError, UnboundedAxisError
from pto_wsp.ir.tensor_function import Put
from pto_wsp.passes.tensor.emit import emit
from pto_wsp.passes.tensor.group_costs import FILL
from pto_wsp.passes.tensor.groups import KernelGroup
from pto_wsp.schedule.tiling_entries import PlanEntry, match_of
from pto_wsp.schedule.tiling_names import checked_entries
from tests.benchmarks.tensors import PAIRS
from tests.examples.tensors import EXAMPLES
from tests.laws.generated_tensors import generated

F16, F32, I8 = DType.F16, DType.F32, DType.I8
SIZES = {"t": 16, "n": 16}
SHOWN: Mapping[str, tuple[Any, Callable[[], dict[str, Any]]]] = {
    **{name: (example.function, example.module.draw) for name, example in EXAMPLES.items()},
    **{f"pair {name}": (pair.function, lambda pair=pair: pair.draw(np.random.default_rng(0))) for name, pair in PAIRS.items()},
}
FAST = ("causal_attention", "pair mlp")
HOST = ("pair attention", "pair paged", "pair moe")
CASES = [*((name, "ascend_910b") for name in FAST),
         *(pytest.param(name, arch, marks=pytest.mark.slow) for arch in ("ascend_910b", "host_cpu") for name in SHOWN
           if (name in HOST if arch == "host_cpu" else name not in FAST))]


def by_hand(plan: TilePlan, *entries: PlanEntry) -> TilePlan:
    """Return the plan with entries of its own given by hand, by the code that a plan shows for them."""
    code = replace(plan, entries=tuple(replace(entry, by_hand=True) for entry in entries)).code
    made = eval(f"plan{code}", {"plan": plan})
    assert isinstance(made, TilePlan)
    for entry in entries:
        assert [one.value for one in made.entries if one.place == entry.place and one.by_hand] == [entry.value], f"{entry} of {code}"
    return made


def means_others(plan: TilePlan, entry: PlanEntry) -> bool:
    """Tell whether an entry is about other values as well: `x` means `x#2`, too."""
    values = [str(value) for one in plan.entries if one.key == "groups" and isinstance(one.value, tuple)
              for value in (one.name, *one.value)]
    return any(value != entry.name and match_of(entry.name, value) >= 0 for value in values)


def is_written_often(plan: TilePlan, entry: PlanEntry) -> bool:
    """Tell whether an entry of `groups` is of a kernel that stores to memory which others write too: no entry tells the stores apart."""
    groups: Mapping[str, KernelGroup] = plan.planner.planned.planned.groups  # type: ignore[union-attr]
    puts = {name: Counter(one.target.array.name for one in group.statements if isinstance(one, Put)) for name, group in groups.items()
            if not name.endswith(FILL)}
    every = sum(puts.values(), Counter())
    return entry.key == "groups" and any(every[written] > count for written, count in puts.get(entry.name, Counter()).items())


def check_own_values(plan: TilePlan, path: Path) -> TilePlan:
    """Hold a plan to its entries, given back one by one and together; return the plan of all, saved and loaded."""
    often = [entry for entry in plan.entries if is_written_often(plan, entry)]
    for entry in plan.entries:
        if entry not in often:
            mine = by_hand(plan, entry)
            assert mine == plan or means_others(plan, entry), f"{entry}: {mine.diff(plan)}"
        with suppress(PlanNameError):      # of a value that planning makes
            (spelled,) = checked_entries([replace(entry, by_hand=True)], plan.planner.names)  # type: ignore[union-attr]
            assert spelled.place == entry.place, "a loaded plan is held to the names of the trace"
    every = by_hand(plan, *(entry for entry in plan.entries if entry.key != "groups" or not often))
    assert every == plan, every.diff(plan)
    return TilePlan.load(every.save(path))


def halves(plan: TilePlan) -> Iterable[TilePlan]:
    """Yield a plan with every second tile, step and batch at half of its size, if it fits."""
    for entry in plan.entries[::2]:
        if entry.key in ("tiles", "inner", "batch") and isinstance(entry.value, int) and entry.value > 1:
            try:
                yield by_hand(plan, replace(entry, value=entry.value // 2))
            except (PlanFitError, PlanConflictError):
                continue


@pytest.mark.filterwarnings("ignore:`out` is undefined here")
@pytest.mark.parametrize(("name", "arch"), CASES)
def test_every_printed_entry_can_be_given_back(name: str, arch: str, tmp_path: Path) -> None:
    function, draw = SHOWN[name]
    arrays = draw()
    plan = function.plan(**arrays, arch=arch)
    loaded = check_own_values(plan, tmp_path / "plan.json")
    source = function.lower(plan, **arrays).source()
    assert function.lower(loaded, **arrays).source() == source
    last = None
    for last in halves(plan):
        assert last != plan
    if last is not None:
        other = function.lower(last, **arrays).source()
        assert other != source
        assert function.lower(TilePlan.load(last.save(tmp_path / "half.json")), **arrays).source() == other


@jit
def scaled_product(x: Tensor["t", 64, I8], w: Tensor[64, 1024, I8], scale: Tensor["t", 1, F32]):
    return (x @ w).astype(F32) * scale


@jit
def narrow_product(x: Tensor[4096, 512, F16], w: Tensor[512, 64, F16]):
    return x @ w


def test_an_entry_of_a_product_in_steps_changes_no_other_choice(tmp_path: Path) -> None:
    plan = narrow_product.plan(arch="ascend_910b")
    assert {entry.axis for entry in plan.entries if entry.key == "inner"} & {"m", "n"}
    check_own_values(plan, tmp_path / "plan.json")


def test_steps_of_a_short_sum_can_be_given_back_and_change_no_bit(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, w, scale = rng.integers(-9, 9, (777, 64), np.int8), rng.integers(-9, 9, (64, 1024), np.int8), rng.random((777, 1), np.float32)
    plan = scaled_product.plan(arch="ascend_910b")
    assert {entry.axis for entry in plan.entries if entry.key == "inner"} & {"m", "n"}
    check_own_values(plan, tmp_path / "plan.json")
    np.testing.assert_array_equal(scaled_product.using(target="interp")(x, w, scale, plan=plan), scaled_product.reference(x, w, scale))


def test_the_entries_of_kernels_that_planning_makes_change_no_result() -> None:
    example = EXAMPLES["paged_attention"]
    function, arrays = example.function.using(target="interp"), example.module.draw()
    plan = function.plan(**arrays, arch="ascend_910b").but(loops={"j": "tasks"})
    made = plan.but(tiles={"acc.fill": {0: 2, 1: 8}, "out": {2: 1}})
    found = [np.asarray(function(**{name: np.array(array) for name, array in arrays.items()}, plan=one)) for one in (plan, made)]
    assert made != plan and found[0].tobytes() == found[1].tobytes()


@pytest.mark.sampled(9)
@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 30))])
def test_every_printed_entry_of_a_drawn_function_can_be_given_back(seed: int, tmp_path: Path) -> None:
    function = generated(seed, 6).function
    arch = builtin_arch("ascend_910b")
    try:
        planned = plan_of(function, None, arch, "cpu_sim", SIZES)
    except UnboundedAxisError:
        return
    loaded = plan_of(function, check_own_values(planned.plan, tmp_path / "plan.json"), arch, "cpu_sim", SIZES)
    context = context_of(arch, "cpu_sim", SIZES)
    assert emit(loaded, context).source == emit(planned, context).source
    assert all(half != planned.plan for half in halves(planned.plan))
