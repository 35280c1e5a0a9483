"""A parameter with a default, and one that takes many."""

from pto_wsp.frontend.kernel.annotations import In
from pto_wsp.types.dtype import DType
from pto_wsp.types.tile import Tile


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
