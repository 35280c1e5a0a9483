"""A token more than is received."""

import numpy as np

from pto_wsp import Channel, DType, In, Out, P, Tensor, Tile, kernel, pto, receive, send, workload

X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


tiles = Channel("tiles", depth=4)


@workload
def program() -> None:
    with P.pipe():
        for i in P.seq(4):
            send(tiles, i)
        for k in P.seq(3):
            i = receive(tiles)
            scale[k](x=X[i], y=Y[k])


def mistake() -> None:
    program().compile(target="interp")


# error[W112]: nobody takes a token of `tiles`
#   --> token_that_nobody_takes.py:22:13
#      |
#   22 |             send(tiles, i)
#      |             ^^^^^^^^^^^^^^
#    = found:    token number 4; all who take from the channel have ended
#    = help:     with consume(tiles) as t: ... takes all that come
