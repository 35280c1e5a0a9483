"""Laws of kernel passes: generated kernels compute the same before and after each pass, and with any optional one left out."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pto_wsp import DType
from pto_wsp.ir import kernel as k
from pto_wsp.ir.kernel_walk import walk
from pto_wsp.passes.kernel import rows
from pto_wsp.passes.kernel.context import KernelContext
from pto_wsp.passes.kernel.passes import KERNEL_PASSES, TILE_PASSES, run_kernel_passes
from pto_wsp.run.pass_check import check_kernel_passes
from tests.laws.generated_kernels import Recipe, Step, recipes

OPTIONAL = ("forward_buffers", "simplify", "merge_common", "narrow_loads", "hoist_invariants", "fuse_products", "accumulate_in_place",
            "drop_dead_code", "schedule_rows", "vectorise")
NAMES = tuple(step.name for step in KERNEL_PASSES)


def traced(recipe: Recipe) -> k.Kernel:
    """Return the IR of a generated kernel."""
    return recipe.build(0).specialise(region=recipe.dtype, piece=recipe.dtype)


def contexts(kernel: k.Kernel) -> st.SearchStrategy[KernelContext]:
    """Return a strategy for which parameters' columns are neighbours."""
    return st.sets(st.sampled_from([p.name for p in kernel.memory_params])).map(lambda names: KernelContext(frozenset(names)))


@pytest.mark.slow
@given(st.data())
@settings(max_examples=20)
def test_every_pass_keeps_the_numbers(data: st.DataObject) -> None:
    kernel = traced(data.draw(recipes(max_steps=14)))
    check_kernel_passes(kernel, data.draw(contexts(kernel)), KERNEL_PASSES)


@pytest.mark.slow
@pytest.mark.parametrize("weight", [1, 3])
@given(st.data())
@settings(max_examples=8)
def test_loops_that_are_cut_keep_the_numbers(weight: int, data: st.DataObject) -> None:
    kernel = traced(data.draw(recipes(max_steps=14)))
    context = data.draw(contexts(kernel))
    with mock.patch.object(rows, "MAX_WEIGHT", weight):
        check_kernel_passes(kernel, context, KERNEL_PASSES)
        lowered = run_kernel_passes(kernel, context, KERNEL_PASSES[:NAMES.index("fuse_rows") + 1])
    assert all(len(loop.body) == 1 or sum(map(rows.weight_of, loop.body)) <= weight
               for loop in walk(lowered.body) if isinstance(loop, k.Rows))


@pytest.mark.slow
@given(st.data())
@settings(max_examples=50)
def test_passes_with_and_without_any_optional_one_keep_the_numbers_of_many(data: st.DataObject) -> None:
    kernel, name = traced(data.draw(recipes(max_steps=14))), data.draw(st.sampled_from(("none", *OPTIONAL)))
    check_kernel_passes(kernel, data.draw(contexts(kernel)), tuple(step for step in KERNEL_PASSES if step.name != name))


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", OPTIONAL)
@given(st.data())
@settings(max_examples=4)
def test_the_others_keep_them_without_it(name: str, data: st.DataObject) -> None:
    kernel = traced(data.draw(recipes()))
    check_kernel_passes(kernel, data.draw(contexts(kernel)), tuple(step for step in KERNEL_PASSES if step.name != name))


@given(recipes(max_steps=14))
@settings(max_examples=15)
def test_a_pass_leaves_nothing_for_itself_to_do(recipe: Recipe) -> None:
    kernel = traced(recipe)
    context = KernelContext(frozenset())
    for step in TILE_PASSES:
        kernel = step.run(kernel, context)
        assert step.run(kernel, context) == kernel, step.name


@given(st.data())
@settings(max_examples=15)
def test_what_is_needed_at_the_same_time_has_places_of_its_own(data: st.DataObject) -> None:
    kernel = traced(data.draw(recipes(max_steps=14)))
    lowered = run_kernel_passes(kernel, data.draw(contexts(kernel)))
    for at, one in enumerate(lowered.arena):
        for other in lowered.arena[:at]:
            apart = one.offset + one.type.size_bytes <= other.offset or other.offset + other.type.size_bytes <= one.offset
            assert apart or one.last < other.first or other.last < one.first, (one, other)
    n_statements = sum(1 for _ in walk(lowered.body))
    assert all(0 <= slot.first <= slot.last < n_statements for slot in lowered.arena)


def test_passes_are_the_same_in_every_run() -> None:
    kernel = traced(recipes_example())
    assert run_kernel_passes(kernel) == run_kernel_passes(kernel)


def recipes_example() -> Recipe:
    """Return a kernel with a reduction, a loop and a product."""
    steps = (Step("rowmax", (0,)), Step("sub", (0, 4)), Step("loop", (5,), None, ("add", 1, 3, True)), Step("matmul", (6, 1)))
    return Recipe(DType.I32, (8, 8), steps, ((8, 8), DType.I32), False, (8, 8), "plain", (1, 1), (4, 4), 5)
