"""Two layouts cut one dimension along different axes of the mesh."""

from pto_wsp import TensorLayout

rows = TensorLayout.sharded(0, 2, "x")
others = TensorLayout.sharded(0, 2, "y")


def mistake() -> None:
    rows.join(others)


# error[M101]: dimension 0 is cut along two mesh axes
#   --> dimension_cut_along_two_axes.py:10:5
#      |
#   10 |     rows.join(others)
#      |     ^^^^^^^^^^^^^^^^^
#   --> dimension_cut_along_two_axes.py:5:8: the first was made here
#     |
#   5 | rows = TensorLayout.sharded(0, 2, "x")
#     |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   --> dimension_cut_along_two_axes.py:6:10: the second was made here
#     |
#   6 | others = TensorLayout.sharded(0, 2, "y")
#     |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: S('x') on both sides, or one side whole
#    = found:    TensorLayout(S('x'), R) and TensorLayout(S('y'), R)
#    = help:     relayout the second operand to TensorLayout(S('x'), R)
