# ruff: noqa: F821
"""A -1 needs an exact division."""

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 64, F32]):
        return x.reshape(-1, 100)
    f.trace()


# error[J204]: `reshape`: t * 64 elements are not divided exactly by 100
#   --> inexact_reshape.py:12:16
#      |
#   12 |         return x.reshape(-1, 100)
#      |                ^^^^^^^^^^^^^^^^^^
#    = expected: extents whose product divides the number of elements, for all values of the symbols
#    = found:    [-1, 100] of <x: Tensor[t, 64, f32]>
