# ruff: noqa: E501
"""Python's if asks a loop variable."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@workload
def program() -> None:
    for b in P(4):
        if b > 0:
            scale[b](x=X[b], y=Y[b])


def mistake() -> None:
    program()


# error[K103]: bool() of a value known only at run time: b > 0
#   --> if_on_loop_variable.py:20:12
#      |
#   20 |         if b > 0:
#      |            ^^^^^
#    = expected: a number that is known while the body is traced
#    = found:    b > 0
#    = help:     if, while, and, or, not, in, min() and max() decide while the body is traced, once for all iterations; branch with `with P.when(c):` in a workload, `with pto.when(c):` in a kernel, `with tt.when(c):` in a function on tensors, choose with c.where(a, b), join conditions with &, | and ~, and take .min() and .max()
