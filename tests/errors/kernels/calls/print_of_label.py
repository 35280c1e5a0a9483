"""A label alone is printed."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In


def mistake(x: In[Tile[4, 8, DType.F32]]) -> None:
    pto.print("here")


# error[T213]: `pto.print`: a value that a kernel does not know
#   --> print_of_label.py:10:5
#      |
#   10 |     pto.print("here")
#      |     ^^^^^^^^^^^^^^^^^
#    = expected: a tile of this kernel, a number, or a scalar of this kernel
#    = found:    str: 'here'
