"""Sums over few rows, long and short, of which some may be missing: a column of sums has more stored rows than such a tile."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from pto_wsp import DType, In, Kernel, Out, Tile, kernel, pto
from pto_wsp.npu.isa import tile_program as tp
from tests.npu.harness import A2A3_FAST
from tests.npu.kernels.batch import Bound, Case, check, program_of

F32, I32, I16 = DType.F32, DType.I32, DType.I16


def summing(rows: int, cols: int, dtype: DType) -> Kernel:
    @kernel
    def summed(x: In[Tile[rows, cols, dtype]], out: Out[Tile[rows, 1, dtype]]) -> None:   # type: ignore[valid-type]
        pto.store(out, pto.rowsum(x))
    return summed


def case(rows: int, cols: int, dtype: DType, present: int | None = None) -> Case:
    x = np.random.default_rng(rows + cols).integers(-4, 5, (present or rows, cols)).astype(dtype.np)
    bound = {"x": Bound.plain(x), "out": Bound.plain(np.zeros((len(x), 1), dtype.np))}
    if present is not None:
        bound = {name: one.ragged(group=0) for name, one in bound.items()}
    return Case(summing(rows, cols, dtype), bound)


def cases() -> Iterator[Case]:
    """Yield sums of short rows, whose tile grows, and of long ones, which are shortened; both with whole and with left over lanes."""
    for dtype in (F32, I32, I16):
        for rows, cols in ((1, 8), (4, 40), (7, 100), (9, 21), (1, 2048), (2, 1111), (3, 1400), (9, 520)):
            yield case(rows, cols, dtype)
    yield case(3, 1000, F32, present=1)
    yield case(3, 1000, F32, present=2)
    yield case(9, 520, F32, present=4)
    yield case(4, 40, F32, present=3)


@pytest.mark.slow
@pytest.mark.parametrize("family", A2A3_FAST)
def test_sums_of_few_rows(family: str) -> None:
    check(list(cases()), family)


@pytest.mark.parametrize("rows", [1, 3, 4, 9, 12])
def test_long_rows_do_not_grow_much(rows: int) -> None:
    cols = 16384 // rows // 64 * 64
    program = program_of(case(rows, cols, F32), "a2a3")
    assert sum(buffer.size_bytes for buffer in program.buffers) < 3 * 4 * rows * cols
    sums = [step for step in tp.steps(program.body) if isinstance(step, tp.Instr) and step.name == "TROWSUM"]
    assert len(sums) == rows + 1
