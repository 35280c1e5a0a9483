"""A tile of three dimensions is accumulated into."""

from pto_wsp import Acc, DType, In, Tile, pto


def mistake(x: In[Tile[2, 4, 8, DType.F32]], y: Acc[Tile[2, 4, 8, DType.F32]]) -> None:
    pto.store(y, x)


# error[K101]: kernel `mistake`: parameter `y`: Acc takes a tile of two dimensions
#   --> acc_of_rank_three.py:6:46
#     |
#   6 | def mistake(x: In[Tile[2, 4, 8, DType.F32]], y: Acc[Tile[2, 4, 8, DType.F32]]) -> None:
#     |                                              ^
#    = expected: Acc[Tile[rows, cols, dtype]]
#    = found:    Acc[Tile[2, 4, 8, f32]]
#    = help:     bind the tiles of the leading dimensions one by one
