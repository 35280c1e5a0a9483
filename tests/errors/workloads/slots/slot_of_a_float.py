"""A slot is to hold a float."""

import numpy as np

from pto_wsp import DType, In, Out, Tensor, Tile, kernel, pto, slot_set_u64, workload


@kernel
def scale(x: In[Tile[1, 8, DType.F32]], y: Out[Tile[1, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 8), np.float32), name="X"), Tensor(np.zeros((4, 8), np.float32))


@workload
def program() -> None:
    slot_set_u64(0, X[0, 0])
    scale(x=X[0], y=Y[0])


def mistake() -> None:
    program()


# error[T209]: a slot holds a whole number
#   --> slot_of_a_float.py:18:5
#      |
#   18 |     slot_set_u64(0, X[0, 0])
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^
#    = found:    a float: X[0, 0]
