"""How much is sent is bound at run time: a run that comes to a stop is reported with the depth that it needed."""

import numpy as np

from pto_wsp import Channel, DType, In, Out, P, Symbol, Tensor, Tile, consume, kernel, pto, receive, send, workload

X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


data, go = Channel("data", depth=2), Channel("go")
n = Symbol("n")


@workload
def program() -> None:
    with P.pipe():
        for b in P.seq(2):
            for i in P.seq(n):
                send(data, i)
            send(go, b)
        with consume(go):
            for _ in P.seq(n):
                j = receive(data)
                scale[j](x=X[j], y=Y[j])


def mistake() -> None:
    program().compile(target="interp").run(n=3)


# error[W111]: processes `send data` and `scale` wait for each other
#   --> deadlock_at_run_time.py:24:17
#      |
#   24 |                 send(data, i)
#      |                 ^^^^^^^^^^^^^
#    = found:    sends to `data`, which is full (depth 2), until `scale` takes a token
#    = help:     these depths are enough: Channel('data', depth=3)
#    = note:     `send data` at deadlock_at_run_time.py:24: sends to `data`, which is full (depth 2), until `scale` takes a token
#    = note:     `scale` at deadlock_at_run_time.py:26: waits for a token of `go`, which `send data` is to send
