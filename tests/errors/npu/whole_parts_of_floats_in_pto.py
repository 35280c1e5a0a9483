import numpy as np

from pto_wsp import DType, In, Out, Scalar, Tensor, Tile, kernel, pto, workload
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.npu.emit.mlir import emit_pto
from pto_wsp.npu.plan.plan_for_npu import plan_for_npu
from pto_wsp.npu.select.select import select
from pto_wsp.passes.lower import lower

TILE = Tile[8, 64, DType.F32]


@kernel
def scale(x: In[TILE], factor: Scalar[DType.F32], out: Out[TILE]):
    pto.store(out, x * (factor // 2.0))


def mistake():
    X, Y = (Tensor(np.zeros((8, 64), np.float32), name=name) for name in "XY")

    @workload
    def scaled():
        scale[0](x=X, factor=3.0, out=Y)

    arch = builtin_arch("ascend_910b")
    for use in plan_for_npu(lower(scaled().node), arch).kernels:
        emit_pto(select(use, arch), arch)

# error[N105]: `factor // 2.0` has no form in .pto
#   --> whole_parts_of_floats_in_pto.py:15:20
#      |
#   15 |     pto.store(out, x * (factor // 2.0))
#      |                    ^^^^^^^^^^^^^^^^^^^
#    = expected: // and % of whole numbers
#    = help:     compile for ascend_npu, which emits C++
