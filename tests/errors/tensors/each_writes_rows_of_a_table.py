# ruff: noqa: F821
"""Iterations of tt.each write the rows that a table without a contract says."""

import numpy as np

from pto_wsp import DType, Tensor, jit, tt

F32, I32 = DType.F32, DType.I32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 8, F32], row: Tensor["t", I32]):
        out = tt.zeros(x.shape)
        for i in tt.each(x.shape[0]):
            out[row[i]] = x[i]
        return out
    f(np.ones((9, 8), np.float32), np.arange(9, dtype=np.int32))


# error[W201]: iterations of `i` without an order between them write the same elements of `out`
#   --> each_writes_rows_of_a_table.py:16:13
#      |
#   16 |             out[row[i]] = x[i]
#      |             ^^^^^^^^^^^
#    = expected: iterations of `i` touch different elements, or only read
#    = found:    out[0, 0] is written where i = 0, and again where i = 1
#    = help:     tt.loop runs iterations in order; a table or bounds from a table need a contract, Injective or Monotone
#    = note:     for example with t = 2, row[0] = 0, row[1] = 0
