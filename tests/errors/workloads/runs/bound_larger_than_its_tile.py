"""A bound is larger than the tile, and only the run knows it."""

import numpy as np

from pto_wsp import DType, In, Out, Symbol, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((16, 8), np.float32), name="X"), Tensor(np.zeros((16, 8), np.float32), name="Y")
n = Symbol("n")


@workload
def program() -> None:
    scale(X.clip(n, 8), Y.clip(n, 8))


def mistake() -> None:
    program().compile(target="interp").run(n=5)


# error[R104]: a view does not fit its tile: `X[:max(min(n, X.shape[0]), 0)].clip(None, 8)`
#   --> bound_larger_than_its_tile.py:19:5
#      |
#   19 |     scale(X.clip(n, 8), Y.clip(n, 8))
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: 0 .. 4
#    = found:    max(min(n, X.shape[0]), 0) = 5
#    = help:     bind tensors with the extents declared, or use .clip(...) for a block that may be short
