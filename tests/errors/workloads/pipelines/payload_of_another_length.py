"""A token carries two numbers and is taken as three."""

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
        for b, i in P.seq(2, 2):
            send(tiles, scale[b, i](x=X[b], y=Y[i]))
        with consume(tiles) as (b, i, h):
            scale[b, i](x=Y[b], y=X[h])


def mistake() -> None:
    program().compile(target="interp")


# error[W110]: a token of channel `tiles` is taken as 3 numbers
#   --> payload_of_another_length.py:23:14
#      |
#   23 |         with consume(tiles) as (b, i, h):
#      |              ^^^^^^^^^^^^^^
#    = expected: 2 numbers
#    = note:     it is sent at payload_of_another_length.py:22:13
