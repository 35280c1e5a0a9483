"""A size that the body has read as a number, bound anew."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def double(x: In[Tile[1, 8, DType.F32]], y: Out[Tile[1, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = (Tensor(np.zeros((9, 8), np.float32), name=name) for name in "XY")


@workload
def program() -> None:
    for i in P(X.shape[0]):
        double[i](x=X[i], y=Y[i])


def mistake() -> None:
    program().compile("interp").run(X=np.zeros((20, 8), np.float32), Y=np.zeros((20, 8), np.float32))


# error[R113]: tensor `X` is bound at another size than the workload was made for
#   --> shape_read_as_a_number.py:23:5
#      |
#   23 |     program().compile("interp").run(X=np.zeros((20, 8), np.float32), Y=np.zeros((20, 8), np.float32))
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   --> shape_read_as_a_number.py:18:16: `X.shape[0]` was read as a number here
#      |
#   18 |     for i in P(X.shape[0]):
#      |                ^^^^^^^^^^
#    = expected: `X.shape[0]` == 9
#    = found:    20: an array of shape [20, 8]
#    = help:     let each run say how many there are: a Symbol, or an axis of DenseDyn, in place of the number
