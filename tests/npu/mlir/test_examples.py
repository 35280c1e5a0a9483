"""`.pto` files of every kernel of every example."""

from __future__ import annotations

import pytest

from pto_wsp import PtoError
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.npu.emit.mlir import emit_pto
from pto_wsp.npu.select.select import select
from tests.npu.emit.golden.test_examples import CASES
from tests.npu.mlir.meaning import check_pto
from tests.npu.split.numpy_plan import npu_plan

REFUSED = "mixture routed by tasks"      # columns of its topk are parts of a tile


@pytest.mark.parametrize("name", [name for name in CASES if name != REFUSED])
@pytest.mark.sampled(3)
def test_every_kernel_of_an_example(name: str) -> None:
    arch = builtin_arch("ascend_910b")
    for use in npu_plan(CASES[name]()).kernels:
        assert check_pto(emit_pto(select(use, arch), arch)).kind == use.core.value


def test_a_kernel_that_the_text_has_no_form_for_is_refused() -> None:
    with pytest.raises(PtoError, match=r"(?s)N105.*sees a part of tile"):
        CASES[REFUSED]().compile(target="pto")
