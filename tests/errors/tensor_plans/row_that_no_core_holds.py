import numpy as np

from pto_wsp import DType, Tensor, jit


@jit
def ranked(x: Tensor["t", 12000, DType.F32]):
    ordered = np.sort(x, axis=-1)
    return ordered


def mistake():
    ranked.plan(target="ascend_npu", arch="ascend_910b")


# error[J304]: group `ordered#2`: no tiles of it fit
#   --> row_that_no_core_holds.py:8:15
#     |
#   8 |     ordered = np.sort(x, axis=-1)
#     |               ^^^^^^^^^^^^^^^^^^^
#    = expected: `x:1` of at most 8,192
#    = found:    t=1 all 12,000 of `x:1` needs 524,288 of 188,416 bytes of UB of ascend_910b
#    = help:     no plan cuts what a task needs whole: join results of pieces; archs with more UB, and cpu_sim, take more
#    = note:     tiles that live in UB then:
#    = note:       262144  working memory [1, 65536] f32  line 8, for np.sort(x, axis=-1)
#    = note:       131072  working memory [1, 32768] f32  line 8, for np.sort(x, axis=-1)
#    = note:       131072  working memory [1, 32768] u32  line 8, for np.sort(x, axis=-1)
