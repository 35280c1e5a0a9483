"""A send in the main program."""

import numpy as np

from pto_wsp import Channel, DType, In, Out, Tensor, Tile, kernel, pto, send, workload

X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


tiles = Channel("tiles")


@workload
def program() -> None:
    send(tiles, scale[0](x=X[0], y=Y[0]))


def mistake() -> None:
    program().compile(target="interp")


# error[W110]: send(tiles, ...) outside a process
#   --> send_outside_a_process.py:20:5
#      |
#   20 |     send(tiles, scale[0](x=X[0], y=Y[0]))
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = help:     it belongs into the body of a process: with P.pipe(): ..., or process(...).body(...)
