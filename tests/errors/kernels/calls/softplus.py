"""A name of PyTorch that kernels do not have."""

from pto_wsp import DType, In, Out, Tile, pto


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, pto.softplus(x))


# error[T211]: `pto` has no `softplus`
#   --> softplus.py:7:18
#     |
#   7 |     pto.store(y, pto.softplus(x))
#     |                  ^^^^^^^^^^^^
#    = help:     write it: pto.maximum(x, 0) + pto.log(1 + pto.exp(-pto.abs(x)))
