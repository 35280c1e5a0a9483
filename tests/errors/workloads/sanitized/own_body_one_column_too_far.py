"""A body in C writes one column more than it is given."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, workload


@kernel(c_src="for (int64_t c = 0; c <= x_cols; ++c) y[c] = x[c];")
def copied(x: In[Tile[1, 8, DType.F32]], y: Out[Tile[1, 8, DType.F32]]) -> None: ...


X, Y = Tensor(np.zeros((4, 8), np.float32), name="X"), Tensor(np.zeros((4, 8), np.float32), name="Y")


@workload
def program() -> None:
    for b in P(4):
        copied[b](x=X[b], y=Y[b])


def mistake() -> None:
    program().compile(sanitize=True).replay(5)


# error[R203]: task copied[b=0]: its own C body writes outside its regions, at row 0, column 8 of `y`
#   --> own_body_one_column_too_far.py:8:16
#     |
#   8 | @kernel(c_src="for (int64_t c = 0; c <= x_cols; ++c) y[c] = x[c];")
#     |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: rows and columns below y_rows and y_cols of parameters that the kernel writes
#    = note:     the task was made at own_body_one_column_too_far.py:18:9
#    = note:     seed 0x5: program.replay(0x5) repeats the order of this run
