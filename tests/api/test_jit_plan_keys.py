"""Each key of a plan, set once by hand, changes the emitted workload, its values or its moves, and not what the function gives."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, Mesh, Tensor, TensorLayout, Tunable, allreduce, jit, tt
from pto_wsp.errors import PlanConflictError, PlanNameError
from pto_wsp.schedule.tiling_entries import KEYS

F32 = DType.F32
RNG = np.random.default_rng(7)


def whole(*shape: int) -> np.ndarray:
    return RNG.integers(-4, 5, shape).astype(np.float32)


@jit
def linear(x: Tensor["t", 48, F32], w: Tensor[48, 40, F32]):
    normed = x / np.sum(x * x + 1, axis=-1, keepdims=True)
    return normed @ w


@jit
def walked(x: Tensor["t", 32, F32], block: int = Tunable(8, 16)):
    total = tt.zeros((1, 32))
    for j in tt.loop(0, x.shape[0], block):
        total += np.sum(x[j:j + block], axis=0, keepdims=True)
    return total * 2


@jit
def doubled(x: Tensor["t", 4, 32, F32]):
    return x * 2


@jit
def attend(q: Tensor["t", 16, F32], k: Tensor["n", 16, F32], v: Tensor["n", 16, F32]):
    score = q @ k.T * 0.25
    weight = np.exp(score - np.max(score, axis=-1, keepdims=True))
    return weight / np.sum(weight, axis=-1, keepdims=True) @ v


@jit
def summed(x, w):
    total = allreduce(x @ w)
    return total * 2


Entries = Mapping[str, Any]
APART: Entries = {"groups": {"normed": ("normed.mul", "normed.add", "normed.sum", "normed"), "out": ("out",)}, "keep": {"normed": "whole"}}
HAND: Mapping[str, tuple[Callable[..., Any], Entries, Entries]] = {
    "groups": (linear, {}, {"groups": {"normed": ("normed.mul", "normed.add", "normed.sum", "normed"), "out": ("out",)}}),
    "tiles": (linear, {}, {"tiles": {"out": {"t": 5}}}),
    "inner": (linear, APART, {"inner": {"out": {"k": 16}}}),
    "batch": (linear, {**APART, "tiles": {"normed": {"t": 4}}}, {"batch": {"normed": 3}}),
    "tails": (linear, {"tiles": {"t": 16}}, {"tails": {"t": (16, 4, 1)}}),
    "split": (linear, APART, {"split": {"out": 3}}),
    "loops": (walked, {}, {"loops": {"j": "tasks"}}),
    "order": (linear, {**APART, "tiles": {"out": {"t": 8, 1: 8}}}, {"order": {"out": (1, "t")}}),
    "keep": (linear, APART, {"keep": {"normed": "again"}}),
    "flat": (doubled, {"tiles": {"out": {"t": 1}}}, {"flat": {"out": (1,)}}),
    "allow": (attend, {}, {"allow": ("online_softmax",)}),
    "tunables": (walked, {}, {"tunables": {"block": 16}}),
    "collectives": (summed, {"collectives": {"total": "ring"}}, {"collectives": {"total": "tree"}}),
}
ARRAYS: Mapping[Any, tuple[Any, ...]] = {
    linear: (whole(37, 48), whole(48, 40)), walked: (whole(37, 32),), doubled: (whole(9, 4, 32),),
    attend: (whole(9, 16), whole(21, 16), whole(21, 16)),
    summed: (Tensor(whole(8, 16), layout=TensorLayout.sharded(1, 2, "x")), Tensor(whole(16, 24), layout=TensorLayout.sharded(0, 2, "x"))),
}


def test_every_key_is_here() -> None:
    assert set(HAND) == set(KEYS)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("key", HAND)
def test_an_entry_changes_the_emitted_workload_and_no_meaning(key: str) -> None:
    function, beside, entry = HAND[key]
    arrays = ARRAYS[function]
    f = function.using(target="interp", **({"mesh": Mesh(x=4)} if key == "collectives" else {}))
    before = f.plan(*arrays).but(**beside) if beside else f.plan(*arrays)
    after = before.but(**entry)
    given = dict(zip("xw", arrays, strict=True)) if key == "collectives" else {}
    assert f.lower(after, **given).source() != f.lower(before, **given).source()
    found, usual = np.asarray(f(*arrays, plan=after)), np.asarray(f(*arrays, plan=before))
    np.testing.assert_allclose(found, usual, rtol=1e-4, atol=1e-4)
    assert math.isfinite(float(np.sum(found)))


@pytest.mark.parametrize(("tiles", "axes"), [({"t": 2, 1: 2}, (1,)), ({"t": 2}, (2,)), ({}, (2,))])
def test_rows_that_nothing_asks_for_are_refused(tiles: Entries, axes: tuple[int, ...]) -> None:
    plan = doubled.plan()
    with pytest.raises(PlanNameError, match=r"flat\['out'\] = .* changes nothing"):
        plan.but(tiles={"out": tiles}, flat={"out": axes})
    assert plan.but(flat={"out": (1,)}).said("flat", "out") is not None


def test_rewrites_are_taken_back() -> None:
    plan = attend.plan()
    assert plan.but(allow=("online_softmax",)).but(allow=()) == plan


@jit(target="interp")
def two_layers(x: Tensor["t", 64, F32], w: Tensor[64, 64, F32]):
    for _ in range(2):
        size = np.sqrt(np.mean(x * x, axis=-1, keepdims=True))
        x = x / size @ w
    return np.exp(x - 1)


def test_a_group_by_hand_is_one_kernel_or_refused() -> None:
    plan = two_layers.plan(arch="ascend_910b")
    with pytest.raises(PlanConflictError) as divided:      # the products stand between them
        plan.but(groups={"ends": ("size.mul", "out")})
    assert divided.value.message == "the group `ends` cannot compute `out` as well"
    each_layer = plan.but(groups={"sizes": ("size", "x.div")})      # names of values in both layers: a kernel for each layer
    assert {"sizes", "sizes_2"} <= set(each_layer.group_names)


def test_a_plan_for_a_machine_without_speeds_runs_here() -> None:
    x, w = np.full((3, 64), 2, np.float32), np.eye(64, dtype=np.float32)
    assert (two_layers(x, w, plan=two_layers.plan(arch="ascend_950")) == 1).all()
    assert two_layers.compiled[-1].arch == "ascend_950"


def test_an_extent_without_its_axis_is_told_where_the_axis_goes() -> None:
    with pytest.raises(PlanNameError) as caught:
        two_layers.plan(arch="ascend_910b").but(tiles={"out": 16})
    assert caught.value.help == 'say which axis of the value: tiles={"out": {"t": 16}}'


@jit
def normed_product(x: Tensor["t", 512, F32], g: Tensor[512, F32], w: Tensor[512, 384, F32]):
    normed = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True)) * g
    return normed @ w


@jit
def doubled_sum(x: Tensor["t", 8, F32]):
    return np.sum(x * 2, axis=0)


@pytest.mark.parametrize(("function", "entries"), [
    (normed_product, {"inner": {"out": {"stay": "left"}}}), (normed_product, {"inner": {"out": {"m": 16, "stay": "right"}}}),
    (normed_product, {"keep": {"out": "task"}}), (normed_product, {"order": {"normed": (1, "t")}}),
    (normed_product, {"flat": {"normed": (1,)}}), (doubled_sum, {"keep": {"out.mul": "again"}}),
    (doubled_sum, {"tiles": {"t": 16}}), (doubled_sum, {"tiles": {"out.mul": {"t": 16}}})], ids=str)
def test_an_entry_that_passes_look_at_and_nothing_follows_is_refused(function: Any, entries: dict[str, Any]) -> None:
    with pytest.raises(PlanNameError, match="changes nothing"):
        function.plan(arch="ascend_910b").but(**entries)


def test_a_value_is_computed_again_under_the_names_of_its_whole_kernel() -> None:
    plan = normed_product.plan(arch="ascend_910b")
    for again in ({"normed": "again"}, {"normed.mean": "again"}, {"normed": "again", "normed.mean": "again"}):
        assert plan.but(keep=again).group_names == ("out",)


@pytest.mark.slow
def test_the_order_of_loops_goes_before_a_shared_loop() -> None:
    plan = normed_product.plan(arch="ascend_910b")
    assert [entry.value for entry in plan.entries if entry.key == "keep"] == ["task"]
    mine = plan.but(order={"out": (1, "t")})
    assert [entry.value for entry in mine.entries if entry.key == "keep"] == ["whole"]
    source = normed_product.lower(mine).source()
    assert source.index("for out_1 in P(") < source.rindex("for t_i in P(")
    with pytest.raises(PlanConflictError, match="cannot lie in scratch"):
        plan.but(order={"out": (1, "t")}, keep={"normed": "task"})
    x, g, w = (np.random.default_rng(0).random(shape, np.float32) for shape in ((77, 512), (512,), (512, 384)))
    found = normed_product.using(target="interp")(x, g, w, plan=mine)
    np.testing.assert_allclose(found, normed_product.reference(x, g, w), rtol=1e-5)


@jit
def product_of_letters(x: Tensor["n", 48, F32], w: Tensor[48, "m", F32]):
    return x @ w


@pytest.mark.filterwarnings("ignore:`out` is undefined here")
@pytest.mark.parametrize(("inner", "nesting"), [
    ({"n": 16, "m": 32}, ["out_m", "out_n"]), ({0: 16, 1: 32}, ["out_m", "out_n"]),
    ({"n": 16, "m": 32, "stay": "right"}, ["out_n", "out_m"])], ids=str)
def test_steps_are_set_by_axes_where_symbols_are_called_as_letters(inner: dict[Any, Any], nesting: list[str]) -> None:
    plan = product_of_letters.plan(arch="ascend_910b").but(tiles={"out": {0: 64, 1: 64}}, inner={"out": inner})
    source = product_of_letters.lower(plan).source()
    kernel = source[source.index("def out("):source.index("@workload")]
    assert [line.split()[1] for line in kernel.splitlines() if line.strip().startswith("for out_m") or "for out_n" in line] == nesting
    assert "(out_m * 16, out_n * 32)" in kernel
    x, w = np.ones((70, 48), np.float32), np.ones((48, 40), np.float32)
    np.testing.assert_array_equal(product_of_letters.using(target="interp")(x, w, plan=plan), x @ w)
