"""The body is empty."""

from pto_wsp import DType, Out, Tile, kernel

TILE = Tile[4, 8, DType.F32]


def mistake() -> None:
    @kernel(c_src="  ")
    def fill(y: Out[TILE]) -> None: ...


# error[K107]: @kernel: c_src is empty
#   --> own_empty.py:9:6
#     |
#   9 |     @kernel(c_src="  ")
#     |      ^^^^^^^^^^^^^^^^^^
#    = expected: the body of a function
