"""after= names a task of another workload."""

import numpy as np

from pto_wsp import DType, In, Out, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@workload
def program() -> None:
    scale(x=X[0], y=Y[0])


def mistake() -> None:
    kept = []

    @workload
    def one() -> None:
        kept.append(scale(x=X[0], y=Y[0]))

    @workload
    def two() -> None:
        scale(x=X[1], y=Y[1], after=kept)
    one()
    two()


# error[W103]: after= names a task of another workload: TaskHandle(scale)
#   --> handle_of_another_workload.py:30:9
#      |
#   30 |         scale(x=X[1], y=Y[1], after=kept)
#      |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = help:     order whole workloads with sequential(a, b) or a >> b
