# ruff: noqa: E501
"""An argument is given twice."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, x, value=x)


# error[T101]: `pto.store`: multiple values for argument 'value'
#   --> repeated_argument.py:11:5
#      |
#   11 |     pto.store(y, x, value=x)
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: pto.store(target, value, at=None, valid=None)
#    = found:    pto.store(<parameter y: Out[Tile[4, 8, f32]]>, <parameter x: In[Tile[4, 8, f32]]>, value=<parameter x: In[Tile[4, 8, f32]]>)
