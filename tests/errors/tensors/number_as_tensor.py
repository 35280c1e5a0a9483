# ruff: noqa: F821
"""An op is given a number alone."""

from pto_wsp import DType, Tensor, jit, tt

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 64, F32]):
        return x * tt.exp(2.0)
    f.trace()


# error[J209]: `exp` takes a tensor
#   --> number_as_tensor.py:12:20
#      |
#   12 |         return x * tt.exp(2.0)
#      |                    ^^^^^^^^^^^
#    = expected: a tensor of this function
#    = found:    2.0
#    = help:     of scalars alone use Python's operators, np.maximum and np.minimum; tt.cast(n, DType.F32) makes a tensor of a number
