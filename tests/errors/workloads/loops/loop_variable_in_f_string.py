"""A loop variable is formatted."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@workload
def program() -> None:
    for b in P(4):
        print(f"row {b}")


def mistake() -> None:
    program()


# error[K103]: format() of a value known only at run time: b
#   --> loop_variable_in_f_string.py:19:15
#      |
#   19 |         print(f"row {b}")
#      |               ^^^^^^^^^^
#    = expected: a number that is known while the body is traced
#    = found:    b
#    = help:     print its repr() ({x!r}), or print in the kernel when it runs
