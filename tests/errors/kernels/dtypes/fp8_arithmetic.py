"""fp8 is stored and cast, never computed on."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out


def mistake(x: In[Tile[4, 8, DType.FP8E4M3]], y: Out[Tile[4, 8, DType.FP8E4M3]]) -> None:
    pto.store(y, x + 1)


# error[T204]: `pto.add` does not take fp8e4m3
#   --> fp8_arithmetic.py:10:18
#      |
#   10 |     pto.store(y, x + 1)
#      |                  ^^^^^
#    = expected: f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64
#    = found:    Tile[4, 8, fp8e4m3]
#    = help:     convert it first: pto.cast(x, DType.F32)
