"""A calendar has a task before the one whose result it reads."""

import numpy as np

from pto_wsp import DType, In, Out, Tensor, Tile, kernel, pto, workload

X, Y, Z = (Tensor(np.zeros((1, 8), np.float32), name=name) for name in "XYZ")


@kernel
def twice(x: In[Tile[1, 8, DType.F32]], y: Out[Tile[1, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


@workload
def chain() -> None:
    twice(x=X, y=Y)
    twice(x=Y, y=Z)


def mistake() -> None:
    chain().calendar([(0, 1), (0, 0)]).compile(target="interp").run()


# error[S106]: the calendar has task 1 `twice` before task 0 `twice`, which it waits for
#   --> calendar_against_an_edge.py:18:5
#      |
#   18 |     twice(x=Y, y=Z)
#      |     ^^^^^^^^^^^^^^^
#    = expected: task 0 first
#    = found:    executor 0 runs it at position 0, and task 0 at 1
#    = note:     0 twice → 1 twice  RAW on Y[0, 0:8], order  calendar_against_an_edge.py:17 → calendar_against_an_edge.py:18)
