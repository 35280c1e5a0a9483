"""Two processes that each receive before they send: no depth helps."""

import numpy as np

from pto_wsp import Channel, DType, In, Out, P, Tensor, Tile, consume, kernel, pto, receive, send, workload

X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


a, b = Channel("a"), Channel("b", depth=4)


@workload
def program() -> None:
    with P.pipe():
        for i in P.seq(4):
            receive(b)
            send(a, scale[i](x=X[i], y=Y[i]))
        with consume(a) as i:
            send(b, i)


def mistake() -> None:
    program().compile(target="interp")


# error[W111]: processes `scale` and `consume a` wait for each other
#   --> two_that_receive_first.py:22:13
#      |
#   22 |             receive(b)
#      |             ^^^^^^^^^^
#    = found:    waits for a token of `b`, which `consume a` is to send
#    = help:     no depth helps: each waits for what another does only afterwards; let one of them send first
#    = note:     `scale` at two_that_receive_first.py:22: waits for a token of `b`, which `consume a` is to send
#    = note:     `consume a` at two_that_receive_first.py:24: waits for a token of `a`, which `scale` is to send
