"""A slot is read behind an unordered loop that sets it."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, slot_set_u64, slot_u64, workload


@kernel
def scale(x: In[Tile[1, 8, DType.F32]], y: Out[Tile[1, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 8), np.float32), name="X"), Tensor(np.zeros((4, 8), np.float32))


@workload
def program() -> None:
    for b in P(4):
        slot_set_u64(0, b)
        scale[b](x=X[b], y=Y[b])
    scale(x=X[slot_u64(0)], y=Y[0])


def mistake() -> None:
    program().compile(target="interp")


# error[W107]: slot 0 is read where its value depends on an order that nobody promises
#   --> read_behind_its_loop.py:21:5
#      |
#   21 |     scale(x=X[slot_u64(0)], y=Y[0])
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a slot set before, in the same iteration or side
#    = found:    slot 0, which iterations of the loop over `b` set: they have no order
#    = help:     set the slot in this body before it is read, or loop with P.seq
#    = note:     it is set at read_behind_its_loop.py:19:9
