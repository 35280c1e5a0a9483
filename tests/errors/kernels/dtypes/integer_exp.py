"""exp of integers."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(n: In[Tile[4, 8, DType.I32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, pto.exp(n))


# error[T204]: `pto.exp` does not take i32
#   --> integer_exp.py:10:18
#      |
#   10 |     pto.store(y, pto.exp(n))
#      |                  ^^^^^^^^^^
#    = expected: f32, f64, f16, bf16
#    = found:    Tile[4, 8, i32]
#    = help:     convert it first: pto.cast(x, DType.F32)
