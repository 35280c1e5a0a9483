"""A buffer's name goes over to a new value in a loop."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out, Scalar


def mistake(x: In[Tile[4, 8, DType.F32]], n: Scalar[DType.I32], y: Out[Tile[4, 8, DType.F32]]) -> None:
    acc = pto.alloc((4, 8), DType.F32, init=0)
    for _ in pto.range(n):
        acc = acc + x
    pto.store(y, acc)


# error[K109]: `acc` is read in a loop and then assigned to
#   --> carried_buffer.py:12:9
#      |
#   12 |         acc = acc + x
#      |         ^^^
#    = found:    a body that is traced once: `acc` is read as it was before the loop, in every iteration
#    = help:     write it in place: acc += ..., or acc[:] = ...
