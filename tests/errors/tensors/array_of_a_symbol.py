# ruff: noqa: E501, F821
"""NumPy makes an array of an extent that only a call knows."""

import numpy as np

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 8, F32]):
        return x + np.zeros(x.shape)
    f.trace()


# error[K103]: index() of a value known only at run time: t
#   --> array_of_a_symbol.py:14:20
#      |
#   14 |         return x + np.zeros(x.shape)
#      |                    ^^^^^^^^^^^^^^^^^
#    = expected: a number that is known while the body is traced
#    = found:    t
#    = help:     Python's range, lists and NumPy arrays need a number now; loop with P(...), pto.range(...) or tt.loop(...), wrap an array as a Tensor to read its elements, and make tensors of a function by tt.zeros and kin
