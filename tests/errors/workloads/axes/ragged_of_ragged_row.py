"""One index leads to a row of a Ragged of a Ragged."""

import numpy as np

from pto_wsp import Dense, DType, In, Out, P, Ragged, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[1, 8, DType.F32]], y: Out[Tile[1, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 8), np.float32), name="X"), Tensor(np.zeros((4, 8), np.float32))
batch = Dense[4]()
tokens = Ragged(batch, Tensor(np.array([1, 2, 0, 1]), name="lens"))
pieces = Ragged(tokens, Tensor(np.ones((4, 2), int), name="counts"))


@workload
def program() -> None:
    for b in P(batch):
        for t in P(pieces[b]):
            scale[b, t](x=X[b], y=Y[b])


def mistake() -> None:
    program()


# error[W106]: rows of rows are no axis yet
#   --> ragged_of_ragged_row.py:22:18
#      |
#   22 |         for t in P(pieces[b]):
#      |                  ^^^^^^^^^^^^
#    = found:    Ragged(Ragged(Dense[4], lens), counts)[b]
#    = help:     give one index more, e.g. rows[b][t]
