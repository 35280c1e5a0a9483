"""Two bodies for the NPU."""

from pto_wsp import DType, In, Out, Tile, kernel

TILE = Tile[4, 8, DType.F32]


def mistake() -> None:
    @kernel(cpp_src="TADD(y, x, x);", cpp_tu_path="unit.cpp")
    def fill(x: In[TILE], y: Out[TILE]) -> None: ...


# error[K107]: @kernel is given cpp_src and cpp_tu_path
#   --> own_two_cpp_bodies.py:9:6
#     |
#   9 |     @kernel(cpp_src="TADD(y, x, x);", cpp_tu_path="unit.cpp")
#     |      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: one of cpp_src, cpp_body_path, cpp_tu_path
#    = help:     a kernel has one body a target
