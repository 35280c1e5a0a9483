"""A part of a buffer is written."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import Out


def mistake(y: Out[Tile[4, 8, DType.F32]]) -> None:
    acc = pto.alloc((4, 8), DType.F32, init=0)
    acc[0:2, :] = 1
    pto.store(y, acc)


# error[T302]: buffer `acc` is written as a whole
#   --> part_of_buffer.py:11:5
#      |
#   11 |     acc[0:2, :] = 1
#      |     ^^^^^^^^^^^
#    = expected: [:] = value
#    = found:    [0:2, :] = ...
#    = help:     pto.store writes a piece of an Out or InOut parameter
