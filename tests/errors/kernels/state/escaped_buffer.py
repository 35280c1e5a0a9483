"""A buffer made in a loop is used after it."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import Out


def mistake(y: Out[Tile[4, 8, DType.F32]]) -> None:
    for _ in pto.range(4):
        acc = pto.alloc((4, 8), DType.F32, init=0)
    pto.store(y, acc)


# error[K104]: buffer `acc` was made inside a loop that has ended
#   --> escaped_buffer.py:12:5
#      |
#   12 |     pto.store(y, acc)
#      |     ^^^^^^^^^^^^^^^^^
#    = help:     keep state in a buffer: acc = pto.alloc(shape, dtype, init=0) before the loop, acc[:] = value in it
