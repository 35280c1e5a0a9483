"""A row of a ragged axis has a negative length."""

import numpy as np

from pto_wsp import Dense, DType, In, Out, P, Ragged, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))
batch = Dense[2]()
lens = Tensor(np.array([2, -1], np.int32))
rows = Ragged(batch, lens)


@workload
def program() -> None:
    for b in P(batch):
        for i in P(rows[b]):
            scale[b, i](x=X[i], y=Y[i])


def mistake() -> None:
    program().compile(target="interp").run()


# error[R104]: a loop's extent is negative: `lens[b]`
#   --> negative_length.py:22:18
#      |
#   22 |         for i in P(rows[b]):
#      |                  ^^^^^^^^^^
#    = expected: >= 0
#    = found:    lens[b] = -1
#    = help:     lengths are >= 0
#    = note:     in the iteration b = 1
