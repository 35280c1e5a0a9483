"""A program is started while it runs."""

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
    made = program().compile(target="interp")
    made.execute()
    made.execute()


# error[R103]: the program is running already
#   --> execute_twice.py:24:5
#      |
#   24 |     made.execute()
#      |     ^^^^^^^^^^^^^^
#    = help:     call synchronize() between two execute(); for runs side by side, compile a program for each thread
