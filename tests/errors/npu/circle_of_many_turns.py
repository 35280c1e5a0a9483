import numpy as np

from pto_wsp import DType, In, Out, Tensor, Tile, kernel, pto, workload
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.npu.plan.plan_for_npu import plan_for_npu
from pto_wsp.passes.lower import lower

F32 = DType.F32
TILE = Tile[16, 16, F32]


@kernel
def recur(w: In[TILE], y: Out[TILE]):
    state = pto.alloc((16, 16), F32, init=1)
    for _ in pto.range(100):
        state[:] = pto.tanh(state @ w)
    pto.store(y, state)


def mistake():
    W, Y = (Tensor(np.zeros((16, 16), np.float32), name=name) for name in "WY")

    @workload
    def steps():
        recur[0](w=W, y=Y)

    plan_for_npu(lower(steps().node), builtin_arch("ascend_910b"))

# error[N102]: `state` goes round between products and vector work of kernel `recur`
#   --> circle_of_many_turns.py:16:29
#      |
#   16 |         state[:] = pto.tanh(state @ w)
#      |                             ^^^^^^^^^
#    = expected: at most 64 iterations and 128 products in a loop that becomes a chain of tasks
#    = found:    100 iterations with 100 products in all, of the loop at circle_of_many_turns.py:15:5
#    = help:     run several kernels in the workload, with P.seq, each with fewer iterations, and keep the state in a tensor
#    = note:     the vector core's share is at circle_of_many_turns.py:16:20
