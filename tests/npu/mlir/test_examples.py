"""`.pto` files of every kernel of every example: right, or refused for a reason that is known here."""

from __future__ import annotations

import pytest

from pto_wsp.arch.instances import builtin_arch
from pto_wsp.codegen.npu.mlir.emit import emit_pto
from pto_wsp.errors import DialectError
from pto_wsp.plan.npu.select.select import select
from tests.codegen.npu.golden.test_examples import CASES
from tests.npu.mlir.meaning import check_pto
from tests.plan.npu.split.numpy_plan import npu_plan

# iota doubles a row from its own parts; .pto has no form for parts of a buffer.
IN_PARTS = {"attention": {"attend_weight"}, "causal attention": {"attend_weight"}, "ragged attention": {"attend_weight"}}


@pytest.mark.parametrize("name", CASES)
def test_every_kernel_of_an_example(name: str) -> None:
    arch = builtin_arch("ascend_910b")
    refused: set[str] = set()
    for use in npu_plan(CASES[name]()).kernels:
        try:
            text = emit_pto(select(use, arch), arch)
        except DialectError as error:
            assert "it sees a part of" in error.message
            refused.add(use.kernel.name)
            continue
        assert check_pto(text).kind == use.core.value
    assert refused == IN_PARTS.get(name, set())
