"""Which way a tensor goes: what tasks leave unwritten must be copied to the device first, or it comes back as garbage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, In, Out, P, Tensor, Tile, ceildiv, kernel, pto, workload
from pto_wsp.ir.kernel import Role
from pto_wsp.npu.plan.arguments import tensor_directions
from tests.npu.submits import npu_plan

F32 = DType.F32


@kernel
def double(x: In[Tile[4, 8, F32]], y: Out[Tile[4, 8, F32]]) -> None:
    pto.store(y, x * 2)


def direction(shape: tuple[int, ...], view: Callable[[Tensor], Any], rows: int) -> Role:
    """Return the direction of a tensor of which tasks write a view, [rows, 8], in blocks of four rows."""
    X, Y = Tensor(np.zeros((rows, 8), np.float32), name="X"), Tensor(np.zeros(shape, np.float32), name="Y")

    @workload
    def case() -> None:
        for i in P(ceildiv(rows, 4)):
            double[i](X[i * 4:].clip(4, 8), view(Y)[i * 4:].clip(4, 8))

    return dict(zip("XY", tensor_directions(npu_plan(case())), strict=True))["Y"]


@pytest.mark.parametrize(("shape", "view"), [((10, 8), lambda y: y), ((8, 10), lambda y: y.T)], ids=["whole", "turned"])
def test_what_is_written_whole_only_goes_out(shape: tuple[int, ...], view: Callable[[Tensor], Any]) -> None:
    assert direction(shape, view, 10) is Role.OUT


@pytest.mark.parametrize(("shape", "view"), [
    ((20, 8), lambda y: y[::2]), ((10, 16), lambda y: y[:, ::2]), ((11, 8), lambda y: y[:10]), ((10, 9), lambda y: y[:, 1:]),
    ((10, 2, 8), lambda y: y[:, 0])], ids=["every other row", "every other column", "rows", "columns", "a plane"])
def test_what_is_written_in_part_goes_in_as_well(shape: tuple[int, ...], view: Callable[[Tensor], Any]) -> None:
    assert direction(shape, view, 10) is Role.INOUT
