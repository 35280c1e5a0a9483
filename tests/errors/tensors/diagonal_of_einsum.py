# ruff: noqa: F821
"""einsum names a letter twice."""

import numpy as np

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 64, F32]):
        return np.einsum("tt->t", x)
    f.trace()


# error[J207]: `einsum`: this text is not known here
#   --> diagonal_of_einsum.py:14:16
#      |
#   14 |         return np.einsum("tt->t", x)
#      |                ^^^^^^^^^^^^^^^^^^^^^
#    = expected: one or two operands, each letter once in each, no ...: "thd,hdc->thc"
#    = found:    'tt->t' of 1 operand
#    = help:     np.trace and diagonals have no op
