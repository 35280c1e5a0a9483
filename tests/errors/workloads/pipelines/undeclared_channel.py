"""A process sends to a channel that it does not say it produces."""

import numpy as np

from pto_wsp import Channel, DType, In, Out, P, Tensor, Tile, connect, consume, kernel, process, pto, send

X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


tiles = Channel("tiles")


def sending() -> None:
    for i in P.seq(2):
        send(tiles, i)


def taking() -> None:
    with consume(tiles) as i:
        scale[i](x=X[i], y=Y[i])


def mistake() -> None:
    connect([process("from").body(sending), process("to").consumes(tiles).body(taking)], [tiles]).compile(target="interp")


# error[W110]: process `from` sends to channel `tiles` and does not say so
#   --> undeclared_channel.py:20:9
#      |
#   20 |         send(tiles, i)
#      |         ^^^^^^^^^^^^^^
#    = help:     process('from').produces(tiles)
