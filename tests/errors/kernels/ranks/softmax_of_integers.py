"""A formula of floats, given integers."""

from __future__ import annotations

from pto_wsp import DType, In, Out, Tile, pto

F32 = DType.F32


def mistake(x: In[Tile[4, 16, 64, DType.I32]], y: Out[Tile[4, 16, 64, DType.I32]]) -> None:
    pto.store(y, pto.softmax(x))


# error[T204]: `pto.softmax` does not take i32
#   --> softmax_of_integers.py:11:18
#      |
#   11 |     pto.store(y, pto.softmax(x))
#      |                  ^^^^^^^^^^^^^^
#    = expected: f32, f64, f16, bf16
#    = found:    Tile[4, 16, 64, i32]
#    = help:     convert it first: pto.cast(x, DType.F32)
