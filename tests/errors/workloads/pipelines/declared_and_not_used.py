"""A process says that it produces a channel that it never sends to."""

import numpy as np

from pto_wsp import Channel, DType, In, Out, P, Tensor, Tile, connect, consume, kernel, process, pto, send

X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


tiles, more = Channel("tiles"), Channel("more")


def sending() -> None:
    for i in P.seq(2):
        send(tiles, i)


def taking() -> None:
    with consume(tiles) as i:
        scale[i](x=X[i], y=Y[i])


def mistake() -> None:
    connect([process("from").produces(tiles, more).body(sending), process("to").consumes(tiles).body(taking)],
            [tiles, more]).compile(target="interp")


# error[W110]: process `from` says that it produces channel `more`, and its body does not
#   --> declared_and_not_used.py:29:14
#      |
#   29 |     connect([process("from").produces(tiles, more).body(sending), process("to").consumes(tiles).body(taking)],
#      |              ^^^^^^^^^^^^^^^
#    = help:     drop .produces(more), or use it in the body
