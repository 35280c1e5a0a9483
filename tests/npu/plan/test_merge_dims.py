"""Tensors of six dimensions and more on a device of five."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pto_wsp import DType, In, Out, P, Tensor, Tile, Workload, kernel, pto, workload
from pto_wsp.errors import DeviceLimitError
from pto_wsp.ir.tensor import TensorView
from pto_wsp.npu.plan.arguments import merge_dims
from pto_wsp.passes.lower import lower
from tests.npu.split.numpy_plan import npu_plan, run_npu_plan

F32 = DType.F32
SHAPE = (2, 3, 2, 2, 8, 16)


@kernel
def double(x: In[Tile[8, 16, F32]], y: Out[Tile[8, 16, F32]]) -> None:
    pto.store(y, x * 2)


def doubling(X: Tensor, Y: Tensor, take: Callable[..., TensorView]) -> Workload:
    @workload
    def every() -> None:
        for a, b, c, d in P(*SHAPE[:4]):
            double[a, b, c, d](x=take(X, a, b, c, d), y=Y[a, b, c, d])

    return every()


@pytest.mark.parametrize("take", [
    lambda t, a, b, c, d: t[a, b, c, d],
    lambda t, a, b, c, d: t[a][:, c][b, d],
    lambda t, a, b, c, d: t[:, :, c, d, 0:8][a, b],
    lambda t, a, b, c, d: t[a, b].reshape(4, 16, 8)[c * 2 + d].reshape(8, 16),
])
def test_leading_dimensions_become_one(take: Callable[..., TensorView]) -> None:
    x = np.arange(np.prod(SHAPE), dtype=np.float32).reshape(SHAPE)
    y = np.zeros((12, *SHAPE[2:]), np.float32)[:6]
    X, Y = Tensor(x, name="X"), Tensor(np.zeros(SHAPE, np.float32), name="Y")
    plan = npu_plan(doubling(X, Y, take))
    assert [slot.ref.shape for slot in plan.tensors] == [(6, 2, 2, 8, 16)] * 2
    run_npu_plan(plan, {"X": x.reshape(6, 2, 2, 8, 16), "Y": y})
    np.testing.assert_array_equal(y.reshape(SHAPE), 2 * x)


def test_seven_dimensions_lose_two() -> None:
    X = Tensor(np.zeros((2, *SHAPE), np.float32), name="X")

    @workload
    def one() -> None:
        double[0](x=X[1, 1, 2, 0, 1], y=X[0, 1, 2, 0, 1])

    plan = merge_dims(lower(one().node))
    assert [slot.ref.shape for slot in plan.tensors] == [(12, 2, 2, 8, 16)]


def test_plans_of_five_dimensions_stay_as_they_are() -> None:
    X = Tensor(np.zeros(SHAPE[1:], np.float32), name="X")

    @workload
    def one() -> None:
        double[0](x=X[1, 1, 0], y=X[0, 1, 0])

    plan = lower(one().node)
    assert merge_dims(plan) is plan


@pytest.mark.parametrize("take", [lambda t: t[:, 0, 0, 0, 0], lambda t: t.reshape(96, 8, 16)[0], lambda t: t[0].T[:, :, 0, 0, 0].T])
def test_more_than_one_position_of_a_dimension_that_goes_is_refused(take: Callable[[Tensor], TensorView]) -> None:
    X = Tensor(np.zeros((8, *SHAPE[1:]), np.float32), name="X")

    @workload
    def one() -> None:
        double[0](x=take(X), y=X[0, 0, 0, 1])

    with pytest.raises(DeviceLimitError, match="too many dimensions"):
        merge_dims(lower(one().node))
