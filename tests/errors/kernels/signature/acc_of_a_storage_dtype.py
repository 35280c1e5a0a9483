"""Sums are held in fp8."""

from pto_wsp import Acc, DType, In, Tile, pto


def mistake(x: In[Tile[4, 8, DType.F32]], y: Acc[Tile[4, 8, DType.FP8E4M3]]) -> None:
    pto.store(y, pto.cast(x, DType.FP8E4M3))


# error[K101]: kernel `mistake`: parameter `y`: Acc takes no fp8e4m3: nothing is added up in it
#   --> acc_of_a_storage_dtype.py:6:43
#     |
#   6 | def mistake(x: In[Tile[4, 8, DType.F32]], y: Acc[Tile[4, 8, DType.FP8E4M3]]) -> None:
#     |                                           ^
#    = expected: a dtype of numbers
#    = found:    Acc[Tile[4, 8, fp8e4m3]]
#    = help:     add up in DType.F32, and cast the result in a kernel of its own
