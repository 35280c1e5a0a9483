# ruff: noqa: F821
"""A body asks for the elements of a tensor as a list."""

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 8, F32]):
        return x.tolist()
    f.trace()


# error[T211]: a tensor has no `tolist`
#   --> list_of_a_tensor.py:12:16
#      |
#   12 |         return x.tolist()
#      |                ^^^^^^^^
#    = expected: shape, dtype, T, operators, and methods of NumPy's arrays
#    = help:     return the tensor: what the call gives is an array
