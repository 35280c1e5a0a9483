# ruff: noqa: F821
"""A function on tensors branches with the kernel's word."""

import numpy as np

from pto_wsp import DType, Tensor, jit, pto


@jit(target="interp")
def halved(x: Tensor["t", 8, DType.F32]):
    with pto.when(x.shape[0] > 4):
        x = x / 2
    return x


def mistake() -> None:
    halved(np.ones((2, 8), np.float32))


# error[K105]: `pto.when` was called in a function on tensors
#   --> words_of_kernels.py:11:10
#      |
#   11 |     with pto.when(x.shape[0] > 4):
#      |          ^^^^^^^^^^^^^^^^^^^^^^^^
#    = help:     in a kernel it is pto.when(c), in a workload P.when(c), in a function on tensors tt.when(c)
