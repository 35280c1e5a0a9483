"""A region of any size is accumulated into."""

from pto_wsp import Acc, DType, In, Tensor, Tile, pto


def mistake(x: In[Tile[4, 8, DType.F32]], y: Acc[Tensor]) -> None:
    pto.store(y, x)


# error[K101]: kernel `mistake`: parameter `y`: Acc takes a Tile, and how to combine
#   --> acc_of_a_tensor.py:6:43
#     |
#   6 | def mistake(x: In[Tile[4, 8, DType.F32]], y: Acc[Tensor]) -> None:
#     |                                           ^
#    = expected: Acc[Tile[rows, cols, dtype]], or Acc[Tile[…], how] where how is "sum", "max", "min", "prod"
#    = found:    Acc[Tensor]
#    = help:     a region has no size of its own to add: take a Tile and bind it piece by piece
