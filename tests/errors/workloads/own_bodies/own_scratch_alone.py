"""Scratch for no body."""

from pto_wsp import DType, Out, Tile, kernel

TILE = Tile[4, 8, DType.F32]


def mistake() -> None:
    @kernel(scratch_bytes=64)
    def fill(y: Out[TILE]) -> None: ...


# error[K107]: @kernel is given scratch_bytes without a C body that could use them
#   --> own_scratch_alone.py:9:6
#     |
#   9 |     @kernel(scratch_bytes=64)
#     |      ^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: c_src or c_path
