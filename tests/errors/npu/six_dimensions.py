import numpy as np

from pto_wsp import DType, InOut, P, Tensor, Tile, kernel, pto, workload
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.npu.plan.plan_for_npu import plan_for_npu
from pto_wsp.passes.lower import lower

F32, I32 = DType.F32, DType.I32
TILE = Tile[16, 16, F32]


@kernel
def double(x: InOut[TILE]):
    pto.store(x, x * 2)


def mistake():
    X = Tensor(np.zeros((2, 1, 3, 1, 16, 16), np.float32), name="X")

    @workload
    def steps():
        for b in P(2):
            double[b](x=X[b, 0].reshape(1, 1, 1, 1, 48, 16)[0, 0, 0, 0, :16])

    plan_for_npu(lower(steps().node), builtin_arch("ascend_910b"))

# error[N101]: `X[b, 0].reshape(1, 1, 1, 1, 48, 16)[0, 0, 0, 0, :16]` has too many dimensions for the device runtime
#   --> six_dimensions.py:23:13
#      |
#   23 |             double[b](x=X[b, 0].reshape(1, 1, 1, 1, 48, 16)[0, 0, 0, 0, :16])
#      |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: at most 5 dimensions
#    = found:    6: [2, 1, 3, 1, 16, 16]
#    = help:     wrap the array with its leading dimensions as one: Tensor(array.reshape(-1, ...))
