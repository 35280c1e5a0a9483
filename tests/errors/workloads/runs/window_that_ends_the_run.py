"""A window that does not wait is full."""

import numpy as np

from pto_wsp import DType, Out, P, Scalar, TaskWindow, Tensor, Tile, WindowMode, kernel, pto, workload


@kernel
def fill(n: Scalar[DType.I64], y: Out[Tile[1, 1, DType.I64]]) -> None:
    pto.store(y, pto.full((1, 1), n, DType.I64))


Y = Tensor(np.zeros((8, 1), np.int64), name="Y")


@workload
def program() -> None:
    for k in P(8):
        fill[k](k, Y[k])


def mistake() -> None:
    program().task_graph(window=TaskWindow(4, "tasks", WindowMode.ABORT)).compile(target="interp").run()


# error[R106]: task fill[k=4] found no room in the window
#   --> window_that_ends_the_run.py:19:9
#      |
#   19 |         fill[k](k, Y[k])
#      |         ^^^^^^^^^^^^^^^^
#    = expected: room for 1 task in a window of 4 tasks
#    = found:    up to 4 taken; WindowMode.ABORT ends the run
#    = help:     give the window more room; WindowMode.STALL waits, WindowMode.BENCHMARK counts and goes on
