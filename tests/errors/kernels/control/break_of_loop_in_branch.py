"""A loop in a branch is left by break."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out, Scalar


def mistake(x: In[Tile[4, 8, DType.F32]], n: Scalar[DType.I32], y: Out[Tile[4, 8, DType.F32]]) -> None:
    with pto.when(n > 2):
        for _ in pto.range(n):
            pto.store(y, x)
            break


# error[K103]: the loop over `_` was left by break or return
#   --> break_of_loop_in_branch.py:11:9
#      |
#   11 |         for _ in pto.range(n):
#      |         ^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a body that runs to its end
#    = found:    break, continue or return
#    = help:     the body is traced once, for all iterations: bound the loop, pto.range(n), or choose elements with pto.where(mask, a, b)
