"""The law of the split: parts one after the other compute what the kernel computes, whatever it mixes, or the kernel is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, event, given, settings

from pto_wsp import Tensor, workload
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.errors import CubeError, MixedKernelError
from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir.flow import Sequence, leaves
from pto_wsp.ir.kernel_walk import map_bodies, walk
from pto_wsp.npu.plan.model import NpuItem, NpuKernel, NpuPlan, Scope
from pto_wsp.npu.select.select import select
from pto_wsp.ops.entry import Unit
from tests.npu.select.cube_run import run_cube
from tests.npu.split.generated_mixed import BLOCKS, Recipe, S, Step, recipes
from tests.npu.split.numpy_plan import RunKernel, interpret, npu_plan, run_npu_plan


def one_task(recipe: Recipe, arrays: dict[str, np.ndarray]) -> Any:
    """Return a workload of one task."""
    tensors = {name: Tensor(array, name=name) for name, array in arrays.items()}
    made = recipe.build()

    @workload
    def task() -> None:
        made[0](x=tensors["x"].clip(S, S), w=tensors["w"], region=tensors["both" if recipe.shared else "region"], n=recipe.n,
                piece=tensors["both"], state=tensors["state"], out=tensors["out"].clip(S, S))

    return task()


def difference(recipe: Recipe, plan: NpuPlan, expected: dict[str, np.ndarray], run: RunKernel = interpret) -> str:
    """Return which array the parts leave otherwise than the whole, "" for none."""
    found = recipe.arrays()
    run_npu_plan(plan, found, run)
    for name, want in expected.items():
        size = max(1.0, float(np.abs(want).max()))
        if not np.allclose(found[name], want, rtol=1e-3, atol=1e-4 * size):
            return name
    return ""


def whole(recipe: Recipe) -> dict[str, np.ndarray]:
    """Return the arrays as the kernel leaves them, run by the interpreter as it was traced."""
    arrays = recipe.arrays()
    one_task(recipe, arrays).compile(target="interp").run()
    return arrays


def on_its_core(use: NpuKernel, args: Mapping[str, np.ndarray | s.Number]) -> None:
    """Run a part for the cube core as the tile program that is made of it: it reads and writes what is valid, and nothing else."""
    if use.core is Unit.CUBE:
        run_cube(select(use, builtin_arch("ascend_910b")), args)
    else:
        interpret(use, args)


@pytest.mark.slow
@settings(max_examples=60)
@given(recipes)
def test_parts_of_many_kernels_compute_what_the_kernel_computes(recipe: Recipe) -> None:
    hold(recipe)


def hold(recipe: Recipe) -> None:
    """Raise AssertionError unless parts, one after the other, leave every array as the kernel does; or the kernel is refused."""
    expected = whole(recipe)
    assume(all(np.abs(array).max() < 1e6 for array in expected.values()))    # else rounding is all there is
    try:
        plan = npu_plan(one_task(recipe, recipe.arrays()))
    except MixedKernelError:
        event("refused")
        return
    event(f"{len(tuple(leaves(plan.body)))} parts")
    assert difference(recipe, plan, expected) == ""
    try:
        assert difference(recipe, plan, expected, on_its_core) == ""
    except CubeError as refused:      # a product of a part that may be empty would store zeros that no product makes
        assert "a sum that may have no terms" in str(refused)
        event("refused by the cube core")


# The law itself: what it must notice.

CHAIN = (Step("exp"), Step("matmul"), Step("rowmax"),
         Step("loop", inner=(Step("load"), Step("matmul", 1), Step("colsum"), Step("matmul"), Step("colsum"), Step("store_piece"))),
         Step("read", 1), Step("add"))
RECIPE = Recipe(CHAIN, BLOCKS, S, shared=False)


def swapped(item: NpuItem, at: int) -> NpuItem:
    """Return a scope with two neighbouring launches exchanged."""
    assert isinstance(item, Scope)
    parts = list(item.items)
    parts[at], parts[at + 1] = parts[at + 1], parts[at]
    return replace(item, items=tuple(parts))


def without_handing_on(plan: NpuPlan, number: int, name: str) -> NpuPlan:
    """Return the plan with a kernel that keeps one of its values to itself."""
    def kept(body: tuple[k.Stmt, ...]) -> tuple[k.Stmt, ...]:
        return tuple(map_bodies(stmt, kept) for stmt in body if not (isinstance(stmt, k.Store) and stmt.param == name))

    kernels = list(plan.kernels)
    changed = kernels[number].kernel
    kernels[number] = replace(kernels[number], kernel=replace(changed, body=kept(changed.body)))
    return replace(plan, kernels=tuple(kernels))


def test_the_law_notices_parts_that_change_places() -> None:
    expected, plan = whole(RECIPE), npu_plan(one_task(RECIPE, RECIPE.arrays()))
    assert difference(RECIPE, plan, expected) == ""
    (scope,) = plan.body.items
    assert isinstance(scope, Scope)
    assert len(scope.items) >= 4
    for at in range(len(scope.items) - 1):
        assert difference(RECIPE, replace(plan, body=Sequence((swapped(scope, at),))), expected), at


def test_the_law_notices_a_value_that_is_not_handed_on() -> None:
    expected, plan = whole(RECIPE), npu_plan(one_task(RECIPE, RECIPE.arrays()))
    handed = [(number, stmt.param) for number, made in enumerate(plan.kernels) for stmt in walk(made.kernel.body)
              if isinstance(stmt, k.Store) and stmt.param not in RECIPE.arrays()]
    assert len(handed) >= 4
    for number, name in handed:      # what is stored to a parameter among them
        assert difference(RECIPE, without_handing_on(plan, number, name), expected), name


@pytest.mark.parametrize("rows", [-S, S])
def test_the_law_notices_a_turn_that_takes_the_rows_of_another(rows: int) -> None:
    expected, plan = whole(RECIPE), npu_plan(one_task(RECIPE, RECIPE.arrays()))

    def moved(body: tuple[k.Stmt, ...], inside: bool = False) -> tuple[k.Stmt, ...]:
        out = []
        for stmt in body:
            if isinstance(stmt, k.Load) and inside and stmt.param not in RECIPE.arrays():
                row = s.minimum(s.maximum(s.add(stmt.row, s.Const(rows)), s.Const(0)), s.Const((BLOCKS - 1) * S))
                stmt = replace(stmt, row=row)
            out.append(map_bodies(stmt, lambda inner: moved(inner, True)))
        return tuple(out)

    kernels = tuple(replace(made, kernel=replace(made.kernel, body=moved(made.kernel.body))) for made in plan.kernels)
    assert kernels != plan.kernels
    assert difference(RECIPE, replace(plan, kernels=kernels), expected)
