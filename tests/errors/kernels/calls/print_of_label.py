"""A label alone is printed."""

from pto_wsp.api.kernels.pto_namespace import pto
from pto_wsp.frontend.kernel.annotations import In
from pto_wsp.types.dtype import DType
from pto_wsp.types.tile import Tile


def mistake(x: In[Tile[4, 8, DType.F32]]) -> None:
    pto.print("here")


# error[T205]: `pto.print`: a value that a kernel does not know
#   --> print_of_label.py:10:5
#      |
#   10 |     pto.print("here")
#      |     ^^^^^^^^^^^^^^^^^
#    = expected: a tile of this kernel, a number, or a scalar of this kernel
#    = found:    str: 'here'
