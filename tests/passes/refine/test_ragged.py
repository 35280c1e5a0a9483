"""Of which outputs a task may keep fewer rows than their tile has."""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp import DType, In, InOut, Out, P, Tensor, Tile, kernel, pto, workload
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.ir.plan_text import print_plan
from pto_wsp.passes.context import Context
from pto_wsp.passes.lower import lower
from pto_wsp.passes.passes import PASSES
from pto_wsp.passes.pipeline import run_passes

BLOCK = Tile[16, 8, DType.F32]


@kernel
def double(x: In[BLOCK], y: Out[BLOCK], z: InOut[BLOCK]) -> None:
    pto.store(y, x * 2)
    pto.store(z, z + x)


@pytest.mark.parametrize("clipped, expected", [(True, ("y",)), (False, ())])
def test_an_output_that_a_task_clips_is_ragged(clipped: bool, expected: tuple[str, ...]) -> None:
    """One that is read is not: what a kernel reads of it may depend on all rows."""
    X, Y, Z = (Tensor(np.zeros((48, 8), np.float32), name=name) for name in "XYZ")

    @workload
    def blocks() -> None:
        for i in P(3):
            x, y, z = (t[i * 16:].clip(16, 8) if clipped else t[i * 16:(i + 1) * 16] for t in (X, Y, Z))
            double[i](x=x, y=y, z=z)

    w = blocks()
    plan = run_passes(lower(w.node), Context(w.schedule, builtin_arch("unit"), None), PASSES)
    assert [use.ragged for use in plan.kernels] == [expected]
    assert ("rows of y may be fewer" in print_plan(plan)) == clipped


@pytest.mark.sampled(2)
@pytest.mark.parametrize("rows", [48, 33, 5])
def test_rows_behind_a_clipped_output_stay(rows: int) -> None:
    x = np.arange(rows * 8, dtype=np.float32).reshape(rows, 8)
    y, z = np.full((rows + 9, 8), 7, np.float32), np.ones((rows, 8), np.float32)
    X, Y, Z = Tensor(x), Tensor(y[:rows]), Tensor(z)

    @workload
    def blocks() -> None:
        for i in P(-(-rows // 16)):
            double[i](x=X[i * 16:].clip(16, 8), y=Y[i * 16:].clip(16, 8), z=Z[i * 16:].clip(16, 8))

    blocks().compile().run()
    np.testing.assert_array_equal(y[:rows], 2 * x)
    np.testing.assert_array_equal(z, 1 + x)
    assert (y[rows:] == 7).all()
