"""A process uses a channel that connect was not given."""

import numpy as np

from pto_wsp import Channel, DType, In, Out, Tensor, Tile, connect, kernel, process, pto, send

X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


tiles = Channel("tiles")


def sending() -> None:
    send(tiles, 1)


def mistake() -> None:
    connect([process("from").produces(tiles).body(sending)], [])


# error[W110]: process `from` uses channel `tiles`, which is not connected
#   --> channel_not_connected.py:23:5
#      |
#   23 |     connect([process("from").produces(tiles).body(sending)], [])
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = help:     connect(processes, [..., tiles])
