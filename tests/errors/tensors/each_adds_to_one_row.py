# ruff: noqa: F821
"""Iterations of tt.each carry a sum, as those of tt.loop may."""

import numpy as np

from pto_wsp import DType, Tensor, jit, tt

F32, I32 = DType.F32, DType.I32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 8, F32]):
        total = tt.zeros((8,))
        for i in tt.each(x.shape[0]):
            total[:] = total + x[i]
        return total
    f(np.ones((9, 8), np.float32))


# error[W201]: iterations of `i` without an order between them read and write the same elements of `total`
#   --> each_adds_to_one_row.py:16:13
#      |
#   16 |             total[:] = total + x[i]
#      |             ^^^^^^^^
#   --> each_adds_to_one_row.py:16:24: read here
#      |
#   16 |             total[:] = total + x[i]
#      |                        ^^^^^^^^^^^^
#    = expected: iterations of `i` touch different elements, or only read
#    = found:    total[0] is read where i = 1, and written where i = 0
#    = help:     tt.loop runs iterations in order; a table or bounds from a table need a contract, Injective or Monotone
#    = note:     for example with t = 2
