import numpy as np

from pto_wsp import DType, InOut, Tensor, Tile, kernel, pto, workload
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.npu.plan.plan_for_npu import plan_for_npu
from pto_wsp.passes.lower import lower

F32, I32 = DType.F32, DType.I32
TILE = Tile[16, 16, F32]


@kernel
def double(x: InOut[TILE]):
    pto.store(x, x * 2)


def mistake():
    X = Tensor(np.zeros((32, 8), np.float32).T, name="X")     # columns lie one behind the other

    @workload
    def steps():
        double[0](x=X.T.reshape(16, 16))

    plan_for_npu(lower(steps().node), builtin_arch("ascend_910b"))

# error[N101]: `X.T.reshape(16, 16)` reshapes what does not lie contiguously on the device
#   --> not_contiguous_on_the_device.py:22:9
#      |
#   22 |         double[0](x=X.T.reshape(16, 16))
#      |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a contiguous view of a tensor in row-major order
#    = help:     bind the array in the shape that the kernels need
