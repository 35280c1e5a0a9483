"""Every cast that kernels may ask for is made of conversions that the family of cores has, one TCVT after the other."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pto_wsp import DType, In, Kernel, Out, Tile, kernel, pto
from pto_wsp.npu.isa import tile_program as tp
from pto_wsp.npu.isa.rules import converts
from pto_wsp.npu.rules.operands import ON_CHIP
from tests.npu.harness import A5_FAST
from tests.npu.kernels.batch import Bound, Case, program_of


def casting(source: DType, target: DType) -> Kernel:
    @kernel
    def cast(x: In[Tile[2, 32, source]], out: Out[Tile[2, 32, target]]) -> None:   # type: ignore[valid-type]
        pto.store(out, pto.cast(x, target))
    return cast


@pytest.mark.slow
@pytest.mark.parametrize("family", A5_FAST)
def test_casts_are_made_of_conversions_that_there_are(family: str) -> None:
    seen: set[tuple[DType, DType]] = set()
    for source, target in itertools.product(ON_CHIP, repeat=2):
        bound = {name: Bound.plain(np.zeros((2, 32), dtype.np)) for name, dtype in (("x", source), ("out", target))}
        program = program_of(Case(casting(source, target), bound), family)
        dtypes = {tile.id: tile.dtype for tile in program.tiles}
        for step in tp.steps(program.body):
            if isinstance(step, tp.Instr) and step.name == "TCVT":
                to, origin = step.args[:2]
                assert isinstance(to, tp.TileArg) and isinstance(origin, tp.TileArg)
                seen.add((dtypes[origin.tile], dtypes[to.tile]))
    assert len(seen) > 10 and all(converts(*pair, family) for pair in seen)
