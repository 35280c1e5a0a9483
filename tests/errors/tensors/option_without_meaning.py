# ruff: noqa: F821
"""An option of a ufunc has no meaning."""

import numpy as np

from pto_wsp import DType, Tensor, jit, tt

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 64, F32]):
        y = tt.zeros(x.shape)
        np.exp(x, out=y)
        return y
    f.trace()


# error[J108]: np.exp with out= has no meaning on traced tensors
#   --> option_without_meaning.py:15:9
#      |
#   15 |         np.exp(x, out=y)
#      |         ^^^^^^^^^^^^^^^^
#    = expected: a function that the op table has
#    = help:     x[:] = value writes in place
