# ruff: noqa: F821
"""Iterations of tt.each write rows that overlap."""

import numpy as np

from pto_wsp import DType, Tensor, jit, tt

F32, I32 = DType.F32, DType.I32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 8, F32]):
        out = tt.zeros((x.shape[0] + 1, 8))
        for i in tt.each(x.shape[0]):
            out[i:i + 2] = x[i]
        return out
    f(np.ones((9, 8), np.float32))


# error[W201]: iterations of `i` without an order between them write the same elements of `out`
#   --> each_writes_overlapping_rows.py:16:13
#      |
#   16 |             out[i:i + 2] = x[i]
#      |             ^^^^^^^^^^^^
#    = expected: iterations of `i` touch different elements, or only read
#    = found:    out[1, 0] is written where i = 0, and again where i = 1
#    = help:     tt.loop runs iterations in order; a table or bounds from a table need a contract, Injective or Monotone
#    = note:     for example with t = 2
