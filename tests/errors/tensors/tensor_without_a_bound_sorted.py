# ruff: noqa: F821
"""An axis that is sorted has no bound."""

import numpy as np

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 64, F32]):
        return np.sort(x, axis=0)
    f.trace()


# error[J205]: `sort` needs the whole axis at once, and t has no bound
#   --> tensor_without_a_bound_sorted.py:14:16
#      |
#   14 |         return np.sort(x, axis=0)
#      |                ^^^^^^^^^^^^^^^^^^
#    = expected: a number, or a symbol with a promised bound
#    = found:    <x: Tensor[t, 64, f32]>
#    = help:     tt.assume(x.shape[0] <= 4096): each call checks it
