"""A channel that nobody takes from."""

import numpy as np

from pto_wsp import Channel, DType, In, Out, P, Tensor, Tile, kernel, pto, send, workload

X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


tiles = Channel("tiles")


@workload
def program() -> None:
    with P.pipe():
        for i in P.seq(2):
            send(tiles, scale[i](x=X[i], y=Y[i]))


def mistake() -> None:
    program().compile(target="interp")


# error[W110]: nobody takes from channel `tiles`
#   --> nobody_takes.py:22:13
#      |
#   22 |             send(tiles, scale[i](x=X[i], y=Y[i]))
#      |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = help:     with consume(tiles) as t: ...
