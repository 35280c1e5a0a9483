import numpy as np

from pto_wsp import DType, InOut, Tensor, Tile, kernel, pto, workload
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.npu.plan.plan_for_npu import plan_for_npu
from pto_wsp.npu.select.select import select
from pto_wsp.passes.lower import lower


@kernel
def square(a: InOut[Tile[256, 256, DType.F32]]):
    pto.store(a, a @ a)


def mistake():
    A = Tensor(np.zeros((256, 256), np.float32), name="A")

    @workload
    def multiply():
        square[0](a=A)

    arch = builtin_arch("ascend_910b")
    for use in plan_for_npu(lower(multiply().node), arch).kernels:
        select(use, arch)

# error[K110]: kernel `square` has results that do not fit L0C together, and stores to `a` what it loads
#   --> product_over_its_operand.py:12:18
#      |
#   12 |     pto.store(a, a @ a)
#      |                  ^^^^^
#    = expected: at most 131072 bytes of L0C
#    = found:    262144 bytes
#    = help:     make `product` [128, 256] in place of [256, 256], or store to another parameter: then it is computed in blocks
#    = note:     who lies in L0C then:
#    = note:       262144  product      [256, 256] f32
