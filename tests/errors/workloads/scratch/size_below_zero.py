"""A scratch tensor of a body has an extent below 0 in one iteration."""

import numpy as np

from pto_wsp import DType, Out, P, Tensor, Tile, kernel, pto, workload

lens = Tensor(np.array([3, 1]), name="lens")


@kernel
def zero(y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, pto.zeros((4, 8), DType.F32))


@workload
def program() -> None:
    for b in P(2):
        rows = Tensor.empty((lens[b] - 2, 8), DType.F32)
        zero[b](rows.clip(4, 8))


def mistake() -> None:
    program().compile(target="interp").run()


# error[R104]: a tensor has an extent below 0, or fits no memory: `lens[b] - 2`
#   --> size_below_zero.py:18:16
#      |
#   18 |         rows = Tensor.empty((lens[b] - 2, 8), DType.F32)
#      |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: 0 .. 4398046511104
#    = found:    lens[b] - 2 = -1
#    = help:     maximum(0, n) makes none where n is negative
#    = note:     in the iteration b = 1
