"""A tile is bounded by a number that is not whole."""

import numpy as np

from pto_wsp import DType, Symbol, Tensor, workload

X = Tensor(np.zeros((16, 128), np.float32), name="X")
share = Symbol("share", DType.F32)


@workload
def program() -> None:
    X.clip(share * 16, 128)


def mistake() -> None:
    program()


# error[T302]: clip takes one limit a dimension
#   --> clip_to_a_float.py:13:5
#      |
#   13 |     X.clip(share * 16, 128)
#      |     ^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: 2 limits, each a whole number >= 1, a whole scalar of the run, or None
#    = found:    Symbolic(share * 16), 128
