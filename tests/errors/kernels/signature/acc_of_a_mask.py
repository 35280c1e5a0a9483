"""A mask is accumulated into."""

from pto_wsp import Acc, DType, In, Tile, pto


def mistake(x: In[Tile[4, 8, DType.F32]], y: Acc[Tile[4, 8, DType.BOOL]]) -> None:
    pto.store(y, x > 0)


# error[K101]: kernel `mistake`: parameter `y`: Acc takes no bool: nothing is added up in it
#   --> acc_of_a_mask.py:6:43
#     |
#   6 | def mistake(x: In[Tile[4, 8, DType.F32]], y: Acc[Tile[4, 8, DType.BOOL]]) -> None:
#     |                                           ^
#    = expected: a dtype of numbers
#    = found:    Acc[Tile[4, 8, bool]]
#    = help:     count in DType.I32: pto.cast(mask, DType.I32)
