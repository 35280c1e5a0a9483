"""Offsets that were declared Monotone fall after they were changed in place."""

import numpy as np

from pto_wsp import DType, In, Monotone, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def fill(x: In[Tile[1, 4, DType.F32]], y: Out[Tile[1, 4, DType.F32]]) -> None:
    pto.store(y, x + 1)


X, packed = Tensor(np.zeros((9, 4), np.float32)), Tensor(np.zeros((9, 4), np.float32))
offsets = Monotone(np.array([0, 2, 4, 6]))


@workload
def program() -> None:
    for b in P(3):
        for t in P(offsets[b + 1] - offsets[b]):
            fill[b, t](x=X[t], y=packed[offsets[b] + t])


def mistake() -> None:
    made = program().compile("interp").run()
    offsets.data[2] = 1
    made.run()


# error[R110]: `offsets` is declared Monotone, and falls
#   --> offsets_that_fall.py:27:5
#      |
#   27 |     made.run()
#      |     ^^^^^^^^^^
#    = expected: offsets[2] >= 2
#    = found:    offsets[1] = 2, offsets[2] = 1
