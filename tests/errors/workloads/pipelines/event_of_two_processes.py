"""An event that two processes record."""

import numpy as np

from pto_wsp import DType, Event, In, Out, P, Tensor, Tile, kernel, pto, record, synchronize, workload

X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


ready = Event("ready")


@workload
def program() -> None:
    with P.pipe():
        for i in P.seq(2):
            scale[i](x=X[i], y=Y[i])
            record(ready)
        for i in P.seq(2):
            scale[i](x=X[i], y=Y[i + 2])
            record(ready)
        synchronize(ready)


def mistake() -> None:
    program().compile(target="interp")


# error[W110]: event `ready` is recorded by more than one process
#   --> event_of_two_processes.py:26:13
#      |
#   26 |             record(ready)
#      |             ^^^^^^^^^^^^^
#    = help:     one process records an event; several synchronize with it
#    = note:     also at event_of_two_processes.py:23:13
