"""A channel that is too small for what is sent before the other one is: the report names the depth."""

import numpy as np

from pto_wsp import Channel, DType, In, Out, P, Tensor, Tile, consume, kernel, pto, receive, send, workload

X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


data, go = Channel("data", depth=2), Channel("go")


@workload
def program() -> None:
    with P.pipe():
        for n in P.seq(3):
            for i in P.seq(4):
                send(data, n, i)
            send(go, n)
        with consume(go) as n:
            for _ in P.seq(4):
                n, j = receive(data)
                scale[n, j](x=X[j], y=Y[n])


def mistake() -> None:
    program().compile(target="interp")


# error[W111]: processes `send data` and `scale` wait for each other
#   --> channel_too_small.py:23:17
#      |
#   23 |                 send(data, n, i)
#      |                 ^^^^^^^^^^^^^^^^
#    = found:    sends to `data`, which is full (depth 2), until `scale` takes a token
#    = help:     these depths are enough: Channel('data', depth=4)
#    = note:     `send data` at channel_too_small.py:23: sends to `data`, which is full (depth 2), until `scale` takes a token
#    = note:     `scale` at channel_too_small.py:25: waits for a token of `go`, which `send data` is to send
