"""A negative amount of scratch."""

from pto_wsp import DType, Out, Tile, kernel

TILE = Tile[4, 8, DType.F32]


def mistake() -> None:
    @kernel(c_src="y[0] = 1;", scratch_bytes=-1)
    def fill(y: Out[TILE]) -> None: ...


# error[K107]: @kernel: scratch_bytes is not a number of bytes
#   --> own_scratch_bytes.py:9:6
#     |
#   9 |     @kernel(c_src="y[0] = 1;", scratch_bytes=-1)
#     |      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: 0 .. 1073741824
#    = found:    -1
