import numpy as np

from pto_wsp import DType, In, Out, Tensor, Tile, kernel, pto, workload

ROW = Tile[1, 12000, DType.F32]


@kernel
def ranked(x: In[ROW], y: Out[ROW]):
    pto.store(y, pto.sort(x))


def mistake():
    X, Y = (Tensor(np.zeros((1, 12000), np.float32), name=name) for name in "XY")

    @workload
    def steps():
        ranked[0](x=X, y=Y)

    steps().compile(target="ascend_npu", arch="ascend_910b")


# error[K110]: kernel `ranked` needs 524288 bytes of UB, more than ascend_910b has
#   --> row_that_no_core_sorts.py:10:18
#      |
#   10 |     pto.store(y, pto.sort(x))
#      |                  ^^^^^^^^^^^
#    = expected: at most 188416 bytes at any time
#    = found:    524288 bytes at line 10
#    = help:     tiles of 1/4 of the elements fit, e.g. `x` as [1, 3000] instead of [1, 12000]
#    = note:     tiles that live in UB then:
#    = note:       262144  working memory [1, 65536] f32  line 10, for pto.sort(x)
#    = note:       131072  working memory [1, 32768] f32  line 10, for pto.sort(x)
#    = note:       131072  working memory [1, 32768] u32  line 10, for pto.sort(x)
