"""An op without a tile."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import Out


def mistake(y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, pto.exp(2.0))


# error[T213]: `pto.exp` takes a tile here
#   --> only_numbers.py:10:18
#      |
#   10 |     pto.store(y, pto.exp(2.0))
#      |                  ^^^^^^^^^^^^
#    = expected: a tile of this kernel
#    = found:    float: 2.0
#    = help:     make a tile of a number with pto.full(shape, value, dtype); scalars alone take Python's operators
