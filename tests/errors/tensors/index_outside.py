# ruff: noqa: F821
"""An index lies outside."""

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 64, F32]):
        return x[:, 64] * 2.0
    f.trace()


# error[T301]: `x` has no position 64 along dimension 1
#   --> index_outside.py:12:16
#      |
#   12 |         return x[:, 64] * 2.0
#      |                ^^^^^^^^
#    = expected: -64 .. 63
#    = found:    64
