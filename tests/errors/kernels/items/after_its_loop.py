"""An item is used after the loop in which it was read."""

from pto_wsp import DType, In, Out, Scalar, Tensor, Tile, pto


def mistake(x: In[Tile[3, 4, DType.I32]], t: In[Tensor], n: Scalar[DType.I32], out: Out[Tile[3, 4, DType.I32]]):
    for j in pto.range(n):
        last = pto.item(x, 0, j)
    pto.store(out, x * last)


# error[K104]: the item `last` was read inside a loop that has ended
#   --> after_its_loop.py:9:20
#     |
#   9 |     pto.store(out, x * last)
#     |                    ^^^^^^^^
#    = help:     keep the element in a [1, 1] buffer made before the loop, and read the item after it
