"""A buffer is written with another shape."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out, Scalar


def mistake(x: In[Tile[4, 8, DType.F32]], n: Scalar[DType.I32], y: Out[Tile[4, 8, DType.F32]]) -> None:
    acc = pto.alloc((2, 8), DType.F32)
    acc[:] = x
    pto.store(y, x * n)


# error[T202]: buffer `acc`: the value has another shape
#   --> buffer_shape.py:11:5
#      |
#   11 |     acc[:] = x
#      |     ^^^^^^
#    = expected: Tile[2, 8, f32]
#    = found:    Tile[4, 8, f32]
