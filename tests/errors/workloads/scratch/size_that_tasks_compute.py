"""A scratch tensor of a body is as large as a task says."""

import numpy as np

from pto_wsp import DType, Out, P, Tensor, Tile, kernel, pto, workload

counts = Tensor(np.zeros((4, 1), np.int64), name="counts")


@kernel
def count(n: Out[Tile[1, 1, DType.I64]]) -> None:
    pto.store(n, pto.full((1, 1), 3, DType.I64))


@workload
def program() -> None:
    for b in P(4):
        count[b](counts[b])
    for b in P(4):
        rows = Tensor.empty((counts[b, 0], 1), DType.I64)
        count[b](rows[0:1])


def mistake() -> None:
    program().compile(target="interp")


# error[W102]: `rows` is as large as its tasks or slots say
#   --> size_that_tasks_compute.py:20:16
#      |
#   20 |         rows = Tensor.empty((counts[b, 0], 1), DType.I64)
#      |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: an extent of symbols, loop variables and elements that no task writes
#    = found:    counts[b, 0]
#    = help:     say how large it may get: minimum(64, counts[b, 0])
