"""A channel of negative depth."""

import numpy as np

from pto_wsp import Channel, DType, In, Out, Tensor, Tile, kernel, pto

X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


def mistake() -> None:
    Channel("tiles", depth=-1)


# error[W109]: channel `tiles` has a depth that there is none of
#   --> negative_depth.py:16:5
#      |
#   16 |     Channel("tiles", depth=-1)
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a whole number, 0 .. 1048576
#    = found:    -1
