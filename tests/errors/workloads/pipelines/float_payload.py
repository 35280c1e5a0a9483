"""A token that carries a float."""

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
            send(tiles, i * 0.5)


def mistake() -> None:
    program()


# error[T209]: send to `tiles`: a token carries whole numbers and truth values
#   --> float_payload.py:22:13
#      |
#   22 |             send(tiles, i * 0.5)
#      |             ^^^^^^^^^^^^^^^^^^^^
#    = found:    a float: i * 0.5
#    = help:     let a task write it to a tensor, and send where it stands
