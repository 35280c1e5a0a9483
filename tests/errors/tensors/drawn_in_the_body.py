# ruff: noqa: F821
"""NumPy draws numbers in a body, which is traced once for all calls."""

import numpy as np

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


def mistake() -> None:
    @jit
    def dropped(x: Tensor["t", 8, F32]):
        return np.where(np.random.rand(8) > .5, x, 0)
    dropped.trace()


# error[J108]: np.random draws while the body is traced: each call would compute with the same numbers
#   --> drawn_in_the_body.py:14:16
#      |
#   14 |         return np.where(np.random.rand(8) > .5, x, 0)
#      |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: tt.random(shape, seed)
#    = found:    an array of shape (8,)
#    = help:     the seed may be a parameter, Scalar[DType.I32]; or draw before the call, and pass the array
