# ruff: noqa: E501
"""A workload's loop is left early."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@workload
def program() -> None:
    for b in P(4):
        scale[b](x=X[b], y=Y[b])
        break


def mistake() -> None:
    program()


# error[K103]: a workload's loop is left early
#   --> break_in_loop.py:21:9
#      |
#   21 |         break
#      |         ^^^^^
#    = expected: a body that runs to its end
#    = found:    break, continue or return
#    = help:     the body is traced once and stands for all iterations, so break and return have no meaning in it; bound the loop instead: P(n)
