# ruff: noqa: F821
"""A call leaves nothing to find the largest of."""

import numpy as np

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


def mistake() -> None:
    @jit(target="interp")
    def f(x: Tensor["t", 64, F32]):
        return np.max(x, axis=0)
    f(np.zeros((0, 64), np.float32))


# error[J201]: `f` assumes t >= 1
#   --> extreme_of_nothing.py:15:5
#      |
#   15 |     f(np.zeros((0, 64), np.float32))
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   --> extreme_of_nothing.py:14:16: it is assumed here
#      |
#   14 |         return np.max(x, axis=0)
#      |                ^^^^^^^^^^^^^^^^^
#    = found:    t = 0
