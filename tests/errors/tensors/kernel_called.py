# ruff: noqa: F821
"""A function on tensors calls a kernel."""

import numpy as np

from pto_wsp import DType, InOut, Tensor, Tile, jit, kernel


@kernel
def increment(x: InOut[Tile[4, 8, DType.F32]]):
    x += 1


@jit(target="interp")
def incremented(x: Tensor["t", 8, DType.F32]):
    y = x * 1
    increment(y)
    return y


def mistake() -> None:
    incremented(np.ones((4, 8), np.float32))


# error[K105]: kernel `increment` was called in the body of a function on tensors
#   --> kernel_called.py:17:5
#      |
#   17 |     increment(y)
#      |     ^^^^^^^^^^^^
#    = help:     f.lower(plan, x=X, out=Y) >> w() runs the function's tasks, then those of a workload w
