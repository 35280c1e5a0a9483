"""A pipeline in a process of another."""

import numpy as np

from pto_wsp import Channel, DType, In, Out, P, Tensor, Tile, consume, kernel, pto, send, workload

X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


tiles, inner = Channel("tiles"), Channel("inner")


@workload
def program() -> None:
    with P.pipe():
        for i in P.seq(2):
            send(tiles, i)
        with consume(tiles) as i:
            scale[i](x=X[i], y=Y[i])
            with P.pipe():
                send(inner, i)
                with consume(inner) as j:
                    scale[j](x=X[j], y=Y[j])


def mistake() -> None:
    program().compile(target="interp")


# error[W110]: a pipeline in process `scale` of another
#   --> pipeline_in_a_process.py:25:18
#      |
#   25 |             with P.pipe():
#      |                  ^^^^^^^^
#    = help:     connect all processes in one pipeline; the main program may run several, also in a loop
