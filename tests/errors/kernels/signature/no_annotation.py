"""A parameter has no annotation, another an unknown one."""

from __future__ import annotations

from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile


def mistake(x, y: int, z: Tile[4, 8, DType.F32]) -> None:
    pass


# error[K101]: kernel `mistake`: parameter `x` has no annotation
#   --> no_annotation.py:9:13
#     |
#   9 | def mistake(x, y: int, z: Tile[4, 8, DType.F32]) -> None:
#     |             ^
#    = expected: In, Out or InOut of Tile[rows, cols, dtype] or Tensor; Acc of Tile; Scalar[dtype]; Constexpr[type]
#
# error[K101]: kernel `mistake`: parameter `y` has an annotation that kernels do not know
#   --> no_annotation.py:9:16
#     |
#   9 | def mistake(x, y: int, z: Tile[4, 8, DType.F32]) -> None:
#     |                ^
#    = expected: In, Out or InOut of Tile[rows, cols, dtype] or Tensor; Acc of Tile; Scalar[dtype]; Constexpr[type]
#    = found:    int
#
# error[K101]: kernel `mistake`: parameter `z` has an annotation that kernels do not know
#   --> no_annotation.py:9:24
#     |
#   9 | def mistake(x, y: int, z: Tile[4, 8, DType.F32]) -> None:
#     |                        ^
#    = expected: In, Out or InOut of Tile[rows, cols, dtype] or Tensor; Acc of Tile; Scalar[dtype]; Constexpr[type]
#    = found:    Tile[4, 8, f32]
#    = help:     say what the kernel does with it: In[...], Out[...] or InOut[...] around Tile[4, 8, f32]
