"""Halves and fp8 in whole programs: what rounds when, by hand, on both targets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pto_wsp import DType, In, Kernel, Out, Scalar, Tensor, Tile, kernel, pto, workload
from pto_wsp.errors import PtoError

TARGETS = ("cpu_sim", "interp")
F16, BF16, F32 = DType.F16, DType.BF16, DType.F32


def run(made: Kernel, target: str, portable: bool = False, **args: Any) -> None:
    """Run a kernel as the one task of a program."""
    views: Mapping[str, Any] = {name: Tensor(value, name=name) if isinstance(value, np.ndarray) else value for name, value in args.items()}

    @workload
    def once() -> None:
        made[0](**views)

    once().compile(target=target, portable=portable).run()


@kernel
def constants(x: In[Tile[1, 64, BF16]], y: Out[Tile[1, 64, BF16]]) -> None:
    pto.store(y, x * 0.1)


@pytest.mark.parametrize("target", TARGETS)
def test_a_number_is_rounded_to_the_half_first(target: str) -> None:
    x, y = np.full((1, 64), 3, BF16.np), np.zeros((1, 64), BF16.np)
    run(constants, target, x=x, y=y)
    tenth = float(ml_dtypes.bfloat16(0.1))           # 0.10009765625
    assert tenth != 0.1 and (y == ml_dtypes.bfloat16(3 * tenth)).all()


@kernel
def sums(x: In[Tile[2, 4096, F16]], total: Out[Tile[2, 1, F16]], down: Out[Tile[1, 4096, F16]]) -> None:
    pto.store(total, pto.rowsum(x))
    pto.store(down, pto.colmean(x))


@pytest.mark.parametrize("target", TARGETS)
def test_reductions_of_halves_add_up_in_f32(target: str) -> None:
    x = np.ones((2, 4096), np.float16)
    x[1, :3] = [2048, 1, 0.5]     # in f16, 2048 + 1 is 2048
    total, down = np.zeros((2, 1), np.float16), np.zeros((1, 4096), np.float16)
    run(sums, target, x=x, total=total, down=down)
    assert total.ravel().tolist() == [4096.0, 6144.0]     # 6142.5, rounded once
    assert down[0, :4].tolist() == [1024.0, 1.0, 0.75, 1.0]     # 1024.5 lies between 1024 and 1025


@kernel
def scaled(x: In[Tile[1, 4, F32]], a: Scalar[F16], b: Scalar[BF16], y: Out[Tile[1, 4, F32]]) -> None:
    pto.store(y, x * a + b)


@pytest.mark.parametrize("target", TARGETS)
def test_scalars_of_halves_are_rounded_and_read_from_tensors(target: str) -> None:
    x, y = np.ones((1, 4), np.float32), np.zeros((1, 4), np.float32)
    table = Tensor(np.array([7.5, 0.1], BF16.np), name="table")
    run(scaled, target, x=x, a=0.1, b=table[1], y=y)
    assert (y == np.float32(np.float16(0.1)) + np.float32(ml_dtypes.bfloat16(0.1))).all()


@kernel
def stored(x: In[Tile[8, 40, F32]], small: Out[Tile[8, 40, DType.FP8E4M3]], back: Out[Tile[40, 8, F32]], q: Out[Tile[8, 40, DType.I8]],
           again: Out[Tile[8, 40, BF16]]) -> None:
    kept = pto.alloc((8, 40), DType.FP8E4M3, init=0.3)
    kept[:] = pto.where(x > 0, pto.cast(x, DType.FP8E4M3, saturate=True), kept)
    pto.store(small, kept)
    pto.store(back, pto.cast(kept, F32).T)
    scale = pto.rowmax(pto.abs(x)) / 127
    whole = pto.quantize(x, scale)
    pto.store(q, whole)
    pto.store(again, pto.dequantize(whole, scale, dtype=BF16))


@pytest.mark.slow
@pytest.mark.parametrize("portable", [False, True], ids=["native", "portable"])
def test_fp8_and_quantised_tiles(portable: bool) -> None:
    x = (np.random.default_rng(0).standard_normal((8, 40)) * 100).astype(np.float32)
    out = {"small": np.zeros((8, 40), DType.FP8E4M3.np), "back": np.zeros((40, 8), np.float32), "q": np.zeros((8, 40), np.int8),
           "again": np.zeros((8, 40), BF16.np)}
    run(stored, "cpu_sim", portable, x=x, **out)
    kept = np.where(x > 0, np.minimum(x, 448), np.float32(0.3)).astype(DType.FP8E4M3.np)
    assert (out["small"].view(np.uint8) == kept.view(np.uint8)).all()
    assert (out["back"] == kept.astype(np.float32).T).all()
    scale = np.abs(x).max(axis=1, keepdims=True) / np.float32(127)
    q = np.rint(x / scale).astype(np.int8)
    assert (out["q"] == q).all()
    assert (out["again"] == (q.astype(np.float32) * scale).astype(BF16.np)).all()


def test_a_scalar_is_computed_with() -> None:
    with pytest.raises(PtoError, match="Scalar takes no fp8e5m2"):
        Scalar[DType.FP8E5M2]
