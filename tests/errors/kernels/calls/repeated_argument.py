# ruff: noqa: E501
"""An argument is given twice."""

from pto_wsp.api.kernels.pto_namespace import pto
from pto_wsp.frontend.kernel.annotations import In, Out
from pto_wsp.types.dtype import DType
from pto_wsp.types.tile import Tile


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, x, value=x)


# error[T101]: `pto.store`: multiple values for argument 'value'
#   --> repeated_argument.py:11:5
#      |
#   11 |     pto.store(y, x, value=x)
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: pto.store(target, value, at=None, valid=None)
#    = found:    pto.store(<parameter y: Out[Tile[4, 8, f32]]>, <parameter x: In[Tile[4, 8, f32]]>, value=<parameter x: In[Tile[4, 8, f32]]>)
