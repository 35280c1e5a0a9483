"""A task waits for one of another process by its handle."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload

X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


@workload
def program() -> None:
    with P.pipe():
        first = scale[0](x=X[0], y=Y[0])
        scale[1](x=X[1], y=Y[1], after=first)


def mistake() -> None:
    program().compile(target="interp")


# error[W110]: process `scale (2)` names a task of process `scale`
#   --> task_of_another_process.py:19:9
#      |
#   19 |         scale[1](x=X[1], y=Y[1], after=first)
#      |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = help:     processes are ordered through channels and events: send(channel, task) gives it on
