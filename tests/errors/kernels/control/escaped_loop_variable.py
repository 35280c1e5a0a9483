"""A loop variable is used after its loop."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import Out


def mistake(y: Out[Tile[4, 8, DType.F32]]) -> None:
    for j in pto.range(4):
        pto.store(y, j)
    pto.store(y, j)


# error[W103]: `j` is used where its loop does not run
#   --> escaped_loop_variable.py:12:5
#      |
#   12 |     pto.store(y, j)
#      |     ^^^^^^^^^^^^^^^
#    = help:     move the use into the loop
