"""Tensors of which tasks write a part: what they leave must come back as it was given."""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload
from tests.npu.harness import check_package
from tests.npu.package import Direction, load_package

F32 = DType.F32


@kernel
def double(x: In[Tile[8, 16, F32]], y: Out[Tile[8, 16, F32]]):
    pto.store(y, x * 2)


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "part", "direction"), [
    ((16, 16), lambda y: y[::2], Direction.INOUT),          # a tensor's own dimensions, but only every other row
    ((8, 32), lambda y: y[:, ::2], Direction.INOUT),
    ((8, 32), lambda y: y[:, 16:], Direction.INOUT),
    ((8, 16), lambda y: y, Direction.OUT),
])
def test_what_no_task_writes_stays(shape, part, direction) -> None:
    X, Y = Tensor(np.zeros((2, 8, 16), np.float32), name="X"), Tensor(np.zeros((2, *shape), np.float32), name="Y")

    @workload
    def steps():
        for b in P(2):
            double[b](X[b], part(Y[b]))

    program = steps().compile(target="ascend_npu")
    assert load_package(program.artifact_dir).signature == (Direction.IN, direction)
    check_package(program.artifact_dir, "a2a3")
