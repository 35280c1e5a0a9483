"""A process that has been given no body."""

import numpy as np

from pto_wsp import Channel, DType, In, Out, Tensor, Tile, connect, kernel, process, pto

X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


tiles = Channel("tiles")


def mistake() -> None:
    connect([process("from").produces(tiles)], [tiles])


# error[W110]: process `from` has no body
#   --> process_without_a_body.py:19:14
#      |
#   19 |     connect([process("from").produces(tiles)], [tiles])
#      |              ^^^^^^^^^^^^^^^
#    = help:     .body(workload) says what it does
