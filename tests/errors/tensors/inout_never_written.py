# ruff: noqa: F821
"""An InOut parameter is rebound, and never written."""

from pto_wsp import DType, InOut, Tensor, jit

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: InOut[Tensor["t", 64, F32]]):
        x = x + 1
    f.trace()


# error[J103]: `f`: the InOut parameter `x` is never written
#   --> inout_never_written.py:11:11
#      |
#   11 |     def f(x: InOut[Tensor["t", 64, F32]]):
#      |           ^
#    = expected: x[:] = ..., or x += ...
#    = found:    its name alone, bound or not
#    = help:     x = x + 1 makes another tensor; a parameter that is only read is no InOut
