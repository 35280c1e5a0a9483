# ruff: noqa: E501, F821
"""A body decides on an element."""

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 64, F32]):
        if x[0, 0] > 0:
            return x * 2
        return x * 3
    f.trace()


# error[K103]: bool of a tensor, whose elements are known only at run time
#   --> if_on_a_tensor.py:12:12
#      |
#   12 |         if x[0, 0] > 0:
#      |            ^^^^^^^^^^^
#    = expected: a value that is known while the body is traced
#    = found:    <gt: Tensor[bool]>
#    = help:     if, while, and, or, not and chained comparisons decide while the body is traced: branch on scalars by `with tt.when(c):`, choose elements with np.where(mask, a, b), join masks with &, | and ~, compare by np.maximum and np.minimum in place of max and min
