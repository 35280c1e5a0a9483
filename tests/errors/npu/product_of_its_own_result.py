import numpy as np

from pto_wsp import DType, In, Out, Scalar, Tensor, Tile, kernel, pto, workload
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.npu.plan.plan_for_npu import plan_for_npu
from pto_wsp.passes.lower import lower

F32, I32 = DType.F32, DType.I32
TILE = Tile[16, 16, F32]


@kernel
def power(w: In[TILE], n: Scalar[I32], y: Out[TILE]):
    total = pto.alloc((16, 16), F32, init=0)
    for _ in pto.range(n):
        total += total @ w
    pto.store(y, total)


def mistake():
    W, Y = (Tensor(np.zeros((16, 16), np.float32), name=name) for name in "WY")

    @workload
    def steps():
        power[0](w=W, n=3, y=Y)

    plan_for_npu(lower(steps().node), builtin_arch("ascend_910b"))

# error[N102]: `total` goes round between products and vector work of kernel `power`
#   --> product_of_its_own_result.py:16:18
#      |
#   16 |         total += total @ w
#      |                  ^^^^^^^^^
#    = expected: a loop of constant bounds, which becomes a chain of tasks
#    = found:    the loop at product_of_its_own_result.py:15:5 runs as often as a task says
#    = help:     give the loop constant bounds, or run one kernel an iteration in the workload, with P.seq, and keep the state in a tensor
#    = note:     the vector core's share is at product_of_its_own_result.py:16:9
