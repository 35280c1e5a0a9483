# ruff: noqa: F821
"""A function on tensors computes with a Symbol, which a run of a workload binds."""

import numpy as np

from pto_wsp import DType, Symbol, Tensor, jit

n = Symbol("n")


@jit(target="interp")
def scaled(x: Tensor["t", 8, DType.F32]):
    return x * n


def mistake() -> None:
    scaled(np.ones((2, 8), np.float32))


# error[J209]: `mul`: `n` is a scalar of a workload, not of this function
#   --> symbol_of_a_workload.py:13:12
#      |
#   13 |     return x * n
#      |            ^^^^^
#    = help:     give the function a Scalar[dtype] parameter and pass a number to each call
