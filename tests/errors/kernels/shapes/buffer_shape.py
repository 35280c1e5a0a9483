"""A buffer is written with another shape."""

from pto_wsp.api.kernels.pto_namespace import pto
from pto_wsp.frontend.kernel.annotations import In, Out, Scalar
from pto_wsp.types.dtype import DType
from pto_wsp.types.tile import Tile


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
