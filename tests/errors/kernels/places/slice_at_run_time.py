"""A piece of a tile starts where only the run knows."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out, Scalar


def mistake(x: In[Tile[8, 16, DType.F32]], y: Out[Tile[8, 16, DType.F32]], row: Scalar[DType.I32]) -> None:
    pto.store(y, x[row:row + 1] + x)


# error[T302]: a row of a tile that is known only at run time
#   --> slice_at_run_time.py:10:18
#      |
#   10 |     pto.store(y, x[row:row + 1] + x)
#      |                  ^^^^^^^^^^^^^^
#    = expected: a whole number
#    = found:    Symbolic(row)
#    = help:     offsets into a tile are constants; pto.load(T, (row, col), shape=(r, c)) and pto.item(x, row, col) read anywhere
