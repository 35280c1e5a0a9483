"""An item is used after the branch in which it was read."""

from pto_wsp import DType, In, Out, Scalar, Tensor, Tile, pto


def mistake(x: In[Tile[3, 4, DType.I32]], t: In[Tensor], n: Scalar[DType.I32], out: Out[Tile[3, 4, DType.I32]]):
    with pto.when(n > 0):
        first = pto.item(x, 0, 0)
    pto.store(out, x * first)


# error[K104]: the item `first` was read inside a branch that has ended
#   --> after_its_branch.py:9:20
#     |
#   9 |     pto.store(out, x * first)
#     |                    ^^^^^^^^^
#    = help:     keep the element in a [1, 1] buffer made before the branch, and read the item after it
