# ruff: noqa: F821
"""A fraction is added to whole numbers."""

from pto_wsp import DType, Tensor, jit


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 64, DType.I32]):
        return x + 0.5
    f.trace()


# error[T203]: `add`: a float meets a tile of i32
#   --> float_among_integers.py:10:16
#      |
#   10 |         return x + 0.5
#      |                ^^^^^^^
#    = expected: a number that i32 holds
#    = found:    0.5
#    = help:     write a whole number, or pto.cast the tile to a float
