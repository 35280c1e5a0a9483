# ruff: noqa: E501
"""A buffer is read in a loop and its sum goes elsewhere."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out, Scalar


def mistake(x: In[Tile[4, 8, DType.F32]], n: Scalar[DType.I32], y: Out[Tile[4, 8, DType.F32]]) -> None:
    acc = pto.alloc((4, 8), DType.F32, init=0)
    for _ in pto.range(n):
        total = acc + x
        pto.store(y, total)


# error[K106]: buffer `acc` is read in a loop and never written: it holds its init in every iteration
#   --> buffer_never_written.py:13:17
#      |
#   13 |         total = acc + x
#      |                 ^^^^^^^
#    = help:     write it in place: acc += ..., or acc[:] = ...; `acc = ...` gives the name to another value, and a constant is pto.full(shape, value, dtype)
