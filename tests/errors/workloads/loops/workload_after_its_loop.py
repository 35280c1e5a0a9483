"""A workload that uses a loop variable is put together after the loop."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, sequential, workload


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@workload
def row(b: object) -> None:
    scale[b](x=X[b], y=Y[b])


@workload
def program() -> None:
    for b in P(4):
        inner = row(b)
    sequential(inner)


def mistake() -> None:
    program()


# error[W105]: a workload made in a loop's body is put together after the loop
#   --> workload_after_its_loop.py:25:5
#      |
#   25 |     sequential(inner)
#      |     ^^^^^^^^^^^^^^^^^
#    = help:     put it together in the body, or call the function again: each call is a workload of its own
