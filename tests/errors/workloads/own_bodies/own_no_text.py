"""The body is no text."""

from pto_wsp import DType, Out, Tile, kernel

TILE = Tile[4, 8, DType.F32]


def mistake() -> None:
    @kernel(c_src=b"y[0] = 1;")
    def fill(y: Out[TILE]) -> None: ...


# error[K107]: @kernel: c_src is not a text
#   --> own_no_text.py:9:6
#     |
#   9 |     @kernel(c_src=b"y[0] = 1;")
#     |      ^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: the body of a function, as a string
#    = found:    bytes: b'y[0] = 1;'
