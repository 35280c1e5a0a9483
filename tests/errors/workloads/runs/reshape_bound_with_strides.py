"""A reshaped tensor is bound to an array with gaps between its rows."""

import numpy as np

from pto_wsp import DType, In, Out, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))
FLAT = Tensor(np.zeros((2, 1024), np.float32))


@workload
def program() -> None:
    scale(x=FLAT.reshape(16, 128), y=Y[0])


def mistake() -> None:
    program().compile(target="interp").run(FLAT=np.zeros((2, 2048), np.float32)[:, :1024])


# error[R104]: a view is reshaped that is not contiguous as it is bound: `FLAT.reshape(16, 128)`
#   --> reshape_bound_with_strides.py:19:13
#      |
#   19 |     scale(x=FLAT.reshape(16, 128), y=Y[0])
#      |             ^^^^^^^^^^^^^^^^^^^^^
#    = expected: 1024
#    = found:    FLAT.strides[0] = 2048
#    = help:     bind an array with the extents and strides declared, or copy it
