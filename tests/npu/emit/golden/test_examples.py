"""golden.py of every example computes what interp computes; each example is there in a small size."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pto_wsp import Workload
from tests.npu.emit.golden.exec_golden import computed, execute, interpreted, plan_of, text_of
from tests.tolerances import Array

EXAMPLES = Path(__file__).resolve().parents[4] / "examples"


def example(name: str) -> dict[str, Any]:
    """Return the names of an example's file."""
    return runpy.run_path(str(EXAMPLES / name / f"{name}.py"))


def normal(*shape: int) -> Array:
    """Return normal numbers in f32."""
    return np.random.default_rng(len(shape)).standard_normal(shape, dtype=np.float32)


def like(array: Array) -> Array:
    """Return zeros in the shape of an array."""
    return np.zeros_like(array)


def softmax(rows: int, cols: int) -> Workload:
    """Rows that fit, or rows in blocks where they are long; the last task has fewer."""
    x = normal(rows, cols)
    found: Workload = example("softmax")["softmax_workload"](x, like(x))
    return found


def layernorm() -> Workload:
    """Two kernels a task, the first in place."""
    x, weight = normal(40, 64), normal(64)
    found: Workload = example("layernorm")["layernorm_workload"](x, normal(40, 64), weight, weight * 2, like(x))
    return found


def flash_attention(causal: bool) -> Workload:
    """Two heads, the last block of queries short."""
    q = normal(2, 70, example("flash_attention")["HEAD_DIM"])
    found: Workload = example("flash_attention")["attention_workload"](q, q[:, ::-1].copy(), q * 2, like(q), causal)
    return found


def matmul(make: str, dtype: Any, result: Any) -> Workload:
    """A product with short blocks at both ends."""
    a, b = (normal(70, 150) * 4).astype(dtype), (normal(150, 90) * 4).astype(dtype)
    found: Workload = example("matmul")[make](a, b, np.zeros((70, 90), result))
    return found


def ragged_attention() -> Workload:
    """Requests of several lengths, which steer."""
    module = example("ragged_attention")
    batch = module["Batch"].random([5, 33, 1, 20], 2, np.random.default_rng(0))
    batch.out[...] = 0
    found: Workload = module["attention_workload"](batch, 16)
    return found


def mixture(make: str) -> Workload:
    """Tokens and their experts: chosen by the host, or by tasks."""
    module = example("moe")
    layer = module["Layer"].random(16, 4, 32, 32, np.random.default_rng(0))
    found: Workload = module[make](layer, np.zeros((16, 32), np.float32))
    return found


def paged_attention() -> Workload:
    """Requests that share pages."""
    module, rng = example("paged_attention"), np.random.default_rng(0)
    requests = module["Requests"].of([[1, 2], [1], [1, 2, 3]], 16, rng)
    found: Workload = module["decode_workload"](requests, module["Step"].random(requests, 2, 16, rng))
    return found


def schedule_search() -> Workload:
    """Three experts, of which the first has most of the tokens."""
    module = example("schedule_search")
    found: Workload = module["feed_forward"](module["Experts"](3, 200, np.random.default_rng(0)))
    return found


def pipelined_mlp() -> Workload:
    """Three stages, the second twice."""
    module = example("pipelined_mlp")
    found: Workload = module["pipelined"](module["Block"]([40, 5], np.random.default_rng(0)), 2, 2)
    return found


CASES = {
    "softmax": lambda: softmax(20, 64), "softmax in blocks": lambda: softmax(20, 2100), "layernorm": layernorm,
    "attention": lambda: flash_attention(False), "causal attention": lambda: flash_attention(True),
    "f32 product": lambda: matmul("tiled", np.float32, np.float32), "bf16 product": lambda: matmul("tiled", ml_dtypes.bfloat16, np.float32),
    "i8 product": lambda: matmul("tiled", np.int8, np.int32), "product in parts": lambda: matmul("split_k", np.float32, np.float32),
    "ragged attention": ragged_attention, "mixture routed by the host": lambda: mixture("routed_by_host"),
    "mixture routed by tasks": lambda: mixture("routed_by_tasks"), "paged attention": paged_attention, "pipelined mlp": pipelined_mlp,
    "experts of different loads": schedule_search,
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [name for name in CASES if name != "paged attention"])    # which makes tensors that nobody binds
def test_example_is_computed_as_interp_does(name: str) -> None:
    """Within what golden.py itself allows."""
    w = CASES[name]()
    text = text_of(w)
    module = execute(text)
    for slot, found, expected in zip(plan_of(w).tensors, computed(w, text), interpreted(w), strict=True):
        with np.errstate(invalid="ignore"):   # what an intermediate holds that nobody wrote may be a NaN that signals
            np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), rtol=module["RTOL"], atol=module["ATOL"],
                                       err_msg=slot.ref.shown)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
def test_inputs_of_an_example_give_finite_outputs(name: str) -> None:
    """Drivers compare with np.allclose, to which NaN equals nothing."""
    module = execute(text_of(CASES[name]()))
    tensors = dict(module["generate_inputs"]())
    module["compute_golden"](tensors)
    for output in module["__outputs__"]:
        assert np.isfinite(tensors[output].astype(np.float64)).all(), output
        assert tensors[output].any(), output


def test_every_example_is_here() -> None:
    # tests/examples runs the packages of recipes and of functions on tensors; packages for a mesh are refused
    names = {name for path in EXAMPLES.glob("*/*.py") if not (name := path.parent.name).startswith("mesh_")} - {"recipes", "tensors"}
    assert names == {"softmax", "layernorm", "flash_attention", "matmul", "ragged_attention", "moe", "paged_attention", "pipelined_mlp",
                     "schedule_search"}
