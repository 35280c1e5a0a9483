"""A process overwrites the buffer that the next one still reads: both lines, two iterations, and the tokens that allow it."""

import numpy as np

from pto_wsp import Channel, DType, In, Out, P, Tensor, Tile, consume, kernel, pto, send, workload

X, T, Y = Tensor(np.zeros((8, 4), np.float32)), Tensor(np.zeros((1, 4), np.float32)), Tensor(np.zeros((8, 4), np.float32))


@kernel
def copy(x: In[Tile[1, 4, DType.F32]], y: Out[Tile[1, 4, DType.F32]]) -> None:
    pto.store(y, x)


tiles = Channel("tiles", depth=2)


@workload
def program() -> None:
    with P.pipe():
        for i in P.seq(8):
            send(tiles, copy[i](x=X[i:i+1], y=T))
        with consume(tiles) as i:
            copy[i](x=T, y=Y[i:i+1])


def mistake() -> None:
    program().compile(target="interp")


# error[W201]: tasks without an order between them write and read the same elements of `T`
#   --> one_buffer_for_two_processes.py:22:47
#      |
#   22 |             send(tiles, copy[i](x=X[i:i+1], y=T))
#      |                                               ^
#   --> one_buffer_for_two_processes.py:24:23: read here
#      |
#   24 |             copy[i](x=T, y=Y[i:i+1])
#      |                       ^
#    = expected: processes touch different elements, or only read
#    = found:    T[0, 0:4] is written where i = 1, and read where i = 0
#    = help:     give `T` more places (depth + 2 between neighbours), or take a token back before one is written again
#    = note:     `tiles`, depth 2: the first comes after 1 sent, the second after 1 taken; no chain of tokens leads from one to the other
