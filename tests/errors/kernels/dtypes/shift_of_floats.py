"""A shift of floats."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F16]], y: Out[Tile[4, 8, DType.F16]]) -> None:
    pto.store(y, x << 2)


# error[T204]: `pto.shl` does not take f16
#   --> shift_of_floats.py:10:18
#      |
#   10 |     pto.store(y, x << 2)
#      |                  ^^^^^^
#    = expected: i8, i16, i32, i64, u8, u16, u32, u64
#    = found:    Tile[4, 8, f16]
#    = help:     convert it first: pto.cast(x, DType.I32)
