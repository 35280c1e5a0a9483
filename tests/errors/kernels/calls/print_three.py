"""Three things are printed at once."""

from pto_wsp.api.kernels.pto_namespace import pto
from pto_wsp.frontend.kernel.annotations import In
from pto_wsp.types.dtype import DType
from pto_wsp.types.tile import Tile


def mistake(x: In[Tile[4, 8, DType.F32]]) -> None:
    pto.print("x", "=", x)


# error[T101]: `pto.print` takes one value
#   --> print_three.py:10:5
#      |
#   10 |     pto.print("x", "=", x)
#      |     ^^^^^^^^^^^^^^^^^^^^^^
#    = expected: pto.print(value) or pto.print("label", value)
#    = found:    3 arguments
