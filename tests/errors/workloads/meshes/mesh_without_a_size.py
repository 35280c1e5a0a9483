"""An axis of a mesh has no size."""

from pto_wsp import Mesh


def mistake() -> None:
    Mesh(x=2, y=0)


# error[M102]: axis `y` of a mesh has no size
#   --> mesh_without_a_size.py:7:5
#     |
#   7 |     Mesh(x=2, y=0)
#     |     ^^^^^^^^^^^^^^
#    = expected: a whole number, at least 1
#    = found:    0
