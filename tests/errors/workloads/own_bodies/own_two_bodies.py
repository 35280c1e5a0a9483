"""Two bodies for one target."""

from pto_wsp import DType, Out, Tile, kernel

TILE = Tile[4, 8, DType.F32]


def mistake() -> None:
    @kernel(c_src="y[0] = 1;", c_path="body.c")
    def fill(y: Out[TILE]) -> None: ...


# error[K107]: @kernel is given c_src and c_path
#   --> own_two_bodies.py:9:6
#     |
#   9 |     @kernel(c_src="y[0] = 1;", c_path="body.c")
#     |      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: one of c_src, c_path
#    = help:     a kernel has one body a target
