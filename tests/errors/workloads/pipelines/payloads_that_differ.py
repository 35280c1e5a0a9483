"""Two sends to one channel carry different numbers."""

import numpy as np

from pto_wsp import Channel, DType, In, Out, P, Tensor, Tile, consume, kernel, pto, send, workload

X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


tiles = Channel("tiles")


@workload
def program() -> None:
    with P.pipe():
        for i in P.seq(2):
            send(tiles, i)
            send(tiles, i, i)
        with consume(tiles):
            scale(x=X[0], y=Y[0])


def mistake() -> None:
    program().compile(target="interp")


# error[W110]: a token of channel `tiles` carries 2 numbers here
#   --> payloads_that_differ.py:23:13
#      |
#   23 |             send(tiles, i, i)
#      |             ^^^^^^^^^^^^^^^^^
#    = expected: 1 number
#    = note:     the first one is sent at payloads_that_differ.py:22:13
