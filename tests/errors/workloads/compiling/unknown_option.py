"""compile() is given an option that there is not."""

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
    program().compile(target="interp", thread=2)


# error[C104]: compile() has no option `thread`
#   --> unknown_option.py:22:5
#      |
#   22 |     program().compile(target="interp", thread=2)
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: one of threads, portable, dump, check_finite, verify_passes, sanitize, overheads, wall_trace, options
#    = help:     did you mean threads=...?
