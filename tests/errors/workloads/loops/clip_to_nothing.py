"""A tile is bounded by numbers for other dimensions."""

import numpy as np

from pto_wsp import Symbol, Tensor, minimum, workload

X, n = Tensor(np.zeros((16, 128), np.float32), name="X"), Symbol("n")


@workload
def program() -> None:
    X.clip(minimum(n, 0))


def mistake() -> None:
    program()


# error[T302]: clip takes one limit a dimension
#   --> clip_to_nothing.py:12:5
#      |
#   12 |     X.clip(minimum(n, 0))
#      |     ^^^^^^^^^^^^^^^^^^^^^
#    = expected: 2 limits, each a whole number >= 1, a whole scalar of the run, or None
#    = found:    Symbolic(min(n, 0))
