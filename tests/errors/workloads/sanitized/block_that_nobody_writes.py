"""A task reads a block of an intermediate tensor that no task has written."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[2, 8, DType.F32]], y: Out[Tile[2, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((6, 8), np.float32), name="X"), Tensor(np.zeros((6, 8), np.float32), name="Y")
between = Tensor.empty((6, 8), DType.F32, name="between")


@workload
def program() -> None:
    for b in P(2):
        scale[b](x=X[2 * b:2 * b + 2], y=between[2 * b:2 * b + 2])
    for b in P(3):
        scale[b](x=between[2 * b:2 * b + 2], y=Y[2 * b:2 * b + 2])


def mistake() -> None:
    program().compile(sanitize=True).replay(5)


# error[R202]: task scale[b=2]: what it gives depends on row 0, column 0 of `x`, an element of `between` that nobody has written
#   --> block_that_nobody_writes.py:22:20
#      |
#   22 |         scale[b](x=between[2 * b:2 * b + 2], y=Y[2 * b:2 * b + 2])
#      |                    ^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: elements that earlier tasks have written
#    = found:    16 elements of `x` that nobody has written
#    = help:     write all of `between` that is read, or bind an array with contents
#    = note:     the task was made at block_that_nobody_writes.py:22:9
#    = note:     seed 0x5: program.replay(0x5) repeats the order of this run
