"""A name of PyTorch that kernels do not have."""

from pto_wsp import DType, In, Out, Tile, pto


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, pto.softmax(x))  # type: ignore[attr-defined]


# error[T211]: `pto` has no `softmax`
#   --> softmax.py:7:18
#     |
#   7 |     pto.store(y, pto.softmax(x))  # type: ignore[attr-defined]
#     |                  ^^^^^^^^^^^
#    = help:     write it: e = pto.exp(x - pto.rowmax(x)); e / pto.rowsum(e)
