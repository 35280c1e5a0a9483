# ruff: noqa: F821
"""A reduction names an axis that the tensor does not have."""

import numpy as np

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 64, F32]):
        return np.sum(x, axis=2)
    f.trace()


# error[J203]: `sum`: no axis of `x`
#   --> axis_that_is_not_there.py:14:16
#      |
#   14 |         return np.sum(x, axis=2)
#      |                ^^^^^^^^^^^^^^^^^
#    = expected: -2 .. 1, each once
#    = found:    2
