# ruff: noqa: F821
"""topk needs a whole axis, which has no bound."""

from pto_wsp import DType, Tensor, jit, tt

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 64, F32]):
        return tt.topk(x.T, 4)
    f.trace()


# error[J205]: `topk` needs the whole axis at once, and t has no bound
#   --> axis_without_a_bound.py:12:16
#      |
#   12 |         return tt.topk(x.T, 4)
#      |                ^^^^^^^^^^^^^^^
#    = expected: a number, or a symbol with a promised bound
#    = found:    <x: Tensor[64, t, f32]>
#    = help:     tt.assume(x.shape[0] <= 4096): each call checks it
