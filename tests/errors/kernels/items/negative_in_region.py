"""An item ahead of a Tensor parameter."""

from pto_wsp import DType, In, Out, Scalar, Tensor, Tile, pto


def mistake(x: In[Tile[3, 4, DType.I32]], t: In[Tensor], n: Scalar[DType.I32], out: Out[Tile[3, 4, DType.I32]]):
    pto.store(out, x * pto.item(t, -1, 0))


# error[T301]: `pto.load` leaves parameter `t`
#   --> negative_in_region.py:7:24
#     |
#   7 |     pto.store(out, x * pto.item(t, -1, 0))
#     |                        ^^^^^^^^^^^^^^^^^^
#    = expected: 0 <= row
#    = found:    row -1
