"""A channel that nobody sends to."""

import numpy as np

from pto_wsp import Channel, DType, In, Out, P, Tensor, Tile, consume, kernel, pto, workload

X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


tiles = Channel("tiles")


@workload
def program() -> None:
    with P.pipe():
        scale(x=X[3], y=Y[3])
        with consume(tiles) as i:
            scale[i](x=X[i], y=Y[i])


def mistake() -> None:
    program().compile(target="interp")


# error[W110]: nobody sends to channel `tiles`
#   --> nobody_sends.py:22:14
#      |
#   22 |         with consume(tiles) as i:
#      |              ^^^^^^^^^^^^^^
#    = help:     send(tiles, task)
