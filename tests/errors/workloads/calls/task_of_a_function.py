"""task() takes a plain function."""

import numpy as np

from pto_wsp import DType, In, Out, Tensor, Tile, kernel, pto, task, workload


@kernel
def scale(x: In[Tile[1, 8, DType.F32]], y: Out[Tile[1, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 8), np.float32), name="X"), Tensor(np.zeros((4, 8), np.float32))
def double(x: object) -> object:
    return x



@workload
def program() -> None:
    task(double, [0], {"x": X[0], "y": Y[0]})


def mistake() -> None:
    program()


# error[T205]: task takes a kernel
#   --> task_of_a_function.py:21:5
#      |
#   21 |     task(double, [0], {"x": X[0], "y": Y[0]})
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: what @kernel returns
#    = found:    function
