# ruff: noqa: F821
"""A function of NumPy has no op."""

import numpy as np

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 64, F32]):
        return np.unique(x)
    f.trace()


# error[J108]: np.unique has no meaning on traced tensors
#   --> function_without_meaning.py:14:16
#      |
#   14 |         return np.unique(x)
#      |                ^^^^^^^^^^^^
#    = expected: a function that the op table has, or tt
#    = help:     tt.rows_of(table, n) groups places
