"""A key looks its answer up in a list."""

import numpy as np

from pto_wsp import DispatchPolicy, DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))
homes = [0, 1, 1, 0]


@workload
def program() -> None:
    for b in P(4):
        scale[b](x=X[b], y=Y[b])


def mistake() -> None:
    program().dispatch(DispatchPolicy.dispatch_by(lambda t: homes[t.b], 2))


# error[S103]: the key of dispatch_by cannot be traced
#   --> untraceable_key.py:24:24
#      |
#   24 |     program().dispatch(DispatchPolicy.dispatch_by(lambda t: homes[t.b], 2))
#      |                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = help:     it is called on names, not for each task: use arithmetic on t.<loop variable> and t.params[k]
#    = note:     index() of a value known only at run time: b
