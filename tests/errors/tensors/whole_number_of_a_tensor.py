# ruff: noqa: F821
"""An element is used as a number of Python."""

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 64, F32]):
        return x * int(x[0, 0])
    f.trace()


# error[K103]: int of a tensor, whose elements are known only at run time
#   --> whole_number_of_a_tensor.py:12:20
#      |
#   12 |         return x * int(x[0, 0])
#      |                    ^^^^^^^^^^^^
#    = expected: a value that is known while the body is traced
#    = found:    <x: Tensor[f32]>
#    = help:     an element is known only at run time; x[i] of whole numbers is a scalar for indices and bounds
