"""query asks about the last run, not about the one that is being made."""

import numpy as np

from pto_wsp import DType, Event, In, Out, Tensor, Tile, kernel, pto, query, workload

X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


ready = Event("ready")


@workload
def program() -> None:
    query(ready)
    scale[0](x=X[0], y=Y[0])


def mistake() -> None:
    program()


# error[W109]: query(ready) in a workload
#   --> query_in_a_workload.py:20:5
#      |
#   20 |     query(ready)
#      |     ^^^^^^^^^^^^
#    = help:     it asks the host about the last run; synchronize(event) waits for one in a process
