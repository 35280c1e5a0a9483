# ruff: noqa: F821
"""A function of a module of NumPy has no op."""

import numpy as np

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 64, F32]):
        return np.fft.fft(x)
    f.trace()


# error[J108]: np.fft.fft has no meaning on traced tensors
#   --> function_of_a_module.py:14:16
#      |
#   14 |         return np.fft.fft(x)
#      |                ^^^^^^^^^^^^^
#    = expected: a function that the op table has, or tt
#    = help:     compute it before the call, and pass it as a parameter
