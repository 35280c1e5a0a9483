"""A Python variable counts iterations of a loop that is traced once."""

import numpy as np

from pto_wsp import DType, InOut, P, Scalar, Tensor, Tile, kernel, pto, workload


@kernel
def add(n: Scalar[DType.I64], y: InOut[Tile[1, 4, DType.I64]]) -> None:
    pto.store(y, y + n)


Y = Tensor(np.zeros((4, 4), np.int64), name="Y")


@workload
def mistake() -> None:
    total = 0
    for b in P(4):
        add(total, Y[b])
        total = total + 1


# error[K109]: `total` is read in a loop of the workload and then assigned to
#   --> counter_in_a_loop.py:21:9
#      |
#   21 |         total = total + 1
#      |         ^^^^^
#    = found:    a body that is traced once: `total` is read as it was before the loop, in every iteration
#    = help:     compute it from the loop's variable, or keep it in a slot; a variable of the loop's own takes another name
