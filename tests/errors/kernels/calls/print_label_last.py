"""The label comes behind the value."""

from pto_wsp.api.kernels.pto_namespace import pto
from pto_wsp.frontend.kernel.annotations import In
from pto_wsp.types.dtype import DType
from pto_wsp.types.tile import Tile


def mistake(x: In[Tile[4, 8, DType.F32]]) -> None:
    pto.print(x, "x")


# error[T205]: `pto.print`: the label is not a string
#   --> print_label_last.py:10:5
#      |
#   10 |     pto.print(x, "x")
#      |     ^^^^^^^^^^^^^^^^^
#    = expected: pto.print("label", value)
#    = found:    <parameter x: In[Tile[4, 8, f32]]>
