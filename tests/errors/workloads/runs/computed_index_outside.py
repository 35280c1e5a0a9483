"""A task computes a page that the tensor does not have; tasks before it have run by then."""

import numpy as np

from pto_wsp import DType, In, Out, P, Scalar, Tensor, Tile, kernel, pto, workload


@kernel
def choose(n: Scalar[DType.I32], page: Out[Tile[1, 1, DType.I32]]) -> None:
    pto.store(page, pto.full((1, 1), n, DType.I32))


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))
pages = Tensor(np.zeros((4, 1), np.int32))


@workload
def program() -> None:
    for b in P.seq(4):
        choose[b](n=b * 2, page=pages[b:b + 1])
        scale[b](x=X[pages[b, 0]], y=Y[b])


def mistake() -> None:
    program().compile(target="interp").run()


# error[R104]: an index lies outside its tensor: `X[pages[b, 0]]`
#   --> computed_index_outside.py:26:20
#      |
#   26 |         scale[b](x=X[pages[b, 0]], y=Y[b])
#      |                    ^^^^^^^^^^^^^^
#    = expected: 0 .. 3
#    = found:    pages[b, 0] = 4
#    = help:     bind tensors that are large enough, or bound the loop
#    = note:     in the iteration b = 2
#    = note:     5 tasks made before it had run, and what they wrote stays
