"""No index for a tile of several elements."""

from pto_wsp import DType, In, Out, Scalar, Tensor, Tile, pto


def mistake(x: In[Tile[3, 4, DType.I32]], t: In[Tensor], n: Scalar[DType.I32], out: Out[Tile[3, 4, DType.I32]]):
    pto.store(out, x * x.item())


# error[T209]: `pto.item`: the row: not a whole number
#   --> no_index.py:7:24
#     |
#   7 |     pto.store(out, x * x.item())
#     |                        ^^^^^^^^
#    = expected: a number or integer scalar
#    = found:    NoneType: None
#    = help:     a row and a column are both needed
