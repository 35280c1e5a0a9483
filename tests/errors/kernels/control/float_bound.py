"""A loop bound is a float."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import Out


def mistake(y: Out[Tile[4, 8, DType.F32]]) -> None:
    for _ in pto.range(4.0):
        pto.store(y, 0)


# error[T209]: `pto.range`: the stop: not a whole number
#   --> float_bound.py:10:14
#      |
#   10 |     for _ in pto.range(4.0):
#      |              ^^^^^^^^^^^^^^
#    = expected: a number or integer scalar
#    = found:    4.0
