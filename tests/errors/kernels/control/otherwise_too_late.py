"""A statement stands between the two sides."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out, Scalar


def mistake(x: In[Tile[4, 8, DType.F32]], n: Scalar[DType.I32], y: Out[Tile[4, 8, DType.F32]]) -> None:
    with pto.when(n > 2):
        pto.store(y, x)
    pto.store(y, 1)
    with pto.otherwise():
        pto.store(y, 0)


# error[K103]: `pto.otherwise()` does not stand directly after a `with pto.when(...)`
#   --> otherwise_too_late.py:13:5
#      |
#   13 |     with pto.otherwise():
#      |     ^^^^^^^^^^^^^^^^^^^^^
#    = help:     nothing may come between the two sides; a second condition is nested: with pto.otherwise(): with pto.when(c): ...
