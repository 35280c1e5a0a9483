"""A loop does not advance."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import Out


def mistake(y: Out[Tile[4, 8, DType.F32]]) -> None:
    for _ in pto.range(0, 4, 0):
        pto.store(y, 0)


# error[T209]: `pto.range`: the step is not a number >= 1
#   --> zero_step.py:10:14
#      |
#   10 |     for _ in pto.range(0, 4, 0):
#      |              ^^^^^^^^^^^^^^^^^^
#    = expected: a whole number >= 1
#    = found:    0
