"""A plan carries what its passes made: lowering it runs no pass again, unless something is another."""

from __future__ import annotations

from typing import Any

import pytest

from pto_wsp import DType, Tensor, TilePlan, jit
from pto_wsp.api.tensors import fitting, lowering

F32 = DType.F32


@jit
def scaled_product(x: Tensor["t", 64, F32], w: Tensor[64, 96, F32]):
    return (x * 2.0) @ w


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the functions that the passes ran on."""
    found: list[str] = []
    run = lowering.run_tensor_passes

    def noted(planned: Any, *args: Any) -> Any:
        found.append(planned.name)
        return run(planned, *args)

    for module in (fitting, lowering):
        monkeypatch.setattr(module, "run_tensor_passes", noted)
    return found


def test_lowering_a_plan_runs_no_pass_again(runs: list[str]) -> None:
    plan = scaled_product.plan()
    assert len(runs) == 1
    sources = [scaled_product.lower(one).source() for one in (plan, plan)]
    assert len(runs) == 1 and sources[0] == sources[1] == scaled_product.lower().source()


def test_lowering_a_changed_plan_runs_the_passes_for_the_change_alone(runs: list[str]) -> None:
    plan = scaled_product.plan()
    mine = plan.but(tiles={"out": {"t": 16}})
    assert len(runs) == 2
    workload = scaled_product.lower(mine)
    assert len(runs) == 2 and workload.source() != scaled_product.lower(plan).source()


def test_a_plan_of_other_shapes_or_a_file_is_planned_for_them(runs: list[str], tmp_path: Any) -> None:
    @jit
    def doubled(x):
        return x * 2.0

    plan = doubled.plan(Tensor[32, 64, F32])
    assert "(16, 48)" in doubled.lower(plan, x=Tensor[16, 48, F32]).source()
    assert doubled.lower(plan, x=Tensor[32, 64, F32]).source() == doubled.lower(x=Tensor[32, 64, F32]).source()
    plan.save(tmp_path / "plan.json")
    n_runs = len(runs)
    assert doubled.lower(TilePlan.load(tmp_path / "plan.json"), x=Tensor[32, 64, F32]).source() == \
        doubled.lower(plan, x=Tensor[32, 64, F32]).source()
    assert len(runs) > n_runs
