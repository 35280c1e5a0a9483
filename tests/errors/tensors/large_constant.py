# ruff: noqa: F821
"""A body captures a large array."""

import numpy as np

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 64, F32]):
        return x @ np.zeros((64, 1000), np.float32)
    f.trace()


# error[J105]: an array of 64,000 elements would become a constant of the function
#   --> large_constant.py:14:16
#      |
#   14 |         return x @ np.zeros((64, 1000), np.float32)
#      |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: at most 4,096 elements
#    = found:    an array of shape (64, 1000)
#    = help:     pass it as a parameter: each call then brings its own
