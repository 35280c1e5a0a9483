import numpy as np

from pto_wsp import DType, In, Out, Tensor, Tile, kernel, pto, workload
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.npu.plan.plan_for_npu import plan_for_npu
from pto_wsp.npu.select.select import select
from pto_wsp.passes.lower import lower

TILE = Tile[16, 16, DType.F64]


@kernel
def product(a: In[TILE], b: In[TILE], out: Out[TILE]):
    pto.store(out, a @ b)


def mistake():
    A, B, C = (Tensor(np.zeros((16, 16)), name=name) for name in "ABC")

    @workload
    def multiply():
        product[0](a=A, b=B, out=C)

    arch = builtin_arch("ascend_910b")
    for use in plan_for_npu(lower(multiply().node), arch).kernels:
        select(use, arch)


# error[N104]: the cube core does not multiply f64
#   --> product_of_doubles.py:14:20
#      |
#   14 |     pto.store(out, a @ b)
#      |                    ^^^^^
#    = expected: f32, f16, bf16, i8
#    = help:     convert the operands, e.g. a.astype(DType.F32)
