# ruff: noqa: F821
"""A function returns what the caller has already."""

from pto_wsp import DType, InOut, Tensor, jit

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: InOut[Tensor["t", 64, F32]]):
        x += 1.0
        return x
    f.trace()


# error[J104]: `f` returns the InOut parameter `x`, which the caller has
#   --> inout_returned.py:11:5
#      |
#   11 |     def f(x: InOut[Tensor["t", 64, F32]]):
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: tensors that the body made
#    = found:    <x: Tensor[t, 64, f32]>
#    = help:     leave it out of the results
