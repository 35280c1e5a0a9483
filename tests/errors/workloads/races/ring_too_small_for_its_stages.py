"""Three buffers behind three stages whose channels hold three tokens each, for a number of panels that a run binds."""

import numpy as np

from pto_wsp import Channel, DType, In, Out, P, Symbol, Tensor, Tile, connect, consume, kernel, process, pto, replicate, send

SLOTS = 3
X, Y = Tensor(np.zeros((64, 4), np.float32)), Tensor(np.zeros((64, 4), np.float32))
RING, DONE = Tensor.empty((SLOTS, 4), DType.F32, name="RING"), Tensor.empty((64, 4), DType.F32, name="DONE")


@kernel
def copy(x: In[Tile[1, 4, DType.F32]], y: Out[Tile[1, 4, DType.F32]]) -> None:
    pto.store(y, x)


full, done, n = Channel("full", SLOTS), Channel("done", SLOTS), Symbol("n")


def load() -> None:
    for j in P.seq(n):
        send(full, copy[j](x=X[j:j+1], y=RING[j % SLOTS:j % SLOTS + 1]))


def compute() -> None:
    with consume(full) as j:
        send(done, copy[j](x=RING[j % SLOTS:j % SLOTS + 1], y=DONE[j:j+1]))


def store() -> None:
    with consume(done) as j:
        copy[j](x=DONE[j:j+1], y=Y[j:j+1])


def mistake() -> None:
    connect([process("load").produces(full).body(load),
             replicate(process("compute").consumes(full).produces(done).body(compute), 2),
             process("store").consumes(done).body(store)], [full, done]).compile(target="interp")


# error[W201]: tasks without an order between them write and read the same elements of `RING`
#   --> ring_too_small_for_its_stages.py:22:42
#      |
#   22 |         send(full, copy[j](x=X[j:j+1], y=RING[j % SLOTS:j % SLOTS + 1]))
#      |                                          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   --> ring_too_small_for_its_stages.py:27:30: read here
#      |
#   27 |         send(done, copy[j](x=RING[j % SLOTS:j % SLOTS + 1], y=DONE[j:j+1]))
#      |                              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: processes touch different elements, or only read
#    = found:    RING[0, 0:4] is written where j = 3, and read where j = 0
#    = help:     give `RING` more places (depth + 2 between neighbours), or take a token back before one is written again
#    = note:     `full`, depth 3: the first comes after 3 sent, the second after 1 taken; no chain of tokens leads from one to the other
#    = note:     for example with n = 4
