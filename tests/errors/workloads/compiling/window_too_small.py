"""A task needs more entries than the window has."""

import numpy as np

from pto_wsp import DType, In, Out, Scalar, TaskWindow, Tensor, Tile, kernel, pto, workload


@kernel
def fill(n: Scalar[DType.I64], y: Out[Tile[1, 1, DType.I64]]) -> None:
    pto.store(y, pto.full((1, 1), n, DType.I64))


Y = Tensor(np.zeros((8, 1), np.int64), name="Y")


@kernel
def copy(x: In[Tile[1, 1, DType.I64]], y: Out[Tile[1, 1, DType.I64]]) -> None:
    pto.store(y, x)


@workload
def pair() -> None:
    fill(1, Y[0])
    copy(Y[0], Y[1])


def mistake() -> None:
    pair().task_graph(window=TaskWindow(1, "entries")).compile(target="interp")


# error[R106]: a task alone needs more than the whole window: `copy under TaskWindow(size=1, unit='entries', mode=WindowMode.STALL)`
#   --> window_too_small.py:24:5
#      |
#   24 |     copy(Y[0], Y[1])
#      |     ^^^^^^^^^^^^^^^^
#    = expected: at most 1
#    = found:    2
#    = help:     give the window more room, or take WindowMode.BENCHMARK to count and go on
