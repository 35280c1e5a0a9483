"""The file of a body is not there."""

from pto_wsp import DType, Out, Tile, kernel

TILE = Tile[4, 8, DType.F32]


def mistake() -> None:
    @kernel(c_path="no_such_body.c")
    def fill(y: Out[TILE]) -> None: ...


# error[K107]: @kernel: the file of c_path cannot be read
#   --> own_missing_file.py:9:6
#     |
#   9 |     @kernel(c_path="no_such_body.c")
#     |      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a text file
#    = found:    no_such_body.c: No such file or directory
#    = help:     a path is relative to the folder of the Python file
