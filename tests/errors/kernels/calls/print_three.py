"""Three things are printed at once."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In


def mistake(x: In[Tile[4, 8, DType.F32]]) -> None:
    pto.print("x", "=", x)


# error[T101]: `pto.print` takes one value
#   --> print_three.py:10:5
#      |
#   10 |     pto.print("x", "=", x)
#      |     ^^^^^^^^^^^^^^^^^^^^^^
#    = expected: pto.print(value) or pto.print("label", value)
#    = found:    3 arguments
