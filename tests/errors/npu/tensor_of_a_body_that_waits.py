"""A process makes a tensor for itself, and sends before its body ends."""

import numpy as np

from pto_wsp import Channel, DType, In, Out, P, Tensor, Tile, consume, kernel, pto, send, workload


@kernel
def scale(x: In[Tile[16, 64, DType.F32]], y: Out[Tile[16, 64, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y, Z = (Tensor(np.zeros((4, 16, 64), np.float32)) for _ in range(3))
tiles = Channel("tiles", 2)


@workload
def give() -> None:
    for b in P.seq(4):
        half = Tensor.empty((16, 64), DType.F32)
        scale[b](x=X[b], y=half)
        send(tiles, scale[b](x=half, y=Y[b]))


@workload
def take() -> None:
    with consume(tiles) as b:
        scale[b](x=Y[b], y=Z[b])


@workload
def program() -> None:
    with P.pipe():
        give()
        take()


def mistake() -> None:
    program().compile(target="ascend_npu")


# error[N106]: target ascend_npu does not take a workload with pipeline.fresh
#   --> tensor_of_a_body_that_waits.py:20:16
#      |
#   20 |         half = Tensor.empty((16, 64), DType.F32)
#      |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = found:    Tensor.empty in a body of a process that sends or takes behind it
#    = help:     make it in front of the pipeline, or in a body that waits for nothing; or compile for cpu_sim or interp, which take it
#    = note:     the runtime's scopes nest, and those of processes that take turns would not
