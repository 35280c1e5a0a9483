"""The label comes behind the value."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In


def mistake(x: In[Tile[4, 8, DType.F32]]) -> None:
    pto.print(x, "x")


# error[T205]: `pto.print`: the label is not a string
#   --> print_label_last.py:10:5
#      |
#   10 |     pto.print(x, "x")
#      |     ^^^^^^^^^^^^^^^^^
#    = expected: pto.print("label", value)
#    = found:    <parameter x: In[Tile[4, 8, f32]]>
