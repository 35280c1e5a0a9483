"""A reduction by NumPy's name that would drop a dimension."""

from pto_wsp import DType, In, Out, Tile, pto


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 1, DType.F32]]) -> None:
    pto.store(y, x.sum(axis=1))


# error[T214]: `sum`: a tile in a kernel has two dimensions, and a reduction keeps both
#   --> reduction_without_keepdims.py:7:18
#     |
#   7 |     pto.store(y, x.sum(axis=1))
#     |                  ^^^^^^^^^^^^^
#    = expected: keepdims=True
#    = found:    keepdims=False
#    = help:     x.sum(axis=1, keepdims=True) gives [R, 1], on whole arrays too
