# ruff: noqa: F821
"""Operands have different dtypes."""

from pto_wsp import DType, Tensor, jit

F32, I32 = DType.F32, DType.I32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 64, F32], n: Tensor["t", 64, I32]):
        return x * n
    f.trace()


# error[T203]: `mul`: operands of different dtypes
#   --> mixed_dtypes.py:12:16
#      |
#   12 |         return x * n
#      |                ^^^^^
#    = expected: one dtype
#    = found:    <x: Tensor[t, 64, f32]> and <n: Tensor[t, 64, i32]>
#    = help:     convert one of them: n.astype(DType.F32)
