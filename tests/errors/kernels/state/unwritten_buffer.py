"""A buffer is read before it is written."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import Out


def mistake(y: Out[Tile[4, 8, DType.F32]]) -> None:
    acc = pto.alloc((4, 8), DType.F32)
    pto.store(y, acc + 1)


# error[K106]: buffer `acc` is read before it is certainly written
#   --> unwritten_buffer.py:11:18
#      |
#   11 |     pto.store(y, acc + 1)
#      |                  ^^^^^^^
#    = help:     give it an init, e.g. pto.alloc(..., init=0)
