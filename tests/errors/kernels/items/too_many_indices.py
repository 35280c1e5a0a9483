"""Three indices."""

from pto_wsp import DType, In, Out, Scalar, Tensor, Tile, pto


def mistake(x: In[Tile[3, 4, DType.I32]], t: In[Tensor], n: Scalar[DType.I32], out: Out[Tile[3, 4, DType.I32]]):
    pto.store(out, x * pto.item(x, 0, 1, 2))


# error[T101]: `pto.item`: too many positional arguments
#   --> too_many_indices.py:7:24
#     |
#   7 |     pto.store(out, x * pto.item(x, 0, 1, 2))
#     |                        ^^^^^^^^^^^^^^^^^^^^
#    = expected: pto.item(x, row=None, col=None)
#    = found:    pto.item(<parameter x: In[Tile[3, 4, i32]]>, 0, 1, 2)
