# ruff: noqa: F821
"""A subscript has two tables."""

from pto_wsp import DType, Tensor, jit

F32, I32 = DType.F32, DType.I32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 64, F32], a: Tensor["t", I32]):
        return x[a, a]
    f.trace()


# error[J202]: `x` is indexed by two tables
#   --> two_tables.py:12:16
#      |
#   12 |         return x[a, a]
#      |                ^^^^^^^
#    = expected: whole numbers, slices, None, ... and one table of places
#    = found:    [<a: Tensor[t, i32]>, <a: Tensor[t, i32]>]
#    = help:     np.take_along_axis(x, places, axis) takes element by element
