import numpy as np

from pto_wsp import DType, In, Out, Tensor, Tile, kernel, pto, workload
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.npu.plan.plan_for_npu import plan_for_npu
from pto_wsp.passes.lower import lower

F32, I32 = DType.F32, DType.I32
TILE = Tile[16, 16, F32]


@kernel
def many(p0: In[TILE], p1: In[TILE], p2: In[TILE], p3: In[TILE], p4: In[TILE], p5: In[TILE], p6: In[TILE], p7: In[TILE],
         p8: In[TILE], p9: In[TILE], p10: In[TILE], p11: In[TILE], p12: In[TILE], p13: In[TILE], p14: In[TILE], p15: In[TILE],
         p16: In[TILE], p17: In[TILE], p18: In[TILE], p19: In[TILE], p20: In[TILE], p21: In[TILE], p22: In[TILE], p23: In[TILE],
         p24: In[TILE], p25: In[TILE], p26: In[TILE], p27: In[TILE], p28: In[TILE], p29: In[TILE], p30: In[TILE], p31: In[TILE],
         y: Out[TILE]):
    total = p0 + p1 + p2 + p3 + p4 + p5 + p6 + p7 + p8 + p9 + p10 + p11 + p12 + p13 + p14 + p15 + p16 + p17
    total = total + p18 + p19 + p20 + p21 + p22 + p23 + p24 + p25 + p26 + p27 + p28 + p29 + p30 + p31
    pto.store(y, total)


def mistake():
    X, Y = (Tensor(np.zeros((16, 16), np.float32), name=name) for name in "XY")

    @workload
    def steps():
        many[0](*[X] * 32, Y)

    plan_for_npu(lower(steps().node), builtin_arch("ascend_910b"))

# error[N101]: a task of kernel `many` has too many tensors
#   --> tensors_of_a_task.py:28:9
#      |
#   28 |         many[0](*[X] * 32, Y)
#      |         ^^^^^^^^^^^^^^^^^^^^^
#    = expected: at most 32 tensors
#    = found:    33 tensors
#    = help:     pack some into one tensor and take views of it in the kernel, or split the kernel
