"""A string in a kernel."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, x * "2")


# error[T213]: `pto.mul`: a value that a kernel does not know
#   --> string_operand.py:10:18
#      |
#   10 |     pto.store(y, x * "2")
#      |                  ^^^^^^^
#    = expected: a tile of this kernel, a number, or a scalar of this kernel
#    = found:    str: '2'
