# ruff: noqa: F821
"""A function returns a number."""

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 64, F32]):
        return x.shape[0]
    f.trace()


# error[J104]: `f` returns what is no tensor
#   --> result_that_is_a_number.py:11:5
#      |
#   11 |     def f(x: Tensor["t", 64, F32]):
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a tensor, a tuple, list or dict of tensors, or None
#    = found:    Symbolic: Symbolic(t)
#    = help:     tt.cast(n, DType.F32) makes a tensor of a number
