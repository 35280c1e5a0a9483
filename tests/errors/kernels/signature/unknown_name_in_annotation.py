# ruff: noqa: F821
"""An annotation names what does not exist."""

from __future__ import annotations

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[ROWS, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, x)


# error[K101]: kernel `mistake`: parameter `x` has an annotation that cannot be evaluated
#   --> unknown_name_in_annotation.py:12:13
#      |
#   12 | def mistake(x: In[Tile[ROWS, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
#      |             ^
#    = expected: In, Out or InOut of Tile[rows, cols, dtype] or Tensor; Acc of Tile; Scalar[dtype]; Constexpr[type]
#    = found:    In[Tile[ROWS, 8, DType.F32]]: NameError: name 'ROWS' is not defined
