"""A task's piece lies outside the region that is bound."""

import numpy as np

from pto_wsp import DType, In, Out, P, Scalar, Tensor, Tile, kernel, pto, workload

X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@kernel
def row(table: In[Tensor], k: Scalar[DType.I32], y: Out[Tile[1, 128, DType.F32]]) -> None:
    pto.store(y, pto.load(table, (k, 0), shape=(1, 128)))


@workload
def program() -> None:
    for b in P(4):
        row[b](X[b], b * 8, Y[b, 0:1])


def mistake() -> None:
    program().compile(target="interp").run()


# error[R101]: task row[b=2] failed: load table[k, 0] lies outside the region that is bound
#   --> task_leaves_its_region.py:12:18
#      |
#   12 |     pto.store(y, pto.load(table, (k, 0), shape=(1, 128)))
#      |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a piece at row 0 .. 15, column 0 .. 0, or valid=... for one that may be short
#    = found:    row 16, column 0
#    = note:     the task was made at task_leaves_its_region.py:18:9
