"""What a plan for the NPU says of tasks: kernels by first use, what they may count on, own bodies, and the text of it all."""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp import DType, In, InOut, Out, P, Scalar, Tensor, Tile, kernel, pto, workload
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.errors import CompileOptionError
from pto_wsp.ir.flow import leaves
from pto_wsp.ir.kernel import Role
from pto_wsp.npu.plan.plan_for_npu import plan_for_npu
from pto_wsp.npu.plan.text import print_npu_plan
from pto_wsp.ops.entry import Unit
from pto_wsp.passes.lower import lower
from tests.conftest import Golden
from tests.npu.split.numpy_plan import npu_plan

F32, I32 = DType.F32, DType.I32
TILE = Tile[16, 16, F32]


@kernel
def double(x: In[TILE], y: Out[TILE]) -> None:
    pto.store(y, x * 2)


@kernel
def dense(x: In[TILE], w: In[TILE], y: Out[TILE]) -> None:
    pto.store(y, pto.relu(x @ w))


def tensors(*names: str, shape: tuple[int, ...] = (64, 64)) -> tuple[Tensor, ...]:
    return tuple(Tensor(np.zeros(shape, np.float32), name=name) for name in names)


def test_kernels_are_numbered_by_first_use_and_shared() -> None:
    X, Y, W = tensors("X", "Y", "W")

    @workload
    def three() -> None:
        for i in P(2):
            double[i](x=X[i * 16:(i + 1) * 16, :16], y=Y[:16, :16])
        dense[0](x=X[:16, :16], w=W[:16, :16], y=Y[16:32, :16])
        double[7](x=Y[:16, 16:32], y=X[:16, :16])

    plan = npu_plan(three())
    assert [made.kernel.name for made in plan.kernels] == ["double", "dense_product", "dense_y"]
    assert [launch.kernel for launch in leaves(plan.body)] == [0, 1, 2, 0]


def test_another_way_to_lie_in_memory_is_another_kernel() -> None:
    X, Y = tensors("X", "Y")

    @workload
    def two() -> None:
        double[0](x=X[:16, :16], y=Y[:16, :16])
        double[1](x=X[:16, :16].T, y=Y[:16, :16])
        double[2](x=X[0:32:2, :16], y=Y[:16, :16])

    first, turned, apart = npu_plan(two()).kernels
    assert first.access[0].unit_cols and not first.access[0].unit_rows
    assert turned.access[0].unit_rows and not turned.access[0].unit_cols
    assert apart.access[0].row_step == 2
    assert first.kernel == turned.kernel == apart.kernel


def test_extents_that_every_task_shares_are_numbers_and_others_are_read() -> None:
    X, Y = tensors("X", "Y", shape=(40, 16))

    @workload
    def blocks() -> None:
        for i in P(3):
            double[i](x=X[i * 16:].clip(16, 16), y=Y[i * 16:].clip(16, 16))

    plan = npu_plan(blocks())
    (made,) = plan.kernels
    assert [(access.rows, access.cols) for access in made.access] == [(None, 16)] * 2
    assert made.access[0].row_group == made.access[1].row_group is not None
    checks = [check.subject for launch in leaves(plan.body) for check in launch.note.checks]
    assert checks.count("Y[i * 16:].clip(16, 16)") == 2      # as many columns as the tile, as many rows as X has there


def test_parameters_have_the_role_that_a_part_gives_them() -> None:
    @kernel
    def in_place(x: InOut[TILE], w: In[TILE], n: Scalar[I32], s: Scalar[F32]) -> None:
        with pto.when(n > 0):
            pto.store(x, pto.exp(x * s) @ w + x)

    X, W = tensors("X", "W", shape=(16, 16))

    @workload
    def one() -> None:
        in_place[0](x=X, w=W, n=3, s=0.5)

    plan = npu_plan(one())
    first, product, last = leaves(plan.body)
    assert [made.core for made in plan.kernels] == [Unit.VECTOR, Unit.CUBE, Unit.VECTOR]
    assert [argument.role for argument in product.arguments] == [Role.IN, Role.IN, Role.OUT]
    assert [len(launch.scalars) for launch in (first, product, last)] == [2, 1, 1]
    assert first.arguments[-1].role is Role.IN
    assert last.arguments[-1].role is Role.INOUT


def test_a_body_of_ones_own_is_given_everything() -> None:
    @kernel(cpp_src="// nothing")
    def own(x: In[TILE], unused: In[TILE], n: Scalar[I32], y: Out[TILE]) -> None:
        pto.store(y, pto.relu(x @ x))

    X, Y = tensors("X", "Y", shape=(16, 16))

    @workload
    def one() -> None:
        own[0](x=X, unused=X, n=1, y=Y)

    plan = npu_plan(one())
    (made,), (launch,) = plan.kernels, leaves(plan.body)
    assert made.core is Unit.CUBE
    assert (len(launch.arguments), len(launch.scalars)) == (3, 1)


def test_every_pass_of_every_kernel_is_told() -> None:
    X, Y, W = tensors("X", "Y", "W", shape=(16, 16))
    told: list[tuple[str, str]] = []

    @workload
    def one() -> None:
        dense[0](x=X, w=W, y=Y)

    plan_for_npu(lower(one().node), builtin_arch("ascend_910b"), lambda name, before, after: told.append((name, after.name)))
    assert told[0] == ("widen_part_writes", "dense")
    assert told[-2:] == [("split_kernel", "dense_product"), ("split_kernel", "dense_y")]


def test_an_arch_that_is_no_npu_is_refused() -> None:
    X, Y = tensors("X", "Y", shape=(16, 16))

    @workload
    def one() -> None:
        double[0](x=X, y=Y)

    with pytest.raises(CompileOptionError, match="is no NPU"):
        plan_for_npu(lower(one().node), builtin_arch("unit"))


def test_the_text_of_a_plan(golden: Golden) -> None:
    X, Y, W = tensors("X", "Y", "W", shape=(2, 40, 16))
    lens = Tensor(np.array([40, 17]), name="lens")

    @kernel
    def scores(x: In[TILE], keys: In[Tensor], first: Scalar[I32], y: Out[TILE]) -> None:
        most = pto.alloc((16, 1), F32, init=0)
        for start in pto.range(0, keys.shape[0], 16):
            key = pto.load(keys, (start, 0), shape=(16, 16), valid=((keys.shape[0] - start).min(16), None))
            most[:] = pto.maximum(most, pto.rowmax(pto.exp(x) @ key.T))
        pto.store(y, x * most + pto.cast(pto.constant(first, I32), F32))

    @workload
    def ragged() -> None:
        for b in P(2):
            for i in P(3):
                made = scores[b, i](x=X[b, i * 16:].clip(16, 16), keys=W[b, :lens[b]], first=i * 16, y=Y[b, i * 16:].clip(16, 16))
                double.at(b=b)(x=Y[b, ::2].clip(16, 16), y=X[b].reshape(20, 2, 16)[4:, 0].T, after=[made])

    golden(print_npu_plan(npu_plan(ragged())))
