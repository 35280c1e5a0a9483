"""A run binds an array that is too small."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@workload
def program() -> None:
    for b in P(4):
        scale[b](x=X[b], y=Y[b])


def mistake() -> None:
    program().compile(target="interp").run(X=np.zeros((3, 16, 128), np.float32))


# error[R104]: an index lies outside its tensor: `X[b]`
#   --> rebind_too_small.py:19:20
#      |
#   19 |         scale[b](x=X[b], y=Y[b])
#      |                    ^^^^
#    = expected: 0 .. 2
#    = found:    3
#    = help:     bind tensors that are large enough, or bound the loop
#    = note:     in the iteration b = 3
