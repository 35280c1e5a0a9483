"""Kernels do not compute on f16 yet."""

from pto_wsp.api.pto_namespace import pto
from pto_wsp.frontend.annotations import In, Out
from pto_wsp.types.dtype import DType
from pto_wsp.types.tile import Tile


def mistake(x: In[Tile[4, 8, DType.F16]], y: Out[Tile[4, 8, DType.F16]]) -> None:
    pto.store(y, x + 1)


# error[T204]: parameter `x`: kernels do not compute on f16
#   --> unsupported_dtype.py:10:18
#      |
#   10 |     pto.store(y, x + 1)
#      |                  ^^^^^
#    = expected: f32, f64, i8, i32, i64, u8, bool
#    = found:    f16
