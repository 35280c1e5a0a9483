"""Two directives that contradict each other."""

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
    program().streams(2).calendar(lambda t: (t.k % 2, t.k))


# error[S105]: calendar and streams contradict each other
#   --> calendar_beside_streams.py:23:5
#      |
#   23 |     program().streams(2).calendar(lambda t: (t.k % 2, t.k))
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = found:    Calendar.of(lambda t: (t.k % 2, t.k)) and streams(2)
#    = help:     leave one of them out
#    = note:     a calendar says in which order each executor runs its tasks
