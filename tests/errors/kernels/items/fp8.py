"""An item of a dtype that is only stored."""

from pto_wsp import DType, In, Out, Scalar, Tensor, Tile, pto


def mistake(x: In[Tile[3, 4, DType.I32]], t: In[Tensor], n: Scalar[DType.I32], out: Out[Tile[3, 4, DType.I32]]):
    small = pto.cast(pto.cast(x, DType.F32), DType.FP8E4M3)
    pto.store(out, x * pto.item(small, 0, 0))


# error[T204]: `pto.item`: the tile's elements are only moved, not computed on
#   --> fp8.py:8:24
#     |
#   8 |     pto.store(out, x * pto.item(small, 0, 0))
#     |                        ^^^^^^^^^^^^^^^^^^^^^
#    = expected: f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool
#    = found:    <Tile[3, 4, fp8e4m3]>
#    = help:     convert it: pto.cast(x, DType.F32)
