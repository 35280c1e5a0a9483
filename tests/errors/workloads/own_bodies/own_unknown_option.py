"""An option that @kernel does not have."""

from pto_wsp import DType, Out, Tile, kernel

TILE = Tile[4, 8, DType.F32]


def mistake() -> None:
    @kernel(c_source="y[0] = 1;")
    def fill(y: Out[TILE]) -> None: ...


# error[K107]: @kernel has no option `c_source`
#   --> own_unknown_option.py:9:6
#     |
#   9 |     @kernel(c_source="y[0] = 1;")
#     |      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: one of c_src, cpp_src, c_path, cpp_body_path, cpp_tu_path, scratch_bytes
#    = help:     did you mean c_src=...?
