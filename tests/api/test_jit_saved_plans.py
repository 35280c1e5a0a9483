"""A plan from a file is followed entry by entry; where the function has changed, the entry is named with the nearest name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, Injective, InOut, PtoError, Scalar, Tensor, TilePlan, jit, tt

F32, I32 = DType.F32, DType.I32


@jit
def rmsnorm_linear(x: Tensor["t", 64, F32], g: Tensor[64, F32], w: Tensor[64, 96, F32]):
    normed = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-6) * g
    return normed @ w


def renamed() -> Any:
    def rmsnorm_linear(x: Tensor["t", 64, F32], g: Tensor[64, F32], w: Tensor[64, 96, F32]):
        norm = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-6) * g
        return norm @ w

    return jit(rmsnorm_linear)


def saved(plan: TilePlan, path: Path, **changed: Any) -> TilePlan:
    """The plan from a file in which no entry is by hand, with other values for some keys."""
    data = json.loads(plan.save(path).read_text())
    for entry in data["entries"]:
        entry["by_hand"] = False
        entry["value"] = changed.get(entry["key"], entry["value"])
    path.write_text(json.dumps(data))
    return TilePlan.load(path)


def test_a_saved_plan_is_followed_where_the_compiler_would_choose_otherwise(tmp_path: Path) -> None:
    default = rmsnorm_linear.plan(arch="ascend_910b")
    apart = default.but(groups={"a": ("normed.mul", "normed.mean"), "b": ("normed.add", "normed.sqrt", "normed.div", "normed")},
                        tiles={"b": {"t": 8}}, keep={"normed": "whole"})
    followed = saved(apart, tmp_path / "plan.json")
    module = rmsnorm_linear.lower(followed).source()
    assert module == rmsnorm_linear.lower(apart).source() != rmsnorm_linear.lower(default).source()


def test_a_plan_with_a_kernel_for_each_part_of_a_result_is_followed(tmp_path: Path) -> None:
    @jit
    def rope(q: Tensor["t", 4, 16, F32], k: Tensor["t", 2, 16, F32], position: Tensor["t", I32], slots: Injective[Tensor["t", I32]],
             cache: InOut[Tensor["c", 2, 16, F32]], ntk: Scalar[F32]):
        base = np.log(10000.0 * np.power(tt.full((1, 8), 1.0) * ntk, 16 / 14))
        angle = tt.cast(position, F32)[:, None] * np.exp(base * (tt.cast(tt.arange(8), F32) * -0.125)[None])
        c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]

        def turned(x: Any) -> Any:
            a, b = np.split(x, 2, axis=-1)
            return np.concatenate([a * c - b * s, b * c + a * s], axis=-1)

        cache[slots] = turned(k)
        return turned(q)

    plan = rope.plan()
    loaded = TilePlan.load(plan.save(tmp_path / "plan.json"))
    assert rope.lower(loaded).source() == rope.lower(plan).source()


def test_an_entry_of_a_value_that_is_gone_is_named_with_the_nearest(tmp_path: Path) -> None:
    plan = saved(rmsnorm_linear.plan(arch="ascend_910b"), tmp_path / "plan.json")
    with pytest.raises(PtoError) as caught:
        renamed().lower(plan)
    assert caught.value.code == "J302" and "computes no `normed.mul`" in caught.value.message and "norm.mul" in str(caught.value.help)


def test_an_entry_that_a_file_adds_matches_something_or_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    data = json.loads(rmsnorm_linear.plan(arch="ascend_910b").save(path).read_text())
    data["entries"].append({"key": "tiles", "name": "outt", "axis": "t", "value": 8, "reason": "", "by_hand": False})
    path.write_text(json.dumps(data))
    with pytest.raises(PtoError, match="did you mean out") as caught:
        rmsnorm_linear.lower(TilePlan.load(path))
    assert caught.value.code == "J302"


def test_groups_that_no_kernel_can_compute_any_more_are_refused(tmp_path: Path) -> None:
    plan = saved(rmsnorm_linear.plan(arch="ascend_910b"), tmp_path / "plan.json", groups=["normed.mul", "out"])
    with pytest.raises(PtoError) as caught:
        rmsnorm_linear.lower(plan)
    assert caught.value.code in ("J302", "J303")
