"""A tile is formatted."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    print(format(x))
    pto.store(y, x)


# error[K103]: format of a tile, whose elements are known only at run time
#   --> format_of_tile.py:10:11
#      |
#   10 |     print(format(x))
#      |           ^^^^^^^^^
#    = expected: a value that is known while the body is traced
#    = found:    <parameter x: In[Tile[4, 8, f32]]>
#    = help:     pto.print("x", x) prints it when the kernel runs; {x!r} says its type
