"""Two windows bound the same unit."""

import numpy as np

from pto_wsp import DType, Out, P, Scalar, TaskWindow, Tensor, Tile, kernel, pto, workload


@kernel
def fill(n: Scalar[DType.I64], y: Out[Tile[1, 1, DType.I64]]) -> None:
    pto.store(y, pto.full((1, 1), n, DType.I64))


Y = Tensor(np.zeros((8, 1), np.int64), name="Y")


@workload
def program() -> None:
    for k in P(8):
        fill[k](k, Y[k])


def mistake() -> None:
    program().task_graph(window=(TaskWindow(4), TaskWindow(8)))


# error[S102]: window does not take these windows
#   --> windows_of_one_unit.py:23:5
#      |
#   23 |     program().task_graph(window=(TaskWindow(4), TaskWindow(8)))
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: at least one, and each of a unit of its own
#    = found:    (TaskWindow(size=4, unit='tasks', mode=WindowMode.STALL),...
#    = help:     units are "tasks", "bytes", "entries", "edges" and "ready"
