"""A condition that nothing opens."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out, Scalar


def mistake(x: In[Tile[4, 8, DType.F32]], n: Scalar[DType.I32], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.when(n > 2)
    pto.store(y, x)


# error[K103]: `pto.when(n > 2)` stands without a `with`
#   --> when_without_with.py:10:5
#      |
#   10 |     pto.when(n > 2)
#      |     ^^^^^^^^^^^^^^^
#    = expected: with pto.when(n > 2): ...
#    = found:    a statement of its own
