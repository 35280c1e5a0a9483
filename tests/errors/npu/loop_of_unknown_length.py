import numpy as np

from pto_wsp import DType, In, Out, Scalar, Tensor, Tile, kernel, pto, workload
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.npu.plan.plan_for_npu import plan_for_npu
from pto_wsp.passes.lower import lower

F32, I32 = DType.F32, DType.I32
TILE = Tile[16, 16, F32]


@kernel
def triangle(x: In[Tensor], w: In[TILE], n: Scalar[I32], y: Out[TILE]):
    most = pto.alloc((16, 16), F32, init=0)
    for i in pto.range(n):
        for _ in pto.range(i * i):
            most[:] = pto.maximum(most, pto.load(x, (i, 0), shape=(16, 16)) @ w)
    pto.store(y, most)


def mistake():
    X, W, Y = (Tensor(np.zeros((16, 16), np.float32), name=name) for name in "XWY")

    @workload
    def steps():
        triangle[0](x=X, w=W, n=1, y=Y)

    plan_for_npu(lower(steps().node), builtin_arch("ascend_910b"))

# error[N102]: how often this loop runs is not known before the loops around it do, and it makes `product` for the other core
#   --> loop_of_unknown_length.py:16:9
#      |
#   16 |         for _ in pto.range(i * i):
#      |         ^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: bounds that grow with the outer loop's variable, or stay
#    = found:    range(0, i * i, 1)
#    = help:     loop to a bound that is known, and skip iterations with pto.when
