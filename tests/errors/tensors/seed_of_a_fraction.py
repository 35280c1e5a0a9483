# ruff: noqa: F821
"""A seed is no whole number."""

from pto_wsp import DType, Tensor, jit, tt

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 64, F32]):
        return x + tt.random(x.shape, 0.5)
    f.trace()


# error[J209]: `tt.random`: the seed is no whole number
#   --> seed_of_a_fraction.py:12:20
#      |
#   12 |         return x + tt.random(x.shape, 0.5)
#      |                    ^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a whole number, or a scalar of one
#    = found:    0.5
#    = help:     a // b is whole
