"""The other side of nothing."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out, Scalar


def mistake(x: In[Tile[4, 8, DType.F32]], n: Scalar[DType.I32], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, x)
    with pto.otherwise():
        pto.store(y, 0)


# error[K103]: `pto.otherwise()` does not stand directly after a `with pto.when(...)`
#   --> otherwise_alone.py:11:5
#      |
#   11 |     with pto.otherwise():
#      |     ^^^^^^^^^^^^^^^^^^^^^
#    = help:     nothing may come between the two sides; a second condition is nested: with pto.otherwise(): with pto.when(c): ...
