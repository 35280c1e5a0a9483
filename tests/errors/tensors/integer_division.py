# ruff: noqa: F821
"""Whole numbers are divided by /."""

from pto_wsp import DType, Tensor, jit

I32 = DType.I32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", I32]):
        return x / 2
    f.trace()


# error[T204]: `div` does not take i32
#   --> integer_division.py:12:16
#      |
#   12 |         return x / 2
#      |                ^^^^^
#    = expected: f32, f64, f16, bf16
#    = found:    <x: Tensor[t, i32]>
#    = help:     integers divide with // (tt.floordiv); or convert both: x.astype(DType.F32)
