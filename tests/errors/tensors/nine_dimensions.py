# ruff: noqa: F821
"""A tensor has too many dimensions."""

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 64, F32]):
        return x[(None,) * 7] * 2
    f.trace()


# error[J206]: a tensor has at most 8 dimensions
#   --> nine_dimensions.py:12:16
#      |
#   12 |         return x[(None,) * 7] * 2
#      |                ^^^^^^^^^^^^^^^^^^
#    = found:    9: [1, 1, 1, 1, 1, 1, 1, t, 64]
