"""A parameter with a default, and one that takes many."""

from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In


def mistake(x: In[Tile[4, 8, DType.F32]] = 0, *more: In[Tile[4, 8, DType.F32]]) -> None:
    pass


# error[K101]: kernel `mistake`: parameter `x` has a default
#   --> default_value.py:8:13
#     |
#   8 | def mistake(x: In[Tile[4, 8, DType.F32]] = 0, *more: In[Tile[4, 8, DType.F32]]) -> None:
#     |             ^
#    = help:     give the value where the kernel is called
#
# error[K101]: kernel `mistake`: `*more` takes any number of arguments
#   --> default_value.py:8:47
#     |
#   8 | def mistake(x: In[Tile[4, 8, DType.F32]] = 0, *more: In[Tile[4, 8, DType.F32]]) -> None:
#     |                                               ^^^^^
#    = expected: a parameter each, by name
