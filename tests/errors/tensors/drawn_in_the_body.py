# ruff: noqa: F821
"""NumPy draws numbers in a body, which is traced once for all calls."""

import numpy as np

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


def mistake() -> None:
    @jit
    def dropped(x: Tensor["t", 8, F32]):
        return x * np.random.rand(8).astype(np.float32)
    dropped.trace()


# error[J108]: the body of `dropped` is traced once, and computes with numbers that change: each call would have those of the first
#   --> drawn_in_the_body.py:14:16
#      |
#   14 |         return x * np.random.rand(8).astype(np.float32)
#      |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: numbers that are the same each time, or come with each call
#    = found:    a drawn number, or the time
#    = help:     tt.random(shape, seed) draws in each call; or draw before the call, and pass the numbers
