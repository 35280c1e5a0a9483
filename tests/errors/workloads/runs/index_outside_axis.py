"""An index read from data lies outside the axis that it picks from."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload

X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 3, 128), np.float32))
ROWS = Tensor(np.array([[0, 1, 2], [15, 0, 0], [3, 16, 4], [0, 0, -1]], np.int32).reshape(4, 3, 1))


@kernel
def pick(x: In[Tile[16, 128, DType.F32]], rows: In[Tile[3, 1, DType.I32]], y: Out[Tile[3, 128, DType.F32]]) -> None:
    pto.store(y, pto.gather(x, rows, axis=0))


@workload
def program() -> None:
    for b in P(4):
        pick[b](X[b], ROWS[b], Y[b])


def mistake() -> None:
    program().compile(target="interp").run()


# error[R101]: task pick[b=2] failed: gather along axis 0 of Tile[16, 128, f32]: an index lies outside
#   --> index_outside_axis.py:13:18
#      |
#   13 |     pto.store(y, pto.gather(x, rows, axis=0))
#      |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: 0 .. 15
#    = found:    16, at row 1 and column 0 of the index
#    = note:     the task was made at index_outside_axis.py:19:9
