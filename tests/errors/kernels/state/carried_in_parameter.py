"""An In parameter is changed in a loop."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out, Scalar


def mistake(x: In[Tile[4, 8, DType.F32]], n: Scalar[DType.I32], y: Out[Tile[4, 8, DType.F32]]) -> None:
    for _ in pto.range(n):
        x *= 2
        pto.store(y, x)


# error[K109]: `x` is read in a loop and then assigned to
#   --> carried_in_parameter.py:11:9
#      |
#   11 |         x *= 2
#      |         ^
#    = found:    a body that is traced once: `x` is read as it was before the loop, in every iteration
#    = help:     keep it in a buffer, made before the loop: held = pto.alloc((4, 8), DType.F32); held[:] = x; then held[:] = ... in it
