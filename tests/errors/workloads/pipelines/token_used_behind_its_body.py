"""What a token carries is used behind the body that takes it."""

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
        for i in P.seq(2):
            send(tiles, i)
        with consume(tiles) as j:
            scale[j](x=X[j], y=Y[j])
        scale[j](x=X[j], y=Y[j])


def mistake() -> None:
    program()


# error[W103]: loop variable `j` is used outside its loop
#   --> token_used_behind_its_body.py:25:20
#      |
#   25 |         scale[j](x=X[j], y=Y[j])
#      |                    ^^^^
#    = help:     move the call into `for j in P(...)`
