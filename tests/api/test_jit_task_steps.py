"""Steps inside a task and scratch of a task change the emitted workload, and no bit of the results, ejected modules included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, InOut, PtoError, Tensor, jit, tt
from pto_wsp.api.plan_search import simulated

F32 = DType.F32
RNG = np.random.default_rng(5)
X, W = RNG.standard_normal((77, 48)).astype(np.float32), RNG.standard_normal((48, 40)).astype(np.float32)


@jit
def normed_product(x: Tensor["t", 48, F32], w: Tensor[48, 40, F32]):
    normed = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-6)
    return normed @ w


@jit
def numbered(x: Tensor["t", 48, F32]):
    return x + tt.cast(tt.arange(x.shape[0]), F32)[:, None]


@jit
def fixed(x: Tensor[64, 48, F32]):
    return x * 2


@jit
def blocks_in_order(x: Tensor["t", 48, F32], w: Tensor[48, 8, F32], state: InOut[Tensor[8, 8, F32]]):
    y = x @ w
    for i in tt.loop(x.shape[0] // 8):
        state[:] = state * 0.5 + y[i * 8:i * 8 + 8]


GROUPS = {"groups": {"normed": ("normed.mul", "normed.mean", "normed.add", "normed.sqrt", "normed"), "out": ("out",)},
          "tiles": {"normed": {"t": 8}, "out": {"t": 32, 1: 40}}, "inner": {"out": {"k": 48}}, "keep": {"normed": "whole"}}
CHANGES: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "batch": ({"batch": {"normed": 3}}, "for normed_tile in pto.range("),
    "batch of products": ({"batch": {"out": 2}}, "for out_tile in pto.range("),
    "m": ({"inner": {"out": {"m": 16}}}, "for out_m in pto.range("),
    "left": ({"inner": {"out": {"m": 16, "n": 16, "stay": "left"}}}, "        normed_tile = pto.load"),
    "right": ({"inner": {"out": {"m": 16, "n": 16, "stay": "right"}}}, "        w_tile = pto.load"),
    "task": ({"keep": {"normed": "task"}}, "        normed_tensor = Tensor.empty((minimum(32, t - t_i * 32), 48)"),
    "task and batch": ({"keep": {"normed": "task"}, "batch": {"normed": 2}}, "for t_in in P(ceildiv(minimum(32, t - t_i * 32), 16)"),
}


def check_module(source: str, results: Any, *arrays: Any) -> None:
    """The ejected module gives the same bits in a namespace of its own."""
    namespace: dict[str, Any] = {"__name__": "ejected"}
    exec(compile(source, "<ejected>", "exec"), namespace)
    np.testing.assert_array_equal(namespace["run"](*arrays), results)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["interp", "cpu_sim"])
@pytest.mark.parametrize("change", CHANGES)
def test_an_entry_changes_the_tasks_and_no_bit(change: str, target: str) -> None:
    entries, line = CHANGES[change]
    f = normed_product.using(target=target)
    before = f.plan(arch="ascend_910b").but(**GROUPS)
    after = before.but(**entries)
    source = f.lower(after).source()
    assert line in source and line not in f.lower(before).source()
    results = f(X, W, plan=after)
    np.testing.assert_allclose(results, normed_product.python(X, W), rtol=1e-4, atol=1e-5)
    if target == "cpu_sim":          # NumPy's own products round by the number of columns
        np.testing.assert_array_equal(results, f(X, W, plan=before))
        check_module(source, results, X, W)


def test_a_range_counts_on_in_the_steps_of_a_task() -> None:
    f = numbered.using(target="interp")
    plan = f.plan(arch="ascend_910b")
    for name in plan.group_names:
        plan = plan.but(tiles={name: {"t": 8, 1: 48}}, batch={name: 4})
    np.testing.assert_array_equal(f(X, plan=plan), X + np.arange(77, dtype=np.float32)[:, None])


def test_blocks_of_an_extent_that_is_a_number_are_bound_one_by_one() -> None:
    f = fixed.using(target="interp")
    plan = f.plan(arch="ascend_910b").but(tiles={"out": {0: 8}}, batch={"out": 4})
    assert "x[out_0 * 32:out_0 * 32 + 32]" in f.lower(plan).source()
    np.testing.assert_array_equal(f(X[:64], plan=plan), X[:64] * 2)


def test_the_operand_that_stays_is_loaded_once_for_all_turns() -> None:
    """Of a tile of 32 x 40 in steps of 16 x 8, one operand is loaded in 2 or 5 turns, the other in all 10: the costs differ."""
    plan = normed_product.plan(arch="ascend_910b").but(**GROUPS)
    costs = {stay: plan.but(inner={"out": {"m": 16, "n": 8, "stay": stay}}).costs for stay in ("left", "right")}
    found = {stay: next(cost.cycles for cost in costs[stay] if cost.name == "out") for stay in costs}
    assert found["left"] != found["right"]


SHORT = [(1024, 64, 1024, DType.F16, (128, 256), 0.65), (512, 128, 512, F32, (64, 128), 0.7), (2048, 64, 2048, DType.I8, (128, 256), 0.8),
         (512, 512, 512, F32, (64, 128), None), (192, 64, 192, DType.F16, (32, 48), None)]


@pytest.mark.parametrize(("rows", "depth", "columns", "dtype", "whole", "ratio"), SHORT)
def test_a_plan_takes_steps_of_products_where_they_pay(rows: int, depth: int, columns: int, dtype: DType, whole: tuple[int, int],
                                                       ratio: float | None) -> None:
    """`whole`: the best tiles without steps; `ratio`: simulated cycles with steps over those without, at most."""
    kind = {DType.F16: np.float16, F32: np.float32, DType.I8: np.int8}[dtype]
    x, w = np.ones((rows, depth), kind), np.ones((depth, columns), kind)
    f = jit(product)
    plan = f.plan(x, w, arch="ascend_910b")
    steps = {entry.axis: entry for entry in plan.entries if entry.key == "inner" and entry.axis in ("m", "n")}
    if ratio is None:      # the sum is long, its own steps overlap loads and products; or larger tiles would be too few
        assert not steps and {entry.axis: entry.first for entry in plan.entries if entry.key == "tiles"} == {"0": whole[0], "1": whole[1]}
        return
    (step,) = steps.values()
    assert f"{whole[0]} 1={whole[1]}" in step.reason and "without steps" in step.reason
    without = plan.but(tiles={"out": dict(enumerate(whole))}, inner={"out": {"m": whole[0]}})
    cycles = [simulated(f, (x, w), one, runs=False).total_cycles for one in (plan, without)]
    assert "for out_m" not in f.lower(without, x=x, w=w).source() and cycles[0] < ratio * cycles[1]


def test_a_step_by_hand_gets_a_tile_of_several_steps() -> None:
    f = jit(product)
    plan = f.plan(np.ones((512, 512), np.float32), np.ones((512, 512), np.float32), arch="ascend_910b").but(inner={"out": {"m": 128}})
    (rows,) = [entry.first for entry in plan.entries if entry.key == "tiles" and entry.axis == "0"]
    assert isinstance(rows, int) and rows > 128


def product(x: Any, w: Any) -> Any:
    return x @ w


def test_a_loop_in_order_is_none_to_share() -> None:
    """Blocks of `y` are made in any order; the state takes them in order."""
    f = blocks_in_order.using(target="interp")
    plan = f.plan(arch="ascend_910b").but(tiles={"y": {"t": 8}})
    assert "P.seq(t // 8)" in f.lower(plan).source()
    found, wanted = np.ones((8, 8), np.float32), np.ones((8, 8), np.float32)
    f(X, W[:, :8], found, plan=plan)
    f.python(X, W[:, :8], wanted)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    with pytest.raises(PtoError, match="J303"):
        plan.but(keep={"y": "task"})
