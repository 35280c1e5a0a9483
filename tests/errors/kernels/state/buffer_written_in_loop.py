"""A buffer is written only in a loop that may not run."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import Out, Scalar


def mistake(n: Scalar[DType.I32], y: Out[Tile[4, 8, DType.F32]]) -> None:
    acc = pto.alloc((4, 8), DType.F32)
    for _ in pto.range(n):
        acc[:] = 0
    pto.store(y, acc)


# error[K106]: buffer `acc` is read before it is certainly written
#   --> buffer_written_in_loop.py:13:5
#      |
#   13 |     pto.store(y, acc)
#      |     ^^^^^^^^^^^^^^^^^
#    = help:     give it an init, e.g. pto.alloc(..., init=0)
