# ruff: noqa: F821
"""A symbol is split into equal parts, and may be odd."""

import numpy as np

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 8, F32]):
        low, high = np.split(x, 2)
        return high, low
    f.trace()


# error[J204]: `split`: t positions are not split so
#   --> split_of_a_symbol.py:14:21
#      |
#   14 |         low, high = np.split(x, 2)
#      |                     ^^^^^^^^^^^^^^
#    = expected: a number of parts that divides them exactly, or a list of places
#    = found:    2
#    = help:     places may be of symbols: np.split(x, [x.shape[0] // 2])
