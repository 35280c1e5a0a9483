"""Ops of several instructions, from selection to emitted C++, on the emulated core: with addresses, flags, bounds and hazards checked.

What they compute at every magnitude and edge is held to NumPy by tests/npu/select; here one batch a family shows that what is emitted
computes the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, pto
from tests.npu.harness import A5_FAST
from tests.npu.kernels.batch import Bound, Case, check
from tests.npu.select.numbers import ON_CHIP, Array, kernel_of, numbers
from tests.npu.select.test_order_and_place import different

F32, BOOL, I32 = DType.F32, DType.BOOL, DType.I32
SHAPE = (8, 40)
ULP = 2.0 ** -23


def case(op: Callable[..., Any], *inputs: Array, out: tuple[int, int, DType], rtol: float = 0.0, atol: float = 0.0) -> Case:
    """Return a kernel of one op on arrays, which lie whole and row-major."""
    given = {f"x{n}": Bound.plain(x) for n, x in enumerate(inputs)}
    return Case(kernel_of(op, inputs, out), {**given, "out": Bound.plain(np.zeros(out[:2], out[2].np))}, rtol=rtol, atol=atol)


def curves() -> list[Case]:
    x = numbers(F32)
    angles = np.where(np.abs(x) < 6e6, x, 1).astype(np.float32)
    functions = (pto.tanh, pto.sigmoid, pto.silu, pto.erf, pto.gelu, pto.exp2, pto.floor, pto.ceil, pto.round, pto.sign)
    cases = [case(op, x, out=(*SHAPE, F32), rtol=16 * ULP, atol=2e-37) for op in functions]
    cases += [case(op, angles, out=(*SHAPE, F32), rtol=8 * ULP, atol=2e-9) for op in (pto.sin, pto.cos)]
    cases.append(case(pto.pow, np.abs(x), np.clip(x[::-1], -20, 20).copy(), out=(*SHAPE, F32), rtol=8 * ULP))
    cases += [case(op, x, x[::-1].copy(), out=(*SHAPE, F32)) for op in (pto.floordiv, pto.mod)]
    cases += [case(pto.tanh, numbers(dtype), out=(*SHAPE, dtype), rtol=eps) for dtype, eps in ((DType.F16, 2e-3), (DType.BF16, 1e-2))]
    return cases


def integers() -> list[Case]:
    cases = []
    for dtype in ON_CHIP[3:]:
        x, y = numbers(dtype), numbers(dtype, seed=1)
        cases += [case(op, x, y, out=(*SHAPE, dtype)) for op in (pto.add, pto.mul, pto.and_, pto.xor)]
        cases += [case(pto.shr, x, (y % 20).astype(dtype.np), out=(*SHAPE, dtype)), case(pto.not_, x, out=(*SHAPE, dtype))]
        if dtype is not DType.U32:
            cases += [case(op, x, y, out=(*SHAPE, dtype)) for op in (pto.floordiv, pto.mod)]
        cases += [case(pto.maximum, x, y, out=(*SHAPE, dtype)), case(pto.colmin, x, out=(1, SHAPE[1], dtype))]
    return cases


def masks() -> list[Case]:
    cases, mask = [], numbers(BOOL)
    for dtype in ON_CHIP:
        x, y = numbers(dtype), numbers(dtype, seed=1)
        cases += [case(op, x, y, out=(*SHAPE, BOOL)) for op in (pto.eq, pto.lt, pto.ge)]
        cases.append(case(pto.where, mask, x, y, out=(*SHAPE, dtype)))
    return [*cases, case(pto.where, mask[:, :1].copy(), numbers(F32), numbers(F32)[:1].copy(), out=(*SHAPE, F32)),
            case(pto.or_, mask, mask[::-1].copy(), out=(*SHAPE, BOOL)), case(pto.not_, mask, out=(*SHAPE, BOOL))]


def casts() -> list[Case]:
    cases = [case(lambda x, d=target: pto.cast(x, d), numbers(source), out=(*SHAPE, target))
             for source in (F32, DType.BF16, I32, DType.U8, BOOL) for target in (*ON_CHIP, BOOL)]
    x = numbers(F32)
    cases += [case(lambda x, m=mode: pto.cast(x, DType.F16, mode=m), x, out=(*SHAPE, DType.F16)) for mode in ("floor", "round", "odd")]
    return [*cases, case(lambda x: pto.quantize(x, 0.1, 3), x, out=(*SHAPE, DType.I8)),
            case(lambda x: pto.dequantize(x, 0.1, 3), numbers(DType.I8), out=(*SHAPE, F32))]


def movements() -> list[Case]:
    cases = []
    for dtype in (F32, DType.BF16, DType.U8):
        x = numbers(dtype, (6, 20))
        moves: tuple[tuple[Callable[..., Any], tuple[int, int]], ...] = (
            (lambda x: pto.transpose(x), (20, 6)), (lambda x: (x + 0)[:, 3:12], (6, 9)), (lambda x: (x + 0)[1::2, 16:], (3, 4)),
            (lambda x: pto.slice_odd(x + 0), (6, 10)), (lambda x: pto.reshape(x, (4, 30)), (4, 30)), (lambda x: (x + 0)[:, 7], (6, 1)),
            (lambda x: pto.pad(x, widths=((1, 2), (3, 1)), value=1), (9, 24)), (lambda x: pto.concat(x, x[:, :9], axis=1), (6, 29)),
            (lambda x: pto.interleave(x, x), (6, 40)), (lambda x: pto.concat(x, x, axis=0), (12, 20)))
        cases += [case(op, x, out=(*shape, dtype)) for op, shape in moves]
    return cases


def places() -> list[Case]:
    rng, cases = np.random.default_rng(7), []
    for dtype in (F32, DType.F16, DType.U8):
        for cols in (32, 100):
            x = different(dtype, 3, cols)
            cases += [case(lambda x: pto.sort(x), x, out=(3, cols, dtype)),
                      case(lambda x: pto.topk(x, 5)[0], x, out=(3, 5, dtype)), case(lambda x: pto.topk(x, 5)[1], x, out=(3, 5, I32))]
        x = numbers(dtype, (6, 20))
        index = rng.integers(0, 20, (6, 9)).astype(np.int32)
        rows = rng.integers(0, 6, (4, 1)).astype(np.int32)
        cases += [case(lambda x: pto.rowargmax(x), numbers(dtype), out=(8, 1, I32)), case(pto.gather, x, index, out=(6, 9, dtype)),
                  case(lambda x, at: pto.gather(x, at, axis=0), x, rows, out=(4, 20, dtype)),
                  case(lambda x, at: pto.scatter_add(x, at, x[:, :9]), different(dtype, 6, 20), index, out=(6, 20, dtype)),
                  case(lambda x: pto.tril(x, 1), x, out=(6, 20, dtype))]
    return cases


def bands() -> list[Case]:
    """Tiles so large that work goes by bands of rows, whole and with rows known at run time."""
    cases, shape = [], (30, 100)
    x, y = numbers(F32, shape), numbers(F32, shape, seed=1)
    whole, more = numbers(I32, shape), numbers(I32, shape, seed=1)
    makes = ((pto.erf, (x,), F32, 16 * ULP), (lambda x, y: pto.where(x * 2 < y, x * y, -x), (x, y), F32, 0.0),
             (pto.where, (numbers(BOOL, shape), x, y), F32, 0.0), (pto.lt, (x, y), BOOL, 0.0),
             (lambda x: pto.cast(x, DType.I8), (x,), DType.I8, 0.0), (pto.floordiv, (whole, more), I32, 0.0),
             (pto.xor, (whole, more), I32, 0.0), (pto.tanh, (numbers(DType.BF16, shape),), DType.BF16, 1e-2))
    for op, inputs, dtype, rtol in makes:
        plain = case(op, *inputs, out=(*shape, dtype), rtol=rtol, atol=2e-37)
        cases.append(plain)
        for rows in (1, 17):
            out = np.zeros((rows, shape[1]), dtype.np)
            short = {f"x{n}": Bound.plain(one[:rows].copy()).ragged(group=0) for n, one in enumerate(inputs)}
            cases.append(Case(plain.kernel, {**short, "out": Bound.plain(out).ragged(group=0)}, rtol=rtol, atol=2e-37))
    return cases


@pytest.mark.slow
@pytest.mark.parametrize("family", A5_FAST)
@pytest.mark.parametrize("cases", [bands, curves, integers, masks, casts, movements, places], ids=lambda cases: cases.__name__[1:])
def test_a_family_on_the_emulated_core(cases: Callable[[], list[Case]], family: str) -> None:
    check(cases(), family)
