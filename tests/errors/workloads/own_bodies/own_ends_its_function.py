"""The body ends its function and begins another."""

from pto_wsp import DType, Out, Tile, kernel

TILE = Tile[4, 8, DType.F32]


def mistake() -> None:
    @kernel(c_src="return 0; } int other(void) { return 1;")
    def fill(y: Out[TILE]) -> None: ...


# error[K107]: kernel `fill`: its own body cannot stand in a function: `}` closes nothing that the text has opened
#   --> own_ends_its_function.py:9:30
#     |
#   9 |     @kernel(c_src="return 0; } int other(void) { return 1;")
#     |                              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
