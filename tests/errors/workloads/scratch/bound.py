"""An array is bound to a tensor that the workload makes itself."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@workload
def program() -> None:
    for b in P(4):
        scratch = Tensor.empty((16, 128), DType.F32)
        scale[b](x=X[b], y=scratch)
        scale[b](x=scratch, y=Y[b])


def mistake() -> None:
    program().compile(target="interp").execute(scratch=np.zeros((16, 128), np.float32))


# error[R102]: `scratch` is not bound: the workload makes it
#   --> bound.py:25:5
#      |
#   25 |     program().compile(target="interp").execute(scratch=np.zeros((16, 128), np.float32))
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = help:     a Tensor.empty made in a body is another one each time; in front of the body it is one, and can be bound
