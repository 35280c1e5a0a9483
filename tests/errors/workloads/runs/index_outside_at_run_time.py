"""With the value bound now, an iteration leaves the tensor."""

import numpy as np

from pto_wsp import DType, In, Out, P, Symbol, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))
n = Symbol("n")


@workload
def program() -> None:
    for b in P(n):
        scale[b](x=X[b], y=Y[b])


def mistake() -> None:
    program().compile(target="interp").run(n=5)


# error[R104]: an index lies outside its tensor: `X[b]`
#   --> index_outside_at_run_time.py:20:20
#      |
#   20 |         scale[b](x=X[b], y=Y[b])
#      |                    ^^^^
#    = expected: 0 .. 3
#    = found:    4
#    = help:     bind tensors that are large enough, or bound the loop
#    = note:     in the iteration b = 4
