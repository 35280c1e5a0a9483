"""Every second of an odd number of columns."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[8, 16, DType.F32]], y: Out[Tile[8, 16, DType.F32]]) -> None:
    pto.store(y, pto.slice_even(x[:, :15]))


# error[T202]: `pto.slice_even` halves the columns, of which there is an odd number
#   --> slice_even_of_odd.py:10:18
#      |
#   10 |     pto.store(y, pto.slice_even(x[:, :15]))
#      |                  ^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: an even number of columns
#    = found:    Tile[8, 15, f32]
#    = help:     slice it: x[:, 0::2]
