# ruff: noqa: F821
"""A call has fewer elements than topk gives."""

import numpy as np

from pto_wsp import DType, Tensor, jit, tt

F32 = DType.F32


def mistake() -> None:
    @jit(target="interp")
    def f(x: Tensor[2, "n", F32]):
        tt.assume(x.shape[1] <= 64)
        return tt.topk(x, 3)[0]
    f(np.zeros((2, 2), np.float32))


# error[J201]: `f` assumes n >= 3
#   --> topk_of_too_few.py:16:5
#      |
#   16 |     f(np.zeros((2, 2), np.float32))
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   --> topk_of_too_few.py:15:16: it is assumed here
#      |
#   15 |         return tt.topk(x, 3)[0]
#      |                ^^^^^^^^^^^^^
#    = found:    n = 2
