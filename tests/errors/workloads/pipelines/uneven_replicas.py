"""A replica that sends nothing for some of its tokens holds up the others, which wait for their turn."""

import numpy as np

from pto_wsp import Channel, DType, In, Out, P, Tensor, Tile, connect, consume, kernel, process, pto, replicate, send

X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


data, kept = Channel("data"), Channel("kept")


def sending() -> None:
    for i in P.seq(8):
        send(data, i)


def keeping() -> None:
    with consume(data) as i:
        scale[i](x=X[0], y=Y[0])
        with P.when(i % 2 == 1):
            send(kept, i)


def ending() -> None:
    with consume(kept) as i:
        scale[i](x=X[i // 2], y=Y[i // 2])


def mistake() -> None:
    program = connect([process("from").produces(data).body(sending),
                       replicate(process("keep").consumes(data).produces(kept).body(keeping), 2),
                       process("to").consumes(kept).body(ending)], [data, kept])
    program.compile(target="interp")


# error[W111]: processes `keep` (replica 0) and `keep` (replica 1) wait for each other
#   --> uneven_replicas.py:24:10
#      |
#   24 |     with consume(data) as i:
#      |          ^^^^^^^^^^^^^
#    = found:    waits for its turn at `data`: `keep` (replica 1) is next
#    = help:     no depth helps: tokens are dealt and merged in turn, so each at one end has to send or take as often as the others
#    = note:     `keep` (replica 0) at uneven_replicas.py:24: waits for its turn at `data`: `keep` (replica 1) is next
#    = note:     `keep` (replica 1) at uneven_replicas.py:27: waits for its turn at `kept`: `keep` (replica 0) is next
#    = note:     behind: `from` at uneven_replicas.py:20: sends to `data`, which is full (depth 1), until `keep` (replica 1) takes a token
#    = note:     behind: `to` at uneven_replicas.py:31: waits for a token of `kept`, which `keep` (replica 0) is to send
