"""Two readings of the instruction page: what selection may use is what the emulated core takes, for every dtype and family."""

from __future__ import annotations

import re

import pytest

from pto_wsp.ir.dtype import DType
from pto_wsp.npu.isa.instructions import ROWS, find_instruction, legal
from tests.npu.emulator import CORE
from tests.npu.harness import FAMILIES

READ = {op: {"a2a3": a2a3.split(), "a5": (a2a3 if a5 == "nullptr" else a5.strip('"')).split()} for op, a2a3, a5 in
        re.findall(r'\{"(T\w+)", "([\w ]*)", (nullptr|"[\w ]*")\}', (CORE / "check" / "dtypes.cpp").read_text())}
COMMON = sorted(READ.keys() & {row.name for row in ROWS})


@pytest.mark.parametrize("family", FAMILIES)
def test_both_take_the_same_dtypes(family: str) -> None:
    told = {op: sorted(str(dtype) for dtype in find_instruction(op).dtypes(family)) for op in COMMON}
    assert told == {op: sorted(READ[op][family]) for op in COMMON}


def test_the_readings_are_of_the_whole_page() -> None:
    assert len(COMMON) > 95
    assert legal("TADD", DType.BF16, "a5") and not legal("TADD", DType.BF16, "a2a3")
