"""A tile value is changed in a loop."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out, Scalar


def mistake(x: In[Tile[4, 8, DType.F32]], n: Scalar[DType.I32], y: Out[Tile[4, 8, DType.F32]]) -> None:
    power = x * 1
    for _ in pto.range(n):
        power = power * x
        pto.store(y, power)


# error[K109]: `power` is read in a loop and then assigned to
#   --> carried_tile.py:12:9
#      |
#   12 |         power = power * x
#      |         ^^^^^
#    = found:    a body that is traced once: `power` is read as it was before the loop, in every iteration
#    = help:     keep it in a buffer, made before the loop: held = pto.alloc((4, 8), DType.F32); held[:] = power; then held[:] = ... in it
