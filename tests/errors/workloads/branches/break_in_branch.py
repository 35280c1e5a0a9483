# ruff: noqa: E501
"""A branch is left by break."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[1, 8, DType.F32]], y: Out[Tile[1, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 8), np.float32), name="X"), Tensor(np.zeros((4, 8), np.float32))


@workload
def program() -> None:
    for b in P(4):
        with P.when(b > 1):
            break


def mistake() -> None:
    program()


# error[K103]: the body of `P.when(b > 1)` is left early
#   --> break_in_branch.py:20:9
#      |
#   20 |         with P.when(b > 1):
#      |         ^^^^^^^^^^^^^^^^^^^
#    = expected: a body that runs to its end
#    = found:    break, continue or return
#    = help:     every body is traced once and stands for all iterations, so break, continue and return have no meaning in it; put what is not to run into `with P.otherwise():`
