"""The workloads of the examples, on small data, for tests that build them for the device."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from pto_wsp import Dense, DType, In, Out, P, Tensor, Tile, Workload, kernel, pto, workload

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
F32 = DType.F32


@cache
def example(name: str) -> ModuleType:
    """Return an example as a module."""
    spec = importlib.util.spec_from_file_location(f"npu_{name}", EXAMPLES / name / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Return normal numbers, the same each time."""
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def quick_start() -> Workload:
    """The program of the first page."""
    X, Y = Tensor(normal(1, 2, 16, 128), name="X"), Tensor(np.zeros((1, 2, 16, 128), np.float32), name="Y")

    @kernel
    def rmsnorm_tile(x: In[Tile[16, 128, F32]], out: Out[Tile[16, 128, F32]]):
        sq = pto.mul(x, x)
        mean_sq = pto.rowmean(sq)
        inv = pto.rsqrt(mean_sq)
        pto.store(out, pto.mul(x, inv))

    batch, tiles = Dense[1](), Dense[2]()

    @workload
    def attention():
        for b in P(batch):
            for t in P(tiles):
                rmsnorm_tile[b, t](x=X[b][t], out=Y[b][t])

    return attention()


def _softmax() -> Workload:
    x = normal(37, 200)
    made: Workload = example("softmax").softmax_workload(x, np.zeros_like(x))
    return made


def _wide_softmax() -> Workload:
    x = normal(3, 9000)
    made: Workload = example("softmax").softmax_workload(x, np.zeros_like(x))
    return made


def _layernorm() -> Workload:
    x = normal(37, 256)
    made: Workload = example("layernorm").layernorm_workload(x, normal(37, 256) + 1, normal(256), normal(256), np.zeros_like(x))
    return made


def _matmul(form: str, a_type: Any, c_type: Any) -> Workload:
    a, b = (normal(100, 300) * 4).astype(a_type), (normal(300, 150) * 4).astype(a_type)
    made: Workload = getattr(example("matmul"), form)(a, b, np.zeros((100, 150), c_type))
    return made


def _flash(causal: bool) -> Workload:
    q, k, v = (normal(2, 150, 64) + shift for shift in (0.0, 0.25, 0.5))
    made: Workload = example("flash_attention").attention_workload(*(a.astype(np.float32) for a in (q, k, v)), np.zeros_like(q, np.float32),
                                                                   causal)
    return made


def _ragged() -> Workload:
    module = example("ragged_attention")
    data = module.Batch.random([70, 1, 130], 2, np.random.default_rng(0))
    data.out[:] = 0
    made: Workload = module.attention_workload(data, 64)
    return made


WORKLOADS: Mapping[str, Callable[[], Workload]] = {
    "quick_start": quick_start,
    "softmax": _softmax,
    "wide_softmax": _wide_softmax,
    "layernorm": _layernorm,
    "matmul": lambda: _matmul("tiled", np.float32, np.float32),
    "matmul_split_k": lambda: _matmul("split_k", np.float32, np.float32),
    "matmul_i8": lambda: _matmul("tiled", np.int8, np.int32),
    "flash_attention": lambda: _flash(False),
    "flash_attention_causal": lambda: _flash(True),
    "ragged_attention": _ragged,
}
