# ruff: noqa: F821
"""A kernel calls a function on tensors with its tile."""

import numpy as np

from pto_wsp import DType, In, Out, Tensor, Tile, jit, kernel, pto


@jit
def doubled(x: Tensor["t", 8, DType.F32]):
    return x * 2


@kernel
def copied(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]):
    pto.store(y, doubled(x))


def mistake() -> None:
    copied.run(np.ones((4, 8), np.float32))


# error[J105]: `doubled`, a function on tensors, is called in a kernel
#   --> called_in_a_kernel.py:16:18
#      |
#   16 |     pto.store(y, doubled(x))
#      |                  ^^^^^^^^^^
#    = expected: arrays
#    = found:    a tile
#    = help:     a plain Python function that both call is traced in either
