import numpy as np

from pto_wsp import DType, In, Out, Tensor, Tile, kernel, pto, workload
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.npu.plan.plan_for_npu import plan_for_npu
from pto_wsp.npu.select.select import select
from pto_wsp.passes.lower import lower

TILE = Tile[4, 40, DType.I32]


@kernel
def in_order(x: In[TILE], y: Out[TILE]):
    pto.store(y, pto.argsort(x + 1))


def mistake():
    X, Y = (Tensor(np.zeros((4, 40), np.int32), name=name) for name in "XY")

    @workload
    def steps():
        in_order[0](x=X, y=Y)

    arch = builtin_arch("ascend_910b")
    for use in plan_for_npu(lower(steps().node), arch).kernels:
        select(use, arch)


# error[N103]: kernel `in_order`: ascend_910b does not run `pto.argsort` on i32
#   --> dtype_that_cores_lack.py:14:18
#      |
#   14 |     pto.store(y, pto.argsort(x + 1))
#      |                  ^^^^^^^^^^^^^^^^^^
#    = expected: f32, f16, bf16, i8, i16, u8, u16, bool
#    = found:    i32, for ascend_910b
#    = help:     convert it first: x.astype(DType.F32), which holds whole numbers up to 16,777,216
