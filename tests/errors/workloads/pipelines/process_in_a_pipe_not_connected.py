"""A process made in the body of P.pipe() and connected to nothing."""

import numpy as np

from pto_wsp import Channel, DType, In, Out, P, Tensor, Tile, consume, kernel, process, pto, send, workload

X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


tiles = Channel("tiles")


def sending() -> None:
    for i in P.seq(4):
        send(tiles, i)


@workload
def program() -> None:
    with P.pipe():
        process("sending").produces(tiles).body(sending)
        with consume(tiles) as i:
            scale[i](x=X[i], y=Y[i])


def mistake() -> None:
    program()


# error[W108]: process `sending` is made in the body of P.pipe() and connected to nothing
#   --> process_in_a_pipe_not_connected.py:26:9
#      |
#   26 |         process("sending").produces(tiles).body(sending)
#      |         ^^^^^^^^^^^^^^^^^^
#    = help:     here every statement is a process already: write its body in place; or connect([process(...), ...], [...]) without P.pipe()
