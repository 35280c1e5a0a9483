"""Two outputs of one task that overlap."""

import numpy as np

from pto_wsp import DType, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def both(low: Out[Tile[4, 8, DType.F32]], high: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(low, pto.full((4, 8), 1.0, DType.F32))
    pto.store(high, pto.full((4, 8), 2.0, DType.F32))


B = Tensor(np.zeros((16, 8), np.float32), name="B")


@workload
def program() -> None:
    for i in P(1):
        both[i](low=B[4 * i:4 * i + 4], high=B[2:6])


def mistake() -> None:
    program().compile("cpu_sim")


# error[W205]: `both` writes the same elements twice: `low` and `high` share B[2:4, 0:8]
#   --> outputs_overlap.py:20:46
#      |
#   20 |         both[i](low=B[4 * i:4 * i + 4], high=B[2:6])
#      |                                              ^^^^^^
#    = expected: outputs of a task that have no element in common
#    = found:    low is B[4 * i:4 * i + 4], high is B[2:6]
#    = help:     give each output elements of its own
#    = note:     for example where i = 0
