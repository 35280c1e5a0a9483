# ruff: noqa: F821
"""A parameter is Out."""

from pto_wsp import DType, Out, Tensor, jit


def mistake() -> None:
    @jit
    def f(x: Out[Tensor["t", DType.F32]]):
        return x
    f.trace()


# error[J101]: `f`: parameter `x`: Out takes no type of a whole tensor
#   --> out_parameter.py:9:11
#     |
#   9 |     def f(x: Out[Tensor["t", DType.F32]]):
#     |           ^
#    = expected: InOut[Tensor["t", f32]]
#    = found:    Out[Tensor["t", f32]]
#    = help:     return what the function makes; InOut[...] is written in place
