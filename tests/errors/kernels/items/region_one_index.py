"""One index for a Tensor parameter."""

from pto_wsp import DType, In, Out, Scalar, Tensor, Tile, pto


def mistake(x: In[Tile[3, 4, DType.I32]], t: In[Tensor], n: Scalar[DType.I32], out: Out[Tile[3, 4, DType.I32]]):
    pto.store(out, x * pto.item(t, 2))


# error[T209]: `pto.item`: the column: not a whole number
#   --> region_one_index.py:7:24
#     |
#   7 |     pto.store(out, x * pto.item(t, 2))
#     |                        ^^^^^^^^^^^^^^
#    = expected: a number or integer scalar
#    = found:    NoneType: None
#    = help:     a row and a column are both needed
