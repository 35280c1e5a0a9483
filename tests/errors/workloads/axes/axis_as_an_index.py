"""An axis is used as an index."""

import numpy as np

from pto_wsp import DenseDyn, Tensor

rows = DenseDyn(4)
X = Tensor(np.zeros((4, 8), np.float32))


def mistake() -> None:
    X[rows]


# error[T302]: an axis is no index
#   --> axis_as_an_index.py:12:5
#      |
#   12 |     X[rows]
#      |     ^^^^^^^
#    = expected: a position of the axis
#    = found:    DenseDyn(4)
#    = help:     loop over the axis, `for i in P(axis)`, and index with i
