"""Comparisons, masks, bits and integers of every width, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, pto
from pto_wsp.npu.isa.tile_program import Instr, steps
from pto_wsp.npu.select.vector import vector_dtypes
from tests.npu.select.kernels import selected
from tests.npu.select.numbers import INTEGERS, ON_CHIP, SHAPE, check, kernel_of, numbers

BOOL = DType.BOOL
RELATIONS = ("eq", "ne", "lt", "le", "gt", "ge")


@pytest.mark.parametrize("dtype", ON_CHIP)
def test_comparisons(dtype: DType) -> None:
    x, y = numbers(dtype), numbers(dtype, seed=1)
    y[:, ::3] = x[:, ::3]
    for name in RELATIONS:
        check(getattr(pto, name), x, y, out=(*SHAPE, BOOL))
    check(pto.lt, x[:, :1].copy(), y[:, :1].copy(), out=(SHAPE[0], 1, BOOL))


@pytest.mark.parametrize("dtype", [*ON_CHIP, BOOL])
def test_choices_with_masks_that_broadcast(dtype: DType) -> None:
    mask, x, y = numbers(BOOL), numbers(dtype, seed=1), numbers(dtype, seed=2)
    check(pto.where, mask, x, y, out=(*SHAPE, dtype))
    check(pto.where, mask[:, :1].copy(), x, y[:1].copy(), out=(*SHAPE, dtype))


@pytest.mark.parametrize("dtype", [DType.F32, DType.I32, DType.U32, DType.F16])
@pytest.mark.parametrize("name", RELATIONS)
def test_choices_by_comparisons_at_once(name: str, dtype: DType) -> None:
    x, y = numbers(dtype), numbers(dtype, seed=1)
    y[:, ::3] = x[:, ::3]
    op = getattr(pto, name)
    check(lambda a, b: pto.where(op(a, b), a, 7), x, y, out=(*SHAPE, dtype))
    check(lambda a, b: pto.where(op(a, b), b, a), x[:, :1].copy(), y[:, :1].copy(), out=(SHAPE[0], 1, dtype))


def test_a_comparison_stays_packed_where_it_only_chooses() -> None:
    x = numbers(DType.F32)

    def names(op: Callable[..., Any]) -> list[str]:
        program = selected(kernel_of(op, (x,), (*SHAPE, DType.F32)))
        return [step.name for step in steps(program.body) if isinstance(step, Instr)]

    assert names(lambda a: pto.where(a > 0, a, 1)) == ["TEXPANDS", "TCMP", "TEXPANDS", "TSEL"]
    both = names(lambda a: pto.where(a > 0, a, pto.cast(a > 0, DType.F32)))
    assert both.count("TCMP") == 2      # the mask is a number as well


@pytest.mark.parametrize("dtype", [*INTEGERS, BOOL])
def test_bits(dtype: DType) -> None:
    x, y = numbers(dtype), numbers(dtype, seed=1)
    for op in (pto.and_, pto.or_, pto.xor):
        check(op, x, y, out=(*SHAPE, dtype))
    check(pto.not_, x, out=(*SHAPE, dtype))
    check(pto.not_, x[:, :1].copy(), out=(SHAPE[0], 1, dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_beyond_the_width_give_0(dtype: DType) -> None:
    places = np.random.default_rng(3).integers(0, 8 * dtype.nbytes + 3, SHAPE).astype(dtype.np)
    places[0, :3] = [0, 1, 8 * dtype.nbytes]
    if np.iinfo(dtype.np).min:
        places[1, :3] = -1
    for op in (pto.shl, pto.shr):
        check(op, numbers(dtype), places, out=(*SHAPE, dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_arithmetic_wraps(dtype: DType) -> None:
    x, y = numbers(dtype), numbers(dtype, seed=1)
    for name in ("add", "sub", "mul", "maximum", "minimum"):
        if dtype in vector_dtypes(name):
            check(getattr(pto, name), x, y, out=(*SHAPE, dtype))
    for name in ("neg", "abs", "sign", "relu"):
        if dtype in vector_dtypes(name):
            check(getattr(pto, name), x, out=(*SHAPE, dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_numbers_at_the_edges_of_a_dtype(dtype: DType) -> None:
    x, most = numbers(dtype), int(np.iinfo(dtype.np).max)
    for op in (pto.add, pto.maximum, pto.minimum, pto.xor):
        check(lambda tile, op=op: op(tile, most), x, out=(*SHAPE, dtype))
    check(lambda tile: pto.where(tile > most // 2, tile, most), x, out=(*SHAPE, dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_reductions_wrap(dtype: DType) -> None:
    x = numbers(dtype)
    for name in ("rowsum", "rowprod", "rowmax", "rowmin", "colsum", "colmax", "colmin"):
        if dtype in vector_dtypes(name):
            check(getattr(pto, name), x, out=(1, SHAPE[1], dtype) if name.startswith("col") else (SHAPE[0], 1, dtype))


@pytest.mark.parametrize("dtype", [dtype for dtype in ON_CHIP if dtype.is_integer])
def test_shifts_by_a_number_of_places(dtype: DType) -> None:
    for places in (0, 1, 7, 8, 15, 16, 31, 32):
        for shift in (pto.shl, pto.shr):
            check(lambda x, places=places, shift=shift: shift(x, places), numbers(dtype), out=(*SHAPE, dtype))
