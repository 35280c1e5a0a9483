# ruff: noqa: F821
"""A mask picks elements, and only data knows how many."""

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 64, F32]):
        return x[x > 0]
    f.trace()


# error[J202]: a mask picks a number of elements that only data knows
#   --> mask_as_an_index.py:12:16
#      |
#   12 |         return x[x > 0]
#      |                ^^^^^^^^
#    = expected: x[mask] = number, to write
#    = found:    x[<out.gt: Tensor[t, 64, bool]>]
#    = help:     np.where(mask, x, 0) keeps the shape; tt.rows_of(table, n) groups places
