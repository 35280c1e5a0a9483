"""What the docs say of ops on vector cores is what selection does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, PtoError, pto
from pto_wsp.npu.isa.tile_program import Instr, steps
from pto_wsp.npu.select.select import NATIVE, npu_form
from pto_wsp.ops.table import TABLE
from tests.npu.select.kernels import selected
from tests.npu.select.numbers import kernel_of

F32 = DType.F32


def test_every_op_is_run_or_refused_as_the_table_says() -> None:
    assert {name for name in TABLE if not npu_form(name)} == set()


@pytest.mark.parametrize("op", sorted(set(NATIVE) - {"expand"}))
def test_a_native_op_is_one_instruction_on_f32(op: str) -> None:
    count = len(TABLE[op].signature.parameters)
    out = (16, 1) if op.startswith("row") else (1, 16) if op.startswith("col") else (16, 16)
    program = selected(kernel_of(getattr(pto, op), (np.ones((16, 16), np.float32),) * count, (*out, F32)))
    assert [step.name for step in steps(program.body) if isinstance(step, Instr)] == [NATIVE[op]]


@pytest.mark.parametrize(("op", "dtype"), [(pto.exp, DType.F64), (lambda x: x + 1, DType.I64), (lambda x: pto.argsort(x), DType.I32),
                                           (lambda x: x // 3, DType.U32)])
def test_what_cores_lack_is_refused_at_the_line_with_what_works(op: Callable[..., Any], dtype: DType) -> None:
    result = DType.I32 if dtype is DType.I32 else dtype
    with pytest.raises(PtoError) as caught:
        selected(kernel_of(op, (np.ones((4, 8), dtype.np),), (4, 8, result)))
    error = caught.value
    assert error.code == "N103" and str(dtype) in error.message and "ascend_910b" in error.message and error.expected and error.help
    assert "test_coverage.py" in str(error.span) or "numbers.py" in str(error.span) or "<string>" in str(error.span)
