# ruff: noqa: F821
"""A loop does not go on."""

from pto_wsp import DType, Tensor, jit, tt

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 64, F32]):
        out = tt.zeros((64,))
        for i in tt.loop(0, x.shape[0], 0):
            out += x[i]
        return out
    f.trace()


# error[J110]: `tt.loop`: the step is not a number >= 1
#   --> step_of_zero.py:13:18
#      |
#   13 |         for i in tt.loop(0, x.shape[0], 0):
#      |                  ^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a whole number >= 1
#    = found:    0
