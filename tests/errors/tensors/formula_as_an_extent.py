# ruff: noqa: F821
"""An extent is a formula of a symbol."""

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t * 2", 64, F32]):
        return x * 2.0
    f.trace()


# error[J101]: `f`: parameter `x`: this is no type of a tensor: 't * 2' is no extent
#   --> formula_as_an_extent.py:11:11
#      |
#   11 |     def f(x: Tensor["t * 2", 64, F32]):
#      |           ^
#    = expected: Tensor["t", 4096, DType.F32]: whole numbers >= 1 or names of extents, then a dtype
#    = found:    Tensor['t * 2', 64, DType.F32]
#    = help:     a formula is no name: leave the annotation out, or compute the extent in the body
