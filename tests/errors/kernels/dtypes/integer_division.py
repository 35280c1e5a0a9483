"""/ of integers."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(n: In[Tile[4, 8, DType.I32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, n / 2)


# error[T204]: `pto.div` does not take i32
#   --> integer_division.py:10:18
#      |
#   10 |     pto.store(y, n / 2)
#      |                  ^^^^^
#    = expected: f32, f64, f16, bf16
#    = found:    Tile[4, 8, i32]
#    = help:     integers divide with // (pto.floordiv); or convert both: pto.cast(x, DType.F32)
