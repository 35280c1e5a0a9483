# ruff: noqa: F821
"""A parameter has the name of an option of calls."""

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(out: Tensor["t", 64, F32]):
        return out * 2.0
    f.trace()


# error[J101]: `f`: no parameter may be called `out`
#   --> parameter_called_out.py:11:11
#      |
#   11 |     def f(out: Tensor["t", 64, F32]):
#      |           ^^^
#    = expected: another name
#    = help:     a call of the function has out= of its own
