"""An item of a scalar."""

from pto_wsp import DType, In, Out, Scalar, Tensor, Tile, pto


def mistake(x: In[Tile[3, 4, DType.I32]], t: In[Tensor], n: Scalar[DType.I32], out: Out[Tile[3, 4, DType.I32]]):
    pto.store(out, x * pto.item(n))


# error[T213]: `pto.item` reads an element of a tile or of a Tensor parameter
#   --> of_a_scalar.py:7:24
#     |
#   7 |     pto.store(out, x * pto.item(n))
#     |                        ^^^^^^^^^^^
#    = expected: a tile, or a Tensor parameter
#    = found:    Symbolic(n)
#    = help:     a scalar is used as it is
