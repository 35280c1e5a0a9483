# ruff: noqa: F821
"""A tensor is repeated two and a half times."""

import numpy as np

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 64, F32]):
        return np.repeat(x, 2.5)
    f.trace()


# error[J208]: `repeat` repeats a constant number of times
#   --> repeated_a_fraction.py:14:16
#      |
#   14 |         return np.repeat(x, 2.5)
#      |                ^^^^^^^^^^^^^^^^^
#    = expected: a whole number >= 1
#    = found:    2.5
