"""consume(...) that no with opens."""

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
        send(tiles, 1)
        consume(tiles)


def mistake() -> None:
    program()


# error[K103]: `consume(tiles)` stands without a `with`
#   --> consume_without_with.py:22:9
#      |
#   22 |         consume(tiles)
#      |         ^^^^^^^^^^^^^^
#    = expected: with consume(tiles): ...
#    = found:    a statement of its own
