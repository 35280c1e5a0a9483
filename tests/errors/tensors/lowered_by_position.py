# ruff: noqa: F821
"""A function is lowered with its arguments by position."""

import numpy as np

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


@jit
def f(x: Tensor["t", 8, F32]):
    return x * 2


def mistake() -> None:
    f.lower(None, np.zeros((4, 8), np.float32))


# error[T101]: `JitFunction.lower`: too many positional arguments
#   --> lowered_by_position.py:17:5
#      |
#   17 |     f.lower(None, np.zeros((4, 8), np.float32))
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: JitFunction.lower(plan=None, /, *, passes=None, dump=False, **tensors)
#    = found:    JitFunction.lower(None, array([[0., 0., 0., 0., 0., 0., 0., 0...)
#    = help:     give the others by name, name=value
