"""Casts between all dtypes that lie on chip: modes, saturation, wrapping, one rounding; bit for bit."""

from __future__ import annotations

import pytest

from pto_wsp import DType, pto
from pto_wsp.ops.rounding import MODES
from tests.npu.select.numbers import ON_CHIP, SHAPE, check, numbers

BOOL = DType.BOOL


@pytest.mark.sampled(4)
@pytest.mark.parametrize("target", [*ON_CHIP, BOOL])
@pytest.mark.parametrize("source", [*ON_CHIP, BOOL])
def test_casts(source: DType, target: DType) -> None:
    x = numbers(source)
    check(lambda tile: pto.cast(tile, target), x, out=(*SHAPE, target))
    if BOOL not in (source, target):
        for saturate in (True, False):
            check(lambda tile, saturate=saturate: pto.cast(tile, target, saturate=saturate), x, out=(*SHAPE, target))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", [DType.F16, DType.BF16, DType.I32, DType.U8, DType.U32])
def test_modes(mode: str, target: DType) -> None:
    check(lambda tile: pto.cast(tile, target, mode=mode), numbers(DType.F32), out=(*SHAPE, target))


def test_quantised_tiles() -> None:
    x = numbers(DType.F32)
    check(lambda tile: pto.quantize(tile, 0.1, 3), x, out=(*SHAPE, DType.I8))
    check(lambda tile: pto.dequantize(tile, 0.1, 3), numbers(DType.I8), out=(*SHAPE, DType.F32))
