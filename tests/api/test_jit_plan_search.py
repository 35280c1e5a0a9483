"""`auto_schedule` of a function on tensors: the plan it returns is never slower in simulated time, and computes the same."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from pto_wsp import DType, Mesh, PtoError, Scalar, Tensor, TensorLayout, TilePlan, allreduce, auto_schedule, builtin_arch, jit, tt
from pto_wsp.api import plan_search
from pto_wsp.api.plan_search import simulated, simulated_cycles
from pto_wsp.errors import ArchError, AutoScheduleError, MeshError
from pto_wsp.run.interpreter import Interpreter

F32 = DType.F32


@dataclass(frozen=True)
class Figures:
    """What a simulation would say."""

    total_cycles: int
    task_count: int = 10


@jit
def product(x: Tensor["t", 64, F32], w: Tensor[64, 96, F32]):
    return x @ w


@jit
def summed(x, w):
    return allreduce(x @ w)


def arrays() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    return rng.standard_normal((40, 64), np.float32), rng.standard_normal((64, 96), np.float32)


@pytest.mark.slow
def test_a_found_plan_is_never_slower_than_the_default() -> None:
    x, w = arrays()
    usual = product.plan(x, w, arch="ascend_910b")
    found = auto_schedule(product, x, w, arch="ascend_910b", budget=6)
    assert simulated_cycles(product, (x, w), found) < simulated_cycles(product, (x, w), usual)
    np.testing.assert_allclose(product(x, w, plan=found), x @ w, rtol=1e-4, atol=1e-4)


# Over four ranks with links of 5,000 cycles of latency, an allreduce by ring waits for six of them in a row, directly for two.
@pytest.mark.slow
def test_a_search_over_ranks_chooses_the_algorithm_of_a_collective() -> None:
    rng = np.random.default_rng(4)
    x, w = rng.integers(-4, 5, (8, 16)).astype(np.float32), rng.integers(-4, 5, (16, 24)).astype(np.float32)
    given = Tensor(x, layout=TensorLayout.sharded(1, 2, "x")), Tensor(w, layout=TensorLayout.sharded(0, 2, "x"))
    over = summed.using(mesh=Mesh(x=4))
    far = builtin_arch("unit").with_links(latency_cycles=5000)
    usual = over.plan(*given, arch=far)
    found = auto_schedule(over, *given, arch=far, budget=5)
    assert simulated_cycles(over, given, found, far) < simulated_cycles(over, given, usual, far) - 3 * 5000
    assert [entry.value for entry in found.entries if entry.key == "collectives"] == ["direct"]
    np.testing.assert_array_equal(np.asarray(over(*given, plan=found)), x @ w)


def test_what_a_search_over_ranks_needs() -> None:
    x, w = (Tensor(np.ones((4, 4), np.float32), layout=TensorLayout.sharded(dim, 2, "x")) for dim in (1, 0))
    with pytest.raises(MeshError, match="no mesh is known"):
        auto_schedule(summed, x, w)
    with pytest.raises(ArchError, match="linked"):
        auto_schedule(summed.using(mesh=Mesh(x=4)), x, w, arch="ascend_910b")


@jit
def normed_product(x: Tensor["t", 512, F32], g: Tensor[512, F32], w: Tensor[512, 384, F32]):
    normed = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-6) * g
    return normed @ w


def test_a_search_tries_steps_of_products_and_where_values_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[TilePlan] = []
    monkeypatch.setattr(plan_search, "simulated", lambda *given, **_: tried.append(given[2]) or Figures(len(tried)))
    rng = np.random.default_rng(5)
    given = [rng.standard_normal(shape, np.float32) for shape in ((64, 512), (512,), (512, 384))]
    default = normed_product.plan(*given, arch="ascend_910b")
    assert auto_schedule(normed_product, *given, arch="ascend_910b", budget=60) == default
    assert [entry.first for entry in default.entries if entry.key == "keep"] == ["task"]
    by_hand = [{entry.place: entry.first for entry in plan.entries if entry.by_hand} for plan in tried]
    assert {("keep", "normed", ""): "whole"} in by_hand
    steps = [{place[2]: value for place, value in entries.items() if place[0] == "inner"} for entries in by_hand]
    assert [found for found in steps if set(found) == {"m"}] and [found for found in steps if set(found) == {"m", "n"}], steps


@jit
def wide_product(x: Tensor[256, 256, F32], w: Tensor[256, 512, F32]):
    return x @ w


def test_a_search_tries_an_operand_of_a_product_that_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[TilePlan] = []
    monkeypatch.setattr(plan_search, "simulated", lambda *given, **_: tried.append(given[2]) or Figures(len(tried)))
    given = np.ones((256, 256), np.float32), np.ones((256, 512), np.float32)
    auto_schedule(wide_product, *given, arch="ascend_910b", budget=60)
    (staying,) = [plan for plan in tried if ("inner", "out", "stay") in {entry.place for entry in plan.entries}]
    assert {entry.axis: entry.first for entry in staying.entries if entry.key == "inner"} == {"m": 64, "n": 32, "stay": "right"}
    assert [plan for plan in tried if ("m", 128) in {(entry.axis, entry.first) for entry in plan.entries if entry.by_hand}], "at once"
    assert staying.but(inner={"out": dict.fromkeys(("m", "n", "stay"))}) == tried[0]      # the same tiles
    cycles = [simulated(wide_product, given, plan, runs=False).total_cycles for plan in (staying, tried[0])]
    assert 0 < cycles[1] != cycles[0] > 0


@jit
def two_parts(x: Tensor[64, 32, F32], y: Tensor[8, 32, F32]):
    out = tt.zeros((128, 32))
    out[:64] = np.exp(x)
    out[64:72] = y * 2
    return out


def test_a_search_tries_tiles_of_kernels_that_planning_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[TilePlan] = []
    monkeypatch.setattr(plan_search, "simulated", lambda *given, **_: tried.append(given[2]) or Figures(len(tried)))
    default = two_parts.plan(arch="ascend_910b")
    auto_schedule(two_parts, np.ones((64, 32), np.float32), np.ones((8, 32), np.float32), arch="ascend_910b", budget=60)
    varied = {entry.place for plan in tried for entry in plan.entries if entry.by_hand}
    assert ("tiles", "out.fill", "0") in varied
    assert varied >= {entry.place for entry in default.entries if entry.key == "tiles"}


def test_a_budget_of_one_returns_the_default_plan() -> None:
    x, w = arrays()
    assert auto_schedule(product, x, w, arch="ascend_910b", budget=1) == product.plan(x, w, arch="ascend_910b")


class Affine(NamedTuple):
    """Weights of a function, which take one tensor and a number of each call."""

    scale: Tensor[8, F32]
    by: Scalar[F32]


@jit(target="interp")
def affine(x: Tensor["t", 8, F32], w: Affine, rows: Scalar[DType.I32], power: int = 2):
    acc = tt.zeros((1, 8))
    for i in tt.loop(rows):
        acc[:] = acc + x[i] ** power
    return acc * w.scale + w.by


@pytest.mark.slow
def test_a_search_takes_what_a_call_takes() -> None:
    x, w = np.full((5, 8), 2, np.float32), Affine(np.ones(8, np.float32), 0.5)
    assert (affine(x, w, 3, 3) == 24.5).all()
    found = auto_schedule(affine, x, w, 3, 3, arch="ascend_910b", budget=1)
    assert (affine(x, w, 3, 3, plan=found) == 24.5).all()
    assert found == auto_schedule(affine, Tensor(x), w, 3, 3, arch="ascend_910b", budget=1)
    with pytest.raises(PtoError, match="missing a required argument"):
        auto_schedule(affine, x, w)


def test_a_number_for_a_scalar_is_part_of_the_workload() -> None:
    x, out = np.full((5, 8), 2, np.float32), np.zeros((1, 8), np.float32)
    w = Affine(np.ones(8, np.float32), 0.5)
    affine.lower(None, x=x, w=w, rows=3, out=out).compile("interp").run()
    assert (out == 12.5).all()
    affine.lower(None, x=x, w=w, out=out).compile("interp").run(rows=2)      # a number that is left out comes with each run
    assert (out == 8.5).all()


def test_arguments_that_are_no_arrays_are_refused() -> None:
    with pytest.raises(AutoScheduleError, match="takes the arrays of a call"):
        auto_schedule(product, 3, 4)
    with pytest.raises(AutoScheduleError, match="takes the arrays of a call"):
        auto_schedule(product, Tensor["t", 64, F32], arrays()[1])
    with pytest.raises(AutoScheduleError, match="takes its arrays"):
        auto_schedule(product, *arrays(), bindings={})
    with pytest.raises(AutoScheduleError, match="wall time is that of this machine"):
        auto_schedule(product, *arrays(), arch="ascend_910b", wall_time=True)
    with pytest.raises(AutoScheduleError, match="says whether runs are timed"):
        auto_schedule(product, *arrays(), wall_time="yes")  # type: ignore[call-overload]
    with pytest.raises(AutoScheduleError, match="compared in simulated time"):
        auto_schedule(product.lower(), wall_time=True)  # type: ignore[call-overload]


def clock_that_likes(tile: int, asked: list[str]) -> Callable[..., list[float]]:
    """A clock by which plans of `product` take longer the farther their tile of t is from a number."""
    def seconds(function: object, given: object, plans: Sequence[TilePlan], threads: int | None) -> list[float]:
        asked.extend(plan.code for plan in plans)
        tiles = [int(entry.first) for plan in plans for entry in plan.entries if entry.place == ("tiles", "out", "t")]
        return [1 + abs(math.log2(t / tile)) for t in tiles]
    return seconds


def test_the_clock_decides_where_wall_time_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(plan_search, "wall_seconds", clock_that_likes(4, asked))
    found = auto_schedule(product, *arrays(), budget=90, wall_time=True)
    assert {entry.first for entry in found.entries if entry.place == ("tiles", "out", "t")} == {4}
    assert len(set(asked)) <= 90 and asked[0] == ""


def test_a_search_by_the_clock_stays_within_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(plan_search, "wall_seconds", clock_that_likes(1, asked))
    auto_schedule(product, *arrays(), budget=3, wall_time=True)
    assert len(set(asked)) == 3


def test_a_plan_that_was_faster_only_once_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []
    monkeypatch.setattr(plan_search, "wall_seconds", lambda function, given, plans, threads: calls.append(plans) or (
        [2.0, 1.0, *[2.0] * (len(plans) - 2)] if len(calls) == 2 else [2.0] * len(plans)))
    assert auto_schedule(product, *arrays(), budget=4, wall_time=True) == product.plan(*arrays())
    assert len(calls) > 2


def test_runs_are_timed_on_as_many_threads_as_the_arch_has_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int | None] = []
    monkeypatch.setattr(plan_search, "wall_seconds", lambda function, given, plans, threads: asked.append(threads) or [1.0] * len(plans))
    auto_schedule(product, *arrays(), arch=builtin_arch("host_cpu").with_cores(cube=1, vector=1), budget=2, wall_time=True)
    auto_schedule(product, *arrays(), budget=2, wall_time=True)
    assert list(dict.fromkeys(asked)) == [1, None]


@jit
def of_experts(x: Tensor["t", 16, F32], router: Tensor[16, 4, F32], w: Tensor[4, 16, 16, F32]):
    pairs, out = tt.rows_of(tt.topk(x @ router, 1)[1], 4), tt.zeros(x.shape)
    for e in tt.each(4):
        out[pairs[e]] = x[pairs[e]] @ w[e]
    return out


@jit
def of_requests(x: Tensor["b", 40, 16, F32], lens: Tensor["b", DType.I32]):
    out = tt.zeros(x.shape)
    for b in tt.each(x.shape[0]):
        out[b, :lens[b]] = np.exp(x[b, :lens[b]])
    return out


# What a routing computes decides how many tasks the experts have; lengths are given, and no task needs to run.
@pytest.mark.parametrize("function", [pytest.param(of_experts, marks=pytest.mark.slow), of_requests])
def test_tasks_that_decide_about_no_others_do_not_run_to_be_simulated(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[object] = []
    run_task = Interpreter.run_task
    monkeypatch.setattr(Interpreter, "run_task", lambda self, number, task, *more: ran.append(task) or run_task(self, number, task, *more))
    rng = np.random.default_rng(6)
    given = {"of_experts": [rng.standard_normal(shape, np.float32) for shape in ((40, 16), (16, 4), (4, 16, 16))],
             "of_requests": [rng.standard_normal((3, 40, 16), np.float32), np.array([40, 3, 17], np.int32)]}[function.__name__]
    plan = function.plan(*given, arch="ascend_910b")
    whole, alone = (simulated(function, given, plan, runs=runs) for runs in (True, False))
    assert (alone.total_cycles, alone.task_count) == (whole.total_cycles, whole.task_count)
    assert (0 < len(ran) < whole.task_count) if function is of_experts else not ran


def test_plans_whose_kernels_should_cost_least_are_tried_first(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[TilePlan] = []
    monkeypatch.setattr(plan_search, "simulated", lambda *given, **_: tried.append(given[2]) or Figures(len(tried)))
    auto_schedule(product, *arrays(), arch="ascend_910b", budget=40)
    costs = [sum(cost.cycles or 0 for cost in plan.costs) for plan in tried[1:]]
    assert costs == sorted(costs) and costs[0] < costs[-1]


@pytest.mark.slow
def test_plans_are_timed_on_copies_of_the_arrays() -> None:
    x, w = arrays()
    kept = x.copy(), w.copy()
    found = auto_schedule(product, x, w, budget=2, wall_time=True)
    np.testing.assert_array_equal(x, kept[0])
    np.testing.assert_allclose(product(x, w, plan=found), x @ w, rtol=1e-4, atol=1e-4)
    large = product.plan(x, w).but(tiles={"out": {"t": 8}})
    assert min(plan_search.wall_seconds(product, (x, w), [found, large])) > 0
