"""A key gives a stream that there is none of."""

import numpy as np

from pto_wsp import DType, Out, P, Scalar, Tensor, Tile, kernel, pto, workload


@kernel
def fill(n: Scalar[DType.I64], y: Out[Tile[1, 1, DType.I64]]) -> None:
    pto.store(y, pto.full((1, 1), n, DType.I64))


Y = Tensor(np.zeros((8, 1), np.int64), name="Y")


@workload
def program() -> None:
    for k in P(8):
        fill[k](k, Y[k])


def mistake() -> None:
    program().stream_by(lambda t: t.k - 2).compile(target="interp")


# error[S104]: a key of the schedule gives a number that means nothing: `stream_by: k - 2`
#   --> stream_below_zero.py:19:9
#      |
#   19 |         fill[k](k, Y[k])
#      |         ^^^^^^^^^^^^^^^^
#    = expected: >= 0
#    = found:    -2
#    = help:     change the key: key.max(0) is never negative, key % n lies in 0 .. n - 1
#    = note:     for example where k = 0
