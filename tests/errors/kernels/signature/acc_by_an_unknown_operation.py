"""Parts are combined by an operation that Acc does not have."""

from pto_wsp import Acc, DType, In, Tile, pto


def mistake(x: In[Tile[4, 8, DType.F32]], y: Acc[Tile[4, 8, DType.F32], "any"]) -> None:
    pto.store(y, x)


# error[K101]: kernel `mistake`: parameter `y`: Acc takes a Tile, and how to combine
#   --> acc_by_an_unknown_operation.py:6:43
#     |
#   6 | def mistake(x: In[Tile[4, 8, DType.F32]], y: Acc[Tile[4, 8, DType.F32], "any"]) -> None:
#     |                                           ^
#    = expected: Acc[Tile[rows, cols, dtype]], or Acc[Tile[…], how] where how is "sum", "max", "min", "prod"
#    = found:    Acc[Tile[4, 8, f32], 'any']
