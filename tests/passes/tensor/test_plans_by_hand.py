"""Plans by hand through the passes: axes go by the user's names, tails give the tile, and what does not fit says what would."""

from __future__ import annotations

import pytest

from pto_wsp.arch.instances import builtin_arch
from pto_wsp.errors import PlanFitError, PlanNameError
from pto_wsp.ir.tensor_function import TensorFunction
from pto_wsp.passes.tensor.passes import run_tensor_passes
from pto_wsp.passes.tensor.planned import PlannedFunction, TensorContext
from pto_wsp.schedule.tiling import Planner, TilePlan
from pto_wsp.schedule.tiling_names import names_of
from tests.tensor_functions import FunctionBuilder


def linear() -> TensorFunction:
    f = FunctionBuilder("linear")
    x, w = f.param("x", (f.symbol("t"), 512)), f.param("w", (512, 700))
    f.give(f.apply("matmul", x, w, name="out"))
    return f.function()


def planned(function: TensorFunction, arch: str = "ascend_910b") -> TilePlan:
    context = TensorContext(builtin_arch(arch), "cpu_sim", {})
    planner = Planner(names_of(function), lambda plan: run_tensor_passes(PlannedFunction(function, plan), context).plan)
    return TilePlan(function.name, arch, "cpu_sim", tuple((symbol.name, 1024) for symbol in function.symbols)).used_with(
        function.name, planner)


def test_a_summed_axis_is_called_after_what_is_read() -> None:
    plan = planned(linear())
    assert plan.said("inner", "out", "w:0") is not None
    mine = plan.but(inner={"out": {"w:0": 32}})
    assert mine.but(inner={"out": {"w:0": None, "k": 32}}).diff(mine).costs == ()
    assert mine.diff(plan).costs, "the cost says what the steps change"


def test_the_first_of_the_tails_is_the_tile_that_costs_are_for() -> None:
    plan = planned(linear()).but(tails={"out": {"t": (32, 8, 1)}})
    tiles = plan.said("tiles", "out", "t")
    assert tiles is not None and tiles.first == 32


def test_tiles_that_do_not_fit_say_which_would() -> None:
    with pytest.raises(PlanFitError) as caught:
        planned(linear()).but(tiles={"out": {"t": 1024, 1: 700}})
    text = str(caught.value)
    assert "of 131,072 bytes of L0C" in text and "t=32, 1=32" in text and "out [1024, 700] f32" in text
    assert planned(linear()).but(tiles={"out": {"t": 32, 1: 700}})


def test_an_axis_that_is_whole_has_no_tile() -> None:
    f = FunctionBuilder("sums")
    f.give(f.apply("rowsum", f.param("x", (f.symbol("t"), 64)), name="total"))
    with pytest.raises(PlanNameError, match="changes nothing"):
        planned(f.function()).but(tiles={"total": {"x:1": 8}})
