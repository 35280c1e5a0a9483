"""A key names a loop that the task does not have."""

import numpy as np

from pto_wsp import DispatchPolicy, DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@workload
def program() -> None:
    for b in P(4):
        scale[b](x=X[b], y=Y[b])


def mistake() -> None:
    program().dispatch(DispatchPolicy.affinity(lambda t: t.head, 2)).compile(target="interp")


# error[S103]: the schedule's key names `head`, which this task does not have
#   --> key_of_no_loop.py:19:9
#      |
#   19 |         scale[b](x=X[b], y=Y[b])
#      |         ^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: t.b
#    = found:    t.head
