"""Pieces that a product loads from a region: where nothing proves that they lie inside, they are moved back into it."""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp import DType, In, Out, Scalar, Symbol, Tensor, Tile, kernel, pto, workload
from tests.npu.harness import Target, build, run
from tests.npu.package import load_package

F32, I32 = DType.F32, DType.I32


@kernel
def project(x: In[Tensor], w: In[Tile[16, 16, F32]], at: Scalar[I32], y: Out[Tile[16, 16, F32]]):
    pto.store(y, pto.load(x, (at, 0), shape=(16, 16)) @ w)


@kernel
def steps_of_16(x: In[Tensor], w: In[Tile[16, 16, F32]], y: Out[Tile[16, 16, F32]]):
    total = pto.alloc((16, 16), F32, init=0)
    for at in pto.range(0, 40, 16):
        total += pto.load(x, (at, 0), shape=(16, 16)) @ w
    pto.store(y, total)


def tensors(rows: int) -> tuple[Tensor, Tensor, Tensor]:
    return (Tensor(np.zeros((rows, 16), np.float32), name="X"), Tensor(np.zeros((16, 16), np.float32), name="W"),
            Tensor(np.zeros((16, 16), np.float32), name="Y"))


@pytest.mark.slow
@pytest.mark.parametrize("at", [-3, 20, 24, 30])
def test_a_piece_that_reaches_outside_is_moved_back(at: int) -> None:
    X, W, Y = tensors(40)

    @workload
    def once():
        project[0](X, W, Symbol("at", I32), Y)

    program = once().compile(target="ascend_npu")
    assert any(check.startswith("not proved") and "load x[at, 0]" in check for check in program.checks)
    package = load_package(program.artifact_dir)
    given, scalars = package.inputs({"at": at})
    outcome = run(package, build(package, Target("a2a3", package.runtime)), given, scalars, [("program", 0)])[0]
    start = max(min(at, 24), 0)
    np.testing.assert_allclose(outcome.tensors["Y"], given["X"][start:start + 16] @ given["W"], rtol=1e-4, atol=1e-5)


def test_steps_that_end_with_the_region_are_proved() -> None:
    X, W, Y = tensors(64)

    @workload
    def once():
        steps_of_16[0](X[:48], W, Y)

    program = once().compile(target="ascend_npu")
    assert [check.split(":")[0] for check in program.checks if "load x[at, 0]" in check] == ["proved"]
