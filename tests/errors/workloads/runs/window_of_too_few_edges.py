"""A task waits for more tasks than the window of edges has room for: it could never be submitted."""

import numpy as np

from pto_wsp import DType, In, Out, Scalar, TaskWindow, Tensor, Tile, kernel, pto, workload


@kernel
def fill(n: Scalar[DType.I64], y: Out[Tile[1, 1, DType.I64]]) -> None:
    pto.store(y, pto.full((1, 1), n, DType.I64))


@kernel
def add(a: In[Tile[1, 1, DType.I64]], b: In[Tile[1, 1, DType.I64]], y: Out[Tile[1, 1, DType.I64]]) -> None:
    pto.store(y, a + b)


Y = Tensor(np.zeros((3, 1), np.int64), name="Y")


@workload
def program() -> None:
    fill[0](1, Y[0])
    fill[1](2, Y[1])
    add[0](Y[0], Y[1], Y[2])


def mistake() -> None:
    windows = TaskWindow(4), TaskWindow(1, "edges")
    program().task_graph(window=windows).compile(target="interp").run().stats  # noqa: B018


# error[R106]: task add[0] found no room in the window
#   --> window_of_too_few_edges.py:25:5
#      |
#   25 |     add[0](Y[0], Y[1], Y[2])
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: room for 2 edges in a window of 1 edge
#    = found:    up to 0 taken
#    = help:     give the window more room; WindowMode.STALL waits, WindowMode.BENCHMARK counts and goes on
