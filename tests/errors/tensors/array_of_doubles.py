# ruff: noqa: F821
"""An array that NumPy makes in a body has NumPy's own dtype."""

import numpy as np

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 8, F32]):
        return x * np.linspace(0, 1, 8)
    f.trace()


# error[T203]: `mul`: operands of different dtypes
#   --> array_of_doubles.py:14:16
#      |
#   14 |         return x * np.linspace(0, 1, 8)
#      |                ^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: one dtype
#    = found:    <x: Tensor[t, 8, f32]> and <constant: Tensor[8, f64]>
#    = help:     NumPy made the array: array.astype(np.float32)
