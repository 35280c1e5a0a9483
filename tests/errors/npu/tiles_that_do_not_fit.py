import numpy as np

from pto_wsp import DType, In, Out, Tensor, Tile, kernel, pto, workload
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.npu.plan.plan_for_npu import plan_for_npu
from pto_wsp.npu.select.select import select
from pto_wsp.npu.tiles.passes import TILE_PROGRAM_PASSES
from pto_wsp.passes.lower import lower
from pto_wsp.passes.pipeline import run_passes

TILE = Tile[160, 160, DType.F32]


@kernel
def symmetric(x: In[TILE], y: Out[TILE]):
    twice = x * 2.0
    pto.store(y, twice + twice.T)


def mistake():
    X, Y = (Tensor(np.zeros((160, 160), np.float32), name=name) for name in "XY")

    @workload
    def steps():
        symmetric[0](x=X, y=Y)

    arch = builtin_arch("ascend_910b")
    for use in plan_for_npu(lower(steps().node), arch).kernels:
        run_passes(select(use, arch), arch, TILE_PROGRAM_PASSES)


# error[K110]: kernel `symmetric` needs 307200 bytes of UB, more than ascend_910b has
#   --> tiles_that_do_not_fit.py:17:26
#      |
#   17 |     pto.store(y, twice + twice.T)
#      |                          ^^^^^^^
#    = expected: at most 188416 bytes at any time
#    = found:    307200 bytes at line 17
#    = help:     tiles of 1/2 of the elements fit, e.g. `twice` as [80, 160] instead of [160, 160]
#    = note:     tiles that live in UB then:
#    = note:       102400  twice          [160, 160] f32  line 16 to 17
#    = note:       102400  working memory [160, 160] f32  line 17, for twice.T
#    = note:       102400  working memory [160, 160] f32  line 17, for twice.T
