"""A body solves equations, which no op does."""

import numpy as np

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor[8, 8, F32]):
        return np.linalg.inv(x)
    f.trace()


# error[J108]: np.linalg.inv has no meaning on traced tensors
#   --> inverse.py:13:16
#      |
#   13 |         return np.linalg.inv(x)
#      |                ^^^^^^^^^^^^^^^^
#    = expected: a function that the op table has, or tt
#    = help:     compute it before the call, and pass it as a parameter
