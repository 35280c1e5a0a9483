"""A buffer is written with another dtype."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out, Scalar


def mistake(x: In[Tile[4, 8, DType.F32]], n: Scalar[DType.I32], y: Out[Tile[4, 8, DType.F32]]) -> None:
    acc = pto.alloc((4, 8), DType.I32, init=0)
    acc += pto.cast(x, DType.I32)
    acc[:] = x
    pto.store(y, pto.cast(acc, DType.F32) * n)


# error[T203]: buffer `acc`: the value has another dtype
#   --> buffer_dtype.py:12:5
#      |
#   12 |     acc[:] = x
#      |     ^^^^^^
#    = expected: Tile[4, 8, i32]
#    = found:    Tile[4, 8, f32]
#    = help:     convert it: pto.cast(value, DType.I32)
