# ruff: noqa: F821
"""A body deletes a row."""

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 8, F32]):
        del x[0]
        return x
    f.trace()


# error[K103]: del of a tensor, whose elements are known only at run time
#   --> row_deleted.py:12:13
#      |
#   12 |         del x[0]
#      |             ^^^^
#    = expected: a value that is known while the body is traced
#    = found:    <x: Tensor[t, 8, f32]>
#    = help:     slices take the elements that stay: x[1:], or np.concatenate of several
