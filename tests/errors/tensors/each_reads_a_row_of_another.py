# ruff: noqa: F821
"""Iterations of tt.each read a shifted view of what others write."""

from pto_wsp import DType, Tensor, jit, tt

F32, I32 = DType.F32, DType.I32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 8, F32]):
        out = tt.zeros((x.shape[0] + 1, 8))
        below = out[1:]
        for i in tt.each(x.shape[0]):
            out[i] = below[i] + x[i]
        return out
    f.lower()


# error[W201]: iterations of `i` without an order between them read and write the same elements of `out`
#   --> each_reads_a_row_of_another.py:15:13
#      |
#   15 |             out[i] = below[i] + x[i]
#      |             ^^^^^^
#   --> each_reads_a_row_of_another.py:15:22: read here
#      |
#   15 |             out[i] = below[i] + x[i]
#      |                      ^^^^^^^^^^^^^^^
#    = expected: iterations of `i` touch different elements, or only read
#    = found:    out[1, 0] is read where i = 0, and written where i = 1
#    = help:     tt.loop runs iterations in order; a table or bounds from a table need a contract, Injective or Monotone
#    = note:     for example with t = 2
