"""A wrong pass on kernels is found, and named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import pto_wsp.targets.cpu_sim_build
from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload
from pto_wsp.errors import InternalError
from pto_wsp.ir import kernel as k
from pto_wsp.ir.scalar import Const
from pto_wsp.passes.kernel.context import KernelContext
from pto_wsp.passes.kernel.passes import KERNEL, KERNEL_PASSES
from pto_wsp.passes.pipeline import Pass
from pto_wsp.run.pass_check import check_kernel_passes

F32 = DType.F32


@kernel
def shifted(x: In[Tensor], y: Out[Tile[4, 8, F32]]):
    pto.store(y, pto.exp(pto.load(x, (2, 0), shape=(4, 8))) - 1)


def turn_signs(node: k.Kernel, context: KernelContext) -> k.Kernel:
    """Wrong: x - 1 becomes x + 1."""
    return replace(node, body=tuple(replace(s, op="add") if isinstance(s, k.Compute) and s.op == "sub" else s for s in node.body))


def shift_loads(node: k.Kernel, context: KernelContext) -> k.Kernel:
    """Wrong: a piece that starts one row later."""
    return replace(node, body=tuple(replace(s, row=Const(3)) if isinstance(s, k.Load) else s for s in node.body))


def drop_guard(node: k.Kernel, context: KernelContext) -> k.Kernel:
    """Wrong: another guard's number."""
    return replace(node, body=tuple(replace(s, guard=7) if isinstance(s, k.Load) else s for s in node.body))


@pytest.mark.parametrize("wrong", [turn_signs, shift_loads])
def test_a_wrong_pass_is_named_with_the_kernel_before_and_after(wrong: object) -> None:
    node = shifted.specialise(x=F32)
    passes = (*KERNEL_PASSES[:2], Pass("wrong_one", KERNEL, wrong), *KERNEL_PASSES[2:])   # type: ignore[arg-type]
    with pytest.raises(InternalError) as caught:
        check_kernel_passes(node, KernelContext(frozenset()), passes)
    text = str(caught.value)
    assert "pass `wrong_one` changed what kernel `shifted` computes: `y` differs in 32 of 32 elements" in text
    assert "before wrong_one:\nkernel shifted(" in text and "after wrong_one:\nkernel shifted(" in text


def test_the_guard_that_ends_a_run_is_compared() -> None:
    @kernel
    def outside(x: In[Tensor], y: Out[Tile[4, 8, F32]]):
        pto.store(y, pto.load(x, (100_000, 0), shape=(4, 8)))

    with pytest.raises(InternalError, match="it ends at guard 0 before and ends at guard 7 after"):
        check_kernel_passes(outside.specialise(x=F32), KernelContext(frozenset()), (*KERNEL_PASSES, Pass("drop", KERNEL, drop_guard)))


def test_what_a_pass_should_establish_and_does_not_is_named() -> None:
    def forget(node: k.Kernel, context: KernelContext) -> k.Kernel:
        return node

    forgetful = Pass("number_guards", KERNEL, forget, KERNEL_PASSES[0].verify_after)
    with pytest.raises(InternalError, match="after pass `number_guards` this does not hold for kernel `shifted`: Guards are numbered"):
        check_kernel_passes(shifted.specialise(x=F32), KernelContext(frozenset()), (forgetful,))


def test_the_passes_of_the_package_are_right() -> None:
    check_kernel_passes(shifted.specialise(x=F32), KernelContext(frozenset()), KERNEL_PASSES)


def test_a_nan_of_fp8_is_the_same_before_and_after() -> None:
    @kernel
    def halved(x: In[Tensor], y: Out[Tile[4, 8, DType.FP8E4M3]]):
        pto.store(y, pto.cast(pto.log(pto.load(x, (0, 0), shape=(4, 8))), DType.FP8E4M3))

    check_kernel_passes(halved.specialise(x=F32), KernelContext(frozenset()), KERNEL_PASSES)


def test_compile_checks_the_passes_where_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = Tensor(np.zeros((8, 8), np.float32)), Tensor(np.zeros((4, 8), np.float32))

    @workload
    def once():
        for i in P(1):
            shifted[i](x=x, y=y)

    once().compile(verify_passes=True).run()
    monkeypatch.setattr(pto_wsp.targets.cpu_sim_build, "KERNEL_PASSES", (Pass("turn_signs", KERNEL, turn_signs), *KERNEL_PASSES))
    with pytest.raises(InternalError, match="pass `turn_signs`"):
        once().compile(verify_passes=True)
