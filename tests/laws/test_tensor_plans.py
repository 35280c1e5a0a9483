"""Any legal plan of a function on tensors gives the function's results: drawn functions, drawn plans, any number of threads.

Bits are equal between plans that agree in `inner`, `split` and `allow`, whatever their tiles, tails, groups, orders and loops are.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from pto_wsp.api.tensors.lowering import context_of, plan_of
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.errors import NoTileFormError, UnboundedAxisError, ViewIndexError
from pto_wsp.ir.scalar import Const
from pto_wsp.ir.tensor_function import TensorFunction
from pto_wsp.ir.view import Cut, Permute
from pto_wsp.passes.tensor.emit import emit
from pto_wsp.passes.tensor.emitted import EmittedModule
from pto_wsp.passes.tensor.passes import print_planned
from pto_wsp.passes.tensor.planned import PlannedFunction
from pto_wsp.run.tensor_evaluate import evaluate
from pto_wsp.run.tensor_pass_check import difference_of_arrays, difference_of_functions, drawn_arguments, is_exact
from pto_wsp.schedule.tiling import TilePlan
from tests.laws.generated_plans import changed, sums_of
from tests.laws.generated_tensors import GeneratedTensors, generated
from tests.tensor_functions import FunctionBuilder
from tests.tolerances import Array

ARCH = builtin_arch("ascend_910b")
SIZES = {"t": 16, "n": 16}
NO_FORM = (NoTileFormError, ViewIndexError)      # said at the user's line, or of a shape that the level below does not take
N_PLANS = 3
ULPS = 64
FAST = range(12)
SEEDS = [*FAST, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 80))]


def planned(function: TensorFunction, plan: TilePlan | None = None) -> PlannedFunction:
    return plan_of(function, plan, ARCH, "cpu_sim", SIZES)


def plans_of(case: GeneratedTensors, seed: int) -> list[TilePlan]:
    """The default plan, and drawn changes of the plan; none for a function that cannot be cut."""
    try:
        default = planned(case.function).plan
    except UnboundedAxisError:
        return []
    draw = random.Random(seed)
    return [default, *(changed(default, draw) for _ in range(N_PLANS))]


def results_of(module: EmittedModule, case: GeneratedTensors, wanted: list[Array], target: str, **options: Any) -> list[Array]:
    """The results and the written arguments of a run."""
    compiled = module.workload().compile(target=target, **options)
    arrays, found = [array.copy() for array in case.arrays], [np.full(one.shape, 77, one.dtype) for one in wanted]
    bound: dict[str, Any] = {**case.sizes, **case.scalars, **dict(zip(module.parameters, arrays, strict=True)),
                             **dict(zip(module.results, found, strict=True))}
    names = {slot.ref.shown for slot in compiled.plan.tensors} | {symbol.name for symbol in compiled.plan.symbols}
    compiled.run(**{name: value for name, value in bound.items() if name in names})
    return [*found, *arrays]


def check_runs(case: GeneratedTensors, seed: int, target: str, *options: dict[str, Any]) -> int:
    """Hold the runs of the plans of a seed to the evaluator, and to each other; return how many plans ran."""
    arrays = [array.copy() for array in case.arrays]
    plans, by_sums, ran = plans_of(case, seed), dict[object, list[Array]](), 0
    wanted = [*evaluate(case.function, arrays, case.scalars)] if plans else []
    expected, ulps = [*wanted, *arrays], 0 if is_exact(case.function) else ULPS
    for plan in plans:
        said = f"seed {seed}, {plan.code or 'default'}"
        try:
            module = emit(planned(case.function, plan), context_of(ARCH, "cpu_sim", SIZES))
            runs = [results_of(module, case, wanted, target, **one) for one in options]
        except NO_FORM:
            continue
        same = by_sums.setdefault(sums_of(plan), runs[0])
        for run in runs:
            for found, one, before in zip(run, expected, same, strict=True):
                assert (wrong := difference_of_arrays(found, one, ulps)) is None, f"{said}: {wrong}\n{module.source}"
                assert (wrong := difference_of_arrays(found, before, 0)) is None, f"{said}, bits: {wrong}\n{module.source}"
        ran += 1
    return ran


@pytest.mark.sampled(9)
@pytest.mark.parametrize("seed", SEEDS)
def test_every_plan_cuts_a_function_of_the_same_meaning(seed: int) -> None:
    case = generated(seed, 6)
    for plan in plans_of(case, seed):
        cut = planned(case.function, plan)
        wrong = difference_of_functions(case.function, cut.function, case.arrays, case.scalars, order=seed)
        assert wrong is None, f"{plan.code}: {wrong}\n{print_planned(cut)}"
        assert cut.plan == plan, f"{plan.diff(cut.plan)}"


@pytest.mark.slow
def test_every_plan_runs_to_the_same_results() -> None:
    assert sum(check_runs(generated(seed, 6), seed, "interp", {}) for seed in range(5)) > 12


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5, 40))
def test_more_plans_run_to_the_same_results(seed: int) -> None:
    check_runs(generated(seed, 6), seed, "interp", {})


@pytest.mark.slow
def test_every_plan_runs_to_the_same_results_on_threads() -> None:
    assert check_runs(generated(2, 6), 2, "cpu_sim", {"threads": 1}, {"threads": 3}) > 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(9))
def test_more_plans_run_to_the_same_results_on_threads(seed: int) -> None:
    check_runs(generated(seed, 6), seed, "cpu_sim", {"threads": 1}, {"threads": 2}, {"threads": 5})


# -- what the law found ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("op", ["matmul", "add"])
def test_an_axis_that_meets_itself_is_not_cut_in_one_kernel(op: str) -> None:
    """Of `y @ y.T` and `y + y.T`, tiles of one axis for both dimensions of the result would be those of the diagonal."""
    f = FunctionBuilder()
    y = f.apply("exp", f.param("x", (24, 24)))
    f.give(f.apply(op, y, y.then(Permute((1, 0)))))
    function = f.function()
    arrays, plan = drawn_arguments(function, {}, 0), planned(function).plan
    for entry in plan.entries:
        if entry.key == "tiles":
            plan = plan.but(tiles={entry.name: {entry.axis: 5}})
    assert difference_of_functions(function, planned(function, plan).function, arrays) is None


def test_a_complete_plan_cuts_writes_of_parts_as_no_plan_does() -> None:
    f = FunctionBuilder()
    x, g, out = f.param("x", (9, 8)), f.param("g", (8,)), f.make("out", (9, 12), None)
    f.put(out.then(Cut(1, Const(0), Const(8))), x)
    f.put(out.then(Cut(1, Const(8), Const(12))), f.apply("mul", x.then(Cut(1, Const(0), Const(8), 2)), 2))
    f.give(out, g, g)
    default = planned(f.function())
    assert str(planned(f.function(), default.plan).function) == str(default.function)
