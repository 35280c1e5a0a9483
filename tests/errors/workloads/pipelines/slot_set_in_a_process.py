"""A process sets a slot of the main program."""

import numpy as np

from pto_wsp import Channel, DType, In, Out, P, Tensor, Tile, consume, kernel, pto, send, slot_set_u64, workload

X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


tiles = Channel("tiles")


@workload
def program() -> None:
    with P.pipe():
        for i in P.seq(2):
            slot_set_u64(0, i)
            send(tiles, i)
        with consume(tiles) as i:
            scale[i](x=X[i], y=Y[i])


def mistake() -> None:
    program().compile(target="interp")


# error[W110]: process `send tiles` sets slot 0
#   --> slot_set_in_a_process.py:22:13
#      |
#   22 |             slot_set_u64(0, i)
#      |             ^^^^^^^^^^^^^^^^^^
#    = help:     slots belong to the main program; processes give each other numbers with send(channel, value)
