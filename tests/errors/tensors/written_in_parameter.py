# ruff: noqa: F821
"""A body writes a tensor that it may only read."""

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 64, F32]):
        x[0] = 1.0
        return x * 2
    f.trace()


# error[J102]: `x` is an In parameter, which is only read
#   --> written_in_parameter.py:12:9
#      |
#   12 |         x[0] = 1.0
#      |         ^^^^
#    = expected: state of tt.zeros, a value that the body made, or an InOut parameter
#    = found:    <x: Tensor[t, 64, f32]>
#    = help:     x = x + 1 makes a new tensor; InOut[...] declares a parameter that is written: `x`
