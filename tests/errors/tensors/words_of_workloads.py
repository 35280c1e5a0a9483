# ruff: noqa: F821
"""A function on tensors loops with the workload's word."""

import numpy as np

from pto_wsp import DType, Tensor, jit, parallel_for


@jit(target="interp")
def doubled(x: Tensor["t", 8, DType.F32]):
    parallel_for(x.shape[0], lambda t: x[t] * 2)
    return x


def mistake() -> None:
    doubled(np.ones((2, 8), np.float32))


# error[K105]: `parallel_for` is a word of workloads, and was called in another body
#   --> words_of_workloads.py:11:5
#      |
#   11 |     parallel_for(x.shape[0], lambda t: x[t] * 2)
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = help:     in a kernel it is pto.range(n), in a workload P(n), in a function on tensors tt.each(n)
