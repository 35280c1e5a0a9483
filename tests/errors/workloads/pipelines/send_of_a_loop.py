"""A workload of more than one task is no token."""

import numpy as np

from pto_wsp import Channel, DType, In, Out, P, Tensor, Tile, kernel, pto, send, workload

X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


tiles = Channel("tiles")


@workload
def part() -> None:
    for i in P(4):
        scale[i](x=X[i], y=Y[i])


@workload
def program() -> None:
    with P.pipe():
        send(tiles, part())


def mistake() -> None:
    program()


# error[W109]: send to `tiles` takes a workload of one task
#   --> send_of_a_loop.py:27:9
#      |
#   27 |         send(tiles, part())
#      |         ^^^^^^^^^^^^^^^^^^^
#    = found:    2 statements
#    = help:     send each task where it is made: send(channel, kernel[i](...))
