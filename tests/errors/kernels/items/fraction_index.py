"""A fraction as an index."""

from pto_wsp import DType, In, Out, Scalar, Tensor, Tile, pto


def mistake(x: In[Tile[3, 4, DType.I32]], t: In[Tensor], n: Scalar[DType.I32], out: Out[Tile[3, 4, DType.I32]]):
    pto.store(out, x * pto.item(x, 1.5, 0))


# error[T209]: `pto.item`: the row: not a whole number
#   --> fraction_index.py:7:24
#     |
#   7 |     pto.store(out, x * pto.item(x, 1.5, 0))
#     |                        ^^^^^^^^^^^^^^^^^^^
#    = expected: a number or integer scalar
#    = found:    1.5
