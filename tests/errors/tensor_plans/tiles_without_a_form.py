import numpy as np

from pto_wsp import DType, Tensor, jit


@jit
def turned(x: Tensor[4, 6, 8, DType.F32]):
    return np.transpose(x, (2, 1, 0)) * 2


def mistake():
    turned.plan(arch="ascend_910b").but(tiles={"out": {0: 8, 1: 6, 2: 4}})


# error[J310]: this has no form as tiles of a kernel
#   --> tiles_without_a_form.py:12:5
#      |
#   12 |     turned.plan(arch="ascend_910b").but(tiles={"out": {0: 8, 1: 6, 2: 4}})
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   --> tiles_without_a_form.py:8:12: the group computes this
#     |
#   8 |     return np.transpose(x, (2, 1, 0)) * 2
#     |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = found:    axes in an order that no transposition of a tile gives
#    = help:     cut all but two of the axes into tiles of 1
