"""An inner run-time loop is left by break."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    for _ in pto.range(4):
        for j in pto.range(4):
            pto.store(y, x + j)
            break


# error[K103]: the loop over `j` was left by break or return
#   --> break_in_inner_loop.py:11:9
#      |
#   11 |         for j in pto.range(4):
#      |         ^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a body that runs to its end
#    = found:    break, continue or return
#    = help:     the body is traced once, for all iterations: bound the loop, pto.range(n), or choose elements with pto.where(mask, a, b)
