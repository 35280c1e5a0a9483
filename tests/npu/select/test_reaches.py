"""Which pieces of regions are proved to lie inside, and what becomes of the others."""

from __future__ import annotations

from pto_wsp import DType, In, Kernel, Out, Scalar, Tensor, Tile, ceildiv, kernel, pto
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.check.verdict import Verdict
from pto_wsp.npu.check.checks import check_regions
from pto_wsp.npu.isa.tile_program import If, ParamAccess, steps
from tests.npu.select.kernels import selected

F32 = DType.F32


@kernel
def walks(x: In[Tensor], out: Out[Tile[1, 16, F32]]) -> None:
    acc = pto.alloc((1, 16), F32, init=0)
    for j in pto.range(ceildiv(x.shape[0], 8)):
        acc += pto.colsum(pto.load(x, (j * 8, 0), shape=(8, 16), valid=(x.shape[0] - j * 8, None)))
    pto.store(out, acc)


@kernel
def trusts(x: In[Tensor], out: Out[Tile[8, 16, F32]], row: Scalar[DType.I32]) -> None:
    pto.store(out, pto.load(x, (row, 0), shape=(8, 16)))


def verdicts(k: Kernel) -> list[tuple[Verdict, str]]:
    program = selected(k, {"x": ParamAccess(0, 1, cols=16)}, x=F32)
    return [(finding.verdict, finding.detail) for finding in check_regions(program, builtin_arch("ascend_910b"))]


def test_blocks_of_a_region_are_proved() -> None:
    assert verdicts(walks) == [(Verdict.PROVED, "kernel `walks`: load x[j * 8, 0]")]


def test_a_row_that_a_task_is_given_is_tested() -> None:
    assert verdicts(trusts) == [(Verdict.NOT_PROVED, "kernel `trusts`: load x[row, 0], which does not leave its region when it runs")]
    program = selected(trusts, {"x": ParamAccess(0, 1, cols=16)}, x=F32)
    assert any(isinstance(step, If) for step in steps(program.body))
