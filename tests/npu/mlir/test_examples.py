"""`.pto` files of every kernel of every example."""

from __future__ import annotations

import pytest

from pto_wsp.arch.instances import builtin_arch
from pto_wsp.codegen.npu.mlir.emit import emit_pto
from pto_wsp.plan.npu.select.select import select
from tests.codegen.npu.golden.test_examples import CASES
from tests.npu.mlir.meaning import check_pto
from tests.plan.npu.split.numpy_plan import npu_plan


@pytest.mark.parametrize("name", CASES)
def test_every_kernel_of_an_example(name: str) -> None:
    arch = builtin_arch("ascend_910b")
    for use in npu_plan(CASES[name]()).kernels:
        assert check_pto(emit_pto(select(use, arch), arch)).kind == use.core.value
