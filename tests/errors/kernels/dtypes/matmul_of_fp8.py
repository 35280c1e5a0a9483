"""A product of fp8 tiles, which are storage."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(a: In[Tile[4, 8, DType.FP8E4M3]], b: In[Tile[8, 4, DType.FP8E4M3]], y: Out[Tile[4, 4, DType.F32]]) -> None:
    pto.store(y, a @ b)


# error[T204]: `pto.matmul` does not take fp8e4m3
#   --> matmul_of_fp8.py:10:18
#      |
#   10 |     pto.store(y, a @ b)
#      |                  ^^^^^
#    = expected: f32, f64, f16, bf16, i8, i32, i64
#    = found:    Tile[4, 8, fp8e4m3]
#    = help:     convert it first: pto.cast(x, DType.F32)
