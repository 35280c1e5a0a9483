"""An Acc parameter to which nothing is added."""

from pto_wsp import Acc, DType, In, Tile


def mistake(x: In[Tile[4, 8, DType.F32]], y: Acc[Tile[4, 8, DType.F32]]) -> None:
    print(x + 1)


# error[K102]: kernel `mistake`: Acc parameter `y` is never stored
#   --> acc_never_stored.py:6:43
#     |
#   6 | def mistake(x: In[Tile[4, 8, DType.F32]], y: Acc[Tile[4, 8, DType.F32]]) -> None:
#     |                                           ^
#    = help:     pto.store(y, value), or drop the parameter
