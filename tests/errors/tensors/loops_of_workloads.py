# ruff: noqa: F821
"""A function on tensors loops with the workload's word."""

import numpy as np

from pto_wsp import DType, P, Tensor, jit


@jit(target="interp")
def copied(x: Tensor["t", 8, DType.F32]):
    y = x * 1
    for b in P(x.shape[0]):
        y[b] += 1
    return y


def mistake() -> None:
    copied(np.ones((4, 8), np.float32))


# error[K105]: a loop `P(...)` outside a workload
#   --> loops_of_workloads.py:12:14
#      |
#   12 |     for b in P(x.shape[0]):
#      |              ^^^^^^^^^^^^^
#    = help:     in a kernel it is pto.range(n), in a workload P(n), in a function on tensors tt.each(n)
