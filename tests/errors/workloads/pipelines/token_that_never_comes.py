"""A receive more than there are tokens."""

import numpy as np

from pto_wsp import Channel, DType, In, Out, P, Tensor, Tile, kernel, pto, receive, send, workload

X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


tiles = Channel("tiles")


@workload
def program() -> None:
    with P.pipe():
        for i in P.seq(3):
            send(tiles, i)
        for k in P.seq(4):
            i = receive(tiles)
            scale[k](x=X[i], y=Y[k])


def mistake() -> None:
    program().compile(target="interp")


# error[W112]: process `scale` takes a token from `tiles`, which is closed and empty
#   --> token_that_never_comes.py:24:17
#      |
#   24 |             i = receive(tiles)
#      |                 ^^^^^^^^^^^^^^
#    = found:    3 tokens came, and all who send have ended
#    = help:     with consume(tiles) as t: ... takes as many as there are
