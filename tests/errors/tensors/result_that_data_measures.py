# ruff: noqa: F821
"""A result has as many rows as a table says."""

from pto_wsp import DType, Monotone, Tensor, jit

F32, I32 = DType.F32, DType.I32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 64, F32], starts: Monotone[Tensor["b", I32]]):
        rows = x[starts[0]:starts[1]]
        return rows * 2
    f.trace()


# error[J104]: `f` returns a tensor whose extents only data knows
#   --> result_that_data_measures.py:11:5
#      |
#   11 |     def f(x: Tensor["t", 64, F32], starts: Monotone[Tensor["b", I32]]):
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: extents of numbers and of symbols, which a call knows
#    = found:    <out: Tensor[min(max(0, starts[1]), t) - min(max(0, starts[0]), t), 64, f32]>
#    = help:     reduce it, or put it into a tensor of a known shape: out[lo:hi] = value
