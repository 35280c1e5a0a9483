"""The C body of a kernel multiplies by 3, its Python body by 2."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload

X, Y = Tensor(np.full((2, 1, 8), 1.5, np.float32)), Tensor(np.zeros((2, 1, 8), np.float32))


@kernel(c_src="for (int64_t c = 0; c < x_cols; ++c) y[c * y_col_step] = x[c * x_col_step] * 3;")
def twice(x: In[Tile[1, 8, DType.F32]], y: Out[Tile[1, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


@workload
def program() -> None:
    for b in P(2):
        twice[b](x=X[b], y=Y[b])


def mistake() -> None:
    program().compile().verify()


# error[R108]: `Y[0, 0, 0]` is not what NumPy has: task 0 `twice[b=0]` is the last to write it
#   --> body_that_computes_something_else.py:18:9
#      |
#   18 |         twice[b](x=X[b], y=Y[b])
#      |         ^^^^^^^^^^^^^^^^^^^^^^^^
#   --> body_that_computes_something_else.py:10:16: its own C body
#      |
#   10 | @kernel(c_src="for (int64_t c = 0; c < x_cols; ++c) y[c * y_col_step] = x[c * x_col_step] * 3;")
#      |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: 3.0, within 4.6e-05
#    = found:    4.5
#    = help:     twice.run(...) computes one task with the Python body
#    = note:     16 of 16 elements of `Y` are off, the worst by 1.5 at [0, 0, 0]
