import numpy as np

from pto_wsp import DType, InOut, Tensor, Tile, kernel, pto, workload
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.npu.plan.plan_for_npu import plan_for_npu
from pto_wsp.passes.lower import lower

F32, I32 = DType.F32, DType.I32
TILE = Tile[16, 16, F32]


def scale(factor):
    @kernel
    def scaled(x: InOut[TILE]):
        pto.store(x, x * factor)

    return scaled


def mistake():
    X = Tensor(np.zeros((16, 16), np.float32), name="X")

    @workload
    def steps():
        for factor in range(2, 67):
            scale(factor)[0](x=X)

    plan_for_npu(lower(steps().node), builtin_arch("ascend_910b"))

# error[N101]: the program has too many kernels
#   --> kernels_of_a_program.py:14:5
#      |
#   14 |     def scaled(x: InOut[TILE]):
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: at most 64
#    = found:    65 for one core each
#    = help:     make what differs between them Scalar, bind views that lie in memory alike, or make several programs
